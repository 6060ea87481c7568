"""The part of a terminal that is still changing: the last lines, redrawn in place.

What is finished is printed for good and scrolls away like any output; only what may still change is
drawn again. Each drawing is one write, and lines that are the same as before are not touched, so
nothing flickers. Items become final in order: a finished one below an unfinished one waits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

# Terminals that know them show what is between these two marks at once; others ignore them.
_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"


class Item(Protocol):
    """Something that grows and is finished one day."""

    @property
    def finished(self) -> bool:
        """Whether nothing about it changes any more."""
        ...

    def settle(self, room: int) -> Sequence[str]:
        """The lines that are final and were not given out before.

        At most `room` lines may stay behind: what is above them cannot be redrawn.
        """
        ...

    def growing(self) -> Sequence[str]:
        """The lines that may still change."""
        ...


class Region:
    """Draws items at the end of a terminal's output."""

    def __init__(self, write: Callable[[str], None], height: Callable[[], int]) -> None:
        """`write` gets what is to be drawn; `height` is how many lines there are."""
        self._write = write
        self._height = height
        self._items: list[Item] = []
        self._drawn: list[str] = []

    def add(self, item: Item) -> None:
        """Put an item below the others."""
        self._items.append(item)

    @property
    def busy(self) -> bool:
        """Whether an item is unfinished."""
        return bool(self._items)

    def draw(self, status: str = "") -> None:
        """Show what has changed; `status` is a line below everything."""
        room = max(self._height() - 3, 1)
        final: list[str] = []
        while self._items:
            final.extend(self._items[0].settle(room))
            if not self._items[0].finished:
                break
            self._items.pop(0)
        lines = [line for item in self._items for line in item.growing()]
        # Never draw more than fits: what has scrolled away could not be taken back.
        lines = [*lines[-room:], *([status] if status else [])]
        self._replace(final, lines)

    def close(self) -> None:
        """Print everything that is left for good."""
        final = [line for item in self._items for line in _all_of(item)]
        self._items = []
        self._replace(final, [])

    def _replace(self, final: list[str], lines: list[str]) -> None:
        wanted = [*final, *lines]
        same = _common(self._drawn, wanted)
        if same == len(self._drawn) == len(wanted):
            self._drawn = lines
            return
        up = len(self._drawn) - same
        moves = f"\x1b[{up}A\r" if up else ""
        # Cleared before it is written: after a full line the cursor still stands on its last
        # character, and clearing would take that one away.
        text = "".join(f"\x1b[2K{line}\n" for line in wanted[same:])
        self._write(f"{_BEGIN}{moves}{text}\x1b[J{_END}")
        self._drawn = lines


def _all_of(item: Item) -> list[str]:
    return [*item.settle(0), *item.growing()]


def _common(old: Sequence[str], new: Sequence[str]) -> int:
    """How many lines at the beginning are the same."""
    count = 0
    for a, b in zip(old, new, strict=False):
        if a != b:
            break
        count += 1
    return count
