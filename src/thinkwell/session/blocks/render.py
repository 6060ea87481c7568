"""The text that a model reads of context blocks (spec/03 §5).

Pure: equal blocks give equal bytes.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import Final

from thinkwell.core import json
from thinkwell.session.blocks.records import BlockSpec, ContextBlock

RULE: Final = "═" * 46
_LOOKS_LIKE_A_RULE = re.compile("═{8,}")
TAIL: Final = "Current context, from the application and not from the user:"


def render(blocks: Iterable[ContextBlock]) -> str:
    """The blocks in their order, with headings. Read-only blocks without text are left out."""
    shown = [block for block in blocks if block.content or not _is_readonly(block)]
    return "\n\n".join(_section(block) for block in shown)


def render_tail(blocks: Sequence[ContextBlock]) -> str:
    """The message behind the conversation; empty if there is nothing to say."""
    text = render(blocks)
    return f"{TAIL}\n\n{text}" if text else ""


def usage(block: ContextBlock) -> str:
    """How full a block is."""
    if block.max_tokens is None:
        return f"{block.tokens} tokens"
    return f"{_percent(block)}% ({block.tokens}/{block.max_tokens} tokens)"


def fingerprint(specs: Iterable[BlockSpec]) -> str:
    """Changes whenever the author sets the prompt up differently, whatever the blocks hold."""
    facts = [
        [
            s.label,
            s.description,
            s.max_tokens,
            s.kind,
            s.writable,
            s.scope,
            s.source and s.source.fixed,
        ]
        for s in specs
        if s.placement == "prompt"
    ]
    return hashlib.blake2b(json.dump_bytes(facts), digest_size=16).hexdigest()


def _section(block: ContextBlock) -> str:
    words = [block.label.upper()]
    if block.description:
        words.append(f"({block.description})")
    if block.max_tokens is not None:
        words.append(f"[{_percent(block)}% — {block.tokens}/{block.max_tokens} tokens]")
    words.append(f"[{_tag(block)}]")
    # Who can write one block must not be able to draw the heading of another.
    content = _LOOKS_LIKE_A_RULE.sub(lambda found: "=" * len(found[0]), block.content)
    return "\n".join((RULE, " ".join(words), RULE, content)).rstrip("\n")


def _percent(block: ContextBlock) -> int:
    whole = block.max_tokens or 1
    return (200 * block.tokens + whole) // (2 * whole)  # rounds half up


def _tag(block: ContextBlock) -> str:
    if block.is_searchable:
        return "searchable"
    if block.is_skill:
        return "loadable"
    return "writable" if block.writable else "readonly"


def _is_readonly(block: ContextBlock) -> bool:
    return _tag(block) == "readonly"
