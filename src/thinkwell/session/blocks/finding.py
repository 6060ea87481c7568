"""Which entries of a block a query finds (pure).

Words are compared as they are, so that nothing in a query is syntax. All words first; if no entry
has them all, any of them, the best first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from thinkwell.session.blocks.records import BlockVersion

MOST_FOUND = 10
MOST_SHOWN = 8_000
"""Characters of each that a search shows: an entry may be as large as a book."""
_WORD = re.compile(r"\w+")


def find_entries(entries: Iterable[BlockVersion], query: str) -> list[BlockVersion]:
    """The entries that say something about it, the best first."""
    words = list(dict.fromkeys(_WORD.findall(query.casefold())))
    ranked = [(_score(entry, words), entry) for entry in entries]
    hits = [(score, entry) for score, entry in ranked if score[0]]
    if whole := [hit for hit in hits if hit[0][0] == len(words)]:
        hits = whole
    hits.sort(key=lambda hit: (*hit[0], hit[1].changed_at), reverse=True)
    return [entry for _, entry in hits[:MOST_FOUND]]


def _score(entry: BlockVersion, words: Sequence[str]) -> tuple[int, int]:
    """How many of the words it has, and how many of them as a word of its own."""
    text = f"{entry.key} {entry.description or ''} {entry.content}".casefold()
    own = set(_WORD.findall(text))
    # Also inside of words: languages without spaces, and endings.
    return sum(word in text for word in words), sum(word in own for word in words)


def found_text(entries: Sequence[BlockVersion]) -> str | None:
    """What the model reads of them."""
    return "\n\n".join(f"[{entry.key}]\n{_shown(entry.content or '')}" for entry in entries) or None


def _shown(text: str) -> str:
    if len(text) <= MOST_SHOWN:
        return text
    return f"{text[:MOST_SHOWN]}\n[... {len(text) - MOST_SHOWN} more characters]"
