"""What the scenarios have in common: the packages they run on, and words with gates in them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.browser.hooks.place import CHROMIUM, NODE
from thinkwell.models.base import ModelEvent, TextDelta, TextEnd, TextStart
from thinkwell.testing import Gate

HOOKS = pytest.mark.parametrize("hooks", ["ai-chat", "think"])
"""The same scenario through both packages that have a `useAgentChat`."""

EVERYWHERE = pytest.mark.parametrize("place", [CHROMIUM, NODE], ids=str, indirect=True)
"""In the browser, and in Node behind a line that joins frames."""

MARKS = [pytest.mark.browser, pytest.mark.timeout(180)]

FIRST = "".join(f"word{number} " for number in range(1, 16))
SECOND = "".join(f"word{number} " for number in range(16, 31))

SLOW = 0.15
"""Seconds everything is under way on a slow line."""


def speech(*pieces: str | Gate) -> list[ModelEvent | Gate]:
    """One text part, word by word, that waits at its gates."""
    return [TextStart("said"), *_deltas(pieces), TextEnd("said")]


def _deltas(pieces: tuple[str | Gate, ...]) -> Iterator[ModelEvent | Gate]:
    for piece in pieces:
        if isinstance(piece, Gate):
            yield piece
        else:
            yield from (TextDelta("said", f"{word} ") for word in piece.split())
