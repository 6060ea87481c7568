"""A waiting line that is fair between those who wait (pure).

Everybody who waits is served in turn; what one of them has asked for is served in the order it was
asked. Whoever comes new goes to the end of the round, so nobody waits longer than one round for
each call of their own that stands before.
"""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class FairQueue(Generic[T]):
    """Items by whose they are."""

    def __init__(self) -> None:
        self._lines: dict[str, deque[T]] = {}  # in the order in which they are served
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def put(self, who: str, item: T) -> None:
        """At the end of their own line."""
        self._lines.setdefault(who, deque()).append(item)
        self._count += 1

    def first(self) -> T | None:
        """Who is next."""
        for line in self._lines.values():
            return line[0]
        return None

    def take(self) -> T:
        """Serve the next one: then the others come before the same person again."""
        who, line = next(iter(self._lines.items()))
        item = line.popleft()
        del self._lines[who]
        if line:
            self._lines[who] = line
        self._count -= 1
        return item

    def remove(self, who: str, item: T) -> bool:
        """Leave without being served. False if it does not wait here any more."""
        line = self._lines.get(who)
        if line is None or item not in line:
            return False
        line.remove(item)
        if not line:
            del self._lines[who]
        self._count -= 1
        return True
