"""Taking over what a dead process has left, without making live users wait.

After a crash there may be a thousand turns to take up. Reading a journal, assembling a prompt and
the first commit of each are work for one event loop, so only a few of them begin at a time; once a
turn has called its model, the next one begins. How many *run* is not limited: a thousand answers
that wait for a provider cost nothing, and none may wait for the end of another.

Live turns go first: between two that begin, the loop goes round a few times while live turns run.
And whoever is waited for goes at once: somebody has asked something of its agent since.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

AT_ONCE = 4
"""How many begin at the same time."""
ROUNDS = 10
"""Rounds of the event loop between two that begin while live turns run."""


class TakeOver:
    """The places of all turns that a host has found at its start."""

    def __init__(self, live: Callable[[], int] = lambda: 0, *, at_once: int = AT_ONCE) -> None:
        self._live = live
        self._free = at_once
        self._waiting: dict[asyncio.Event, None] = {}  # in the order they came
        self.running = 0
        """Those that have begun and not ended: what else runs is live."""

    def ticket(self) -> Ticket:
        """For one turn."""
        return Ticket(self)

    async def enter(self, moved: asyncio.Event, *, hurry: bool) -> bool:
        """Take a place. False if there was none; then there may be one now, or `moved` is set."""
        if not hurry:
            for _ in range(ROUNDS):
                if self._live() <= self.running:
                    break
                await asyncio.sleep(0)
            if self._free <= 0:
                self._waiting[moved] = None
                await moved.wait()
                self._waiting.pop(moved, None)
                return False
        self._free -= 1  # below zero for one in a hurry: the others wait so much longer
        self.call_next()
        return True

    def leave(self) -> None:
        """A place is free again."""
        self._free += 1
        self.call_next()

    def call_next(self) -> None:
        """Only one, and it calls the next in turn: a thousand that look at once find one place."""
        if self._free > 0 and self._waiting:
            moved = next(iter(self._waiting))
            del self._waiting[moved]
            moved.set()


class Ticket:
    """The place of one turn."""

    __slots__ = ("_of", "_runs", "holds")

    def __init__(self, of: TakeOver) -> None:
        self._of = of
        self._runs = False
        self.holds = False
        """Whether it has a place."""

    async def enter(self, moved: asyncio.Event, *, hurry: bool) -> None:
        """Take a place, or wait until there may be one or `moved` is set."""
        if await self._of.enter(moved, hurry=hurry):
            self.holds = self._runs = True
            self._of.running += 1

    def leave(self) -> None:
        """It has called its model: the next one may begin."""
        if self.holds:
            self.holds = False
            self._of.leave()

    def ended(self) -> None:
        """It has left its slot."""
        self.leave()
        self._of.call_next()  # it may have been called and gone without a place: it was stopped
        if self._runs:
            self._runs = False
            self._of.running -= 1
