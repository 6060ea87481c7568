"""Whether the store writes, and what happens while it does not (DESIGN §8.17).

The first write that fails for lack of a working store makes it *failing*: new work is refused, what
runs already waits. One task looks with growing pauses whether the store takes a write again; then
those who wait try theirs. Only when the last of them is through is the store said to work: a write
of a few bytes may succeed on a disk that is still too full for a reply.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextvars import Context
from typing import TypeVar

from thinkwell.core.bus import EventBus
from thinkwell.core.errors import StoreError, StoreUnavailableError
from thinkwell.core.events import StoreFailing, StoreRecovered
from thinkwell.core.tasks import TaskOwner

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[object]]
log = logging.getLogger("thinkwell.store")

FIRST_PAUSE, LAST_PAUSE = 0.25, 5.0
"""Seconds between two looks at a store that does not write."""


class StoreHealth:
    """Knows whether the store writes; the place to wait for it."""

    def __init__(
        self, probe: Callable[[], Awaitable[None]], tasks: TaskOwner, bus: EventBus, sleep: Sleep
    ) -> None:
        """`probe` writes something and raises if it cannot."""
        self._probe = probe
        self._tasks = tasks
        self._bus = bus
        self._sleep = sleep
        self._again = asyncio.Event()
        self._waiting = 0
        self._takes_writes = False
        self._looking: asyncio.Task[None] | None = None
        self.problem: StoreUnavailableError | None = None
        """Why nothing can be stored at the moment; None while all is well."""

    def refuse_if_failing(self) -> None:
        """New work is not accepted while older work waits for the store."""
        if self.problem is not None:
            raise StoreUnavailableError(self.problem.reason)

    def failed(self, error: StoreUnavailableError) -> None:
        """A write failed: from now on the store is failing, until it has proved otherwise."""
        first, self.problem = self.problem is None, error
        self._takes_writes = False
        if first:
            log.critical(
                "nothing can be stored: %s. New work is refused; what runs waits.",
                error.reason,
                extra={"action": "store:failing"},
            )
            self._bus.emit(StoreFailing, reason=error.reason)
        if self._looking is None:
            # Not in the context of whoever failed: what the probe stores and tells is everybody's.
            self._looking = self._tasks.spawn(self._look(), name="look", context=Context())

    async def insist(self, write: Callable[[], Awaitable[T]], waits: Callable[[], object]) -> T:
        """Run `write` until the store takes it; `waits` hears of the first failure."""
        try:
            return await write()
        except StoreUnavailableError as error:
            self.failed(error)
        waits()
        self._waiting += 1
        try:
            done = await self._try_again(write)
        finally:
            self._waiting -= 1
        if self._takes_writes and not self._waiting:
            self._recovered()
        return done

    async def _try_again(self, write: Callable[[], Awaitable[T]]) -> T:
        while True:
            await self._again.wait()
            try:
                return await write()
            except StoreUnavailableError as error:
                self.failed(error)

    async def _look(self) -> None:
        pause = FIRST_PAUSE
        try:
            while self.problem is not None:
                await self._sleep(pause)
                pause = min(pause * 2, LAST_PAUSE)
                await self._look_once()
        finally:
            self._looking = None

    async def _look_once(self) -> None:
        try:
            await self._probe()
        except StoreUnavailableError as error:
            self.problem = error
            return
        except StoreError:  # it answers: whoever waits tries, and hears of an error of its own
            log.exception("a probe of the store failed", extra={"action": "store:probe"})
        self._takes_writes = True
        if not self._waiting:
            self._recovered()
            return
        self._again.set()
        self._again = asyncio.Event()  # whoever fails once more waits for the next look

    def _recovered(self) -> None:
        if self.problem is None:
            return
        self.problem = None
        log.warning("the store writes again", extra={"action": "store:recovered"})
        self._bus.emit(StoreRecovered)
