"""One conversation with a server, in the server's own protocol: what a driver needs of it."""

from __future__ import annotations

import asyncio
from typing import Protocol

import msgspec

from benchmarks.driver.arrivals import Arrivals, microseconds


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a conversation is and what it asks for."""

    base: str
    """`http://127.0.0.1:<port>`."""
    model: str
    """The provider's model, which says how many deltas come and how."""
    name: str
    """The conversation's own name."""
    tabs: int = 1
    """How many clients watch it."""


class Conversation(Protocol):
    """Opened once, then asked turn by turn. A failed turn raises."""

    async def open(self) -> None:
        """Connect."""
        ...

    async def turn(self) -> None:
        """Ask, and wait until every client has seen the end of the answer."""
        ...

    async def close(self) -> None:
        """Disconnect."""
        ...


class Turns:
    """The turn that one client waits for."""

    def __init__(self, arrivals: Arrivals) -> None:
        self._arrivals = arrivals
        self._end: asyncio.Future[None] | None = None
        self._fresh = True
        self._asked = 0

    def begin(self) -> asyncio.Future[None]:
        """A turn starts; the future is done at its end."""
        self._end = asyncio.get_running_loop().create_future()
        self._fresh = True
        self._asked = microseconds()
        return self._end

    def deltas(self, text: bytes) -> None:
        """A piece of the answer is here."""
        # Some servers begin with an empty piece; the first delta is the first with text in it.
        if self._arrivals.take(text, first=self._fresh):
            self._fresh = False
            self._arrivals.waits.append(microseconds() - self._asked)

    def end(self, problem: str | None = None) -> None:
        """The answer is complete, or there will be none."""
        if self._end is None or self._end.done():
            return
        if problem is None:
            self._end.set_result(None)
        else:
            self._end.set_exception(RuntimeError(f"the turn failed: {problem[:500]}"))
