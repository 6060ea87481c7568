"""What a write makes of a block: pure decisions, carried out elsewhere (spec/03 §4, §6).

Nothing here reads or stores: the row that counts and what is asked go in, the next version or an
error comes out.
"""

from __future__ import annotations

import hashlib
import re

from thinkwell.core.block_errors import BlockLimitError
from thinkwell.core.errors import SessionError
from thinkwell.core.json import clean_text
from thinkwell.session.blocks.records import BlockVersion
from thinkwell.session.draft import estimate_string_tokens

LARGEST = 1_000_000
"""Bytes of one version: it is written while everybody waits."""
KEPT = 50
"""Versions of a block, or of an entry, that can be read and brought back."""
LONGEST_KEY = 200
_LABEL = re.compile(r"[A-Za-z0-9][\w.-]{0,63}", re.ASCII)
_NOT_SLUG = re.compile(r"[^a-z0-9]+")
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def check_label(label: object) -> str:
    """A label that can stand in a prompt and in a schema."""
    if not isinstance(label, str) or not _LABEL.fullmatch(label):
        raise ValueError(
            f"{label!r:.80} cannot be the label of a context block. Use up to 64 letters, digits, "
            "'-', '_' and '.', and begin with a letter or a digit."
        )
    return label


def check_key(key: object) -> str:
    """The key of an entry."""
    if not isinstance(key, str) or not 1 <= len(key) <= LONGEST_KEY:
        raise ValueError(
            f"The key of an entry has 1 to {LONGEST_KEY} characters; {key!r:.40} does not."
        )
    return clean_text(key).replace("\0", "")


def appended(content: str, addition: str) -> str:
    """Two texts, on lines of their own."""
    between = "\n" if content and not addition.startswith("\n") else ""
    return f"{content}{between}{addition}"


def check_content(label: str, content: str, max_tokens: int | None) -> str:
    """The text as it can be stored. Raises `BlockLimitError` if it is too long."""
    text = clean_text(content).replace("\0", "")
    if (size := len(text.encode())) > LARGEST:
        raise BlockLimitError(label, size, LARGEST, "the largest size in bytes")
    tokens = estimate_string_tokens(text)
    if max_tokens is not None and tokens > max_tokens:
        raise BlockLimitError(label, tokens, max_tokens)
    return text


def entry_key(content: str, title: str | None) -> str:
    """The key of an entry that the model writes: the same title always gives the same one."""
    if title is not None and title.strip():
        return _slug(title) or f"entry-{_hash(title)}"
    slug, mark = _slug(content), _hash(content)
    return f"{slug}-{mark}" if slug else f"entry-{mark}"


def _slug(text: str) -> str:
    return _NOT_SLUG.sub("-", text[:60].lower()).strip("-")


def _hash(text: str) -> str:
    number = int.from_bytes(hashlib.blake2b(clean_text(text).encode(), digest_size=8).digest())
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits or "0"


def undone(current: BlockVersion | None) -> int:
    """Which version an undo brings back; 0 is the time before the first one.

    An undo is a version too. Undoing again goes one further back, not forth: what an undo brought
    back stands for itself.
    """
    stands_for = 0 if current is None else _stands_for(current)
    if stands_for == 0:
        raise SessionError(
            "There is nothing to undo: the block is as it was before its first change."
        )
    return stands_for - 1


def _stands_for(version: BlockVersion) -> int:
    return version.version if version.restored is None else version.restored


def brought_back(label: str, wanted: int, found: BlockVersion | None) -> tuple[str | None, int]:
    """The content that version `wanted` had, and the version it stands for itself."""
    if wanted == 0:
        return None, 0
    if found is None:
        raise SessionError(
            f'Version {wanted} of block "{label}" is not kept. context_history() has the others.'
        )
    return found.content, _stands_for(found)
