"""Counting what clients take at the edge: open sockets, and how fast messages and agents come."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager

from thinkwell.core.clock import Clock, SystemClock
from thinkwell.core.limits import Limits

HOUR = 3600.0
MOST_REMEMBERED = 10_000
"""Clients whose pace is remembered before those that were slow lately are forgotten."""


class Pace:
    """A bucket of tokens for each client: `burst` at once, `rate` in a second in the long run."""

    def __init__(self, rate: float | None, burst: float, clock: Clock) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._spent: dict[str, tuple[float, float]] = {}

    def take(self, payer: str | None) -> float:
        """Take one. Returns 0, or the seconds until there is another one."""
        if self._rate is None or payer is None:
            return 0.0
        now = self._clock.monotonic()
        left = self._left(payer, now)
        if left < 1.0:
            return (1.0 - left) / self._rate if self._rate else HOUR
        if payer not in self._spent and len(self._spent) >= MOST_REMEMBERED:
            self._forget(now)
        self._spent[payer] = (left - 1.0, now)
        return 0.0

    def _left(self, payer: str, now: float) -> float:
        left, at = self._spent.get(payer, (self._burst, now))
        return min(self._burst, left + (now - at) * (self._rate or 0.0))

    def _forget(self, now: float) -> None:
        full = [payer for payer in self._spent if self._left(payer, now) >= self._burst]
        for payer in full:
            del self._spent[payer]


class Meter:
    """What the clients of one app take."""

    def __init__(
        self,
        limits: Limits,
        clock: Clock | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        clock = clock or SystemClock()
        self.limits = limits
        self.messages = Pace(limits.messages, limits.message_burst, clock)
        new = limits.new_agents
        self.new_agents = Pace(None if new is None else new / HOUR, new or 0, clock)
        self._sleep = sleep
        self._sockets: Counter[str] = Counter()
        self.open_sockets = 0
        """Of all clients together, also of those that are not counted one by one."""

    @contextmanager
    def socket(self, payer: str | None) -> Generator[bool]:
        """A socket is open while the block runs; False if there are too many already."""
        most = self.limits.sockets
        if payer is None or most is None:
            yield True
            return
        if self._sockets[payer] >= most:
            yield False
            return
        self._sockets[payer] += 1
        try:
            yield True
        finally:
            self._sockets[payer] -= 1
            if not self._sockets[payer]:
                del self._sockets[payer]

    async def message(self, payer: str | None) -> None:
        """A message came over a socket: wait until it is its turn, and lose nothing."""
        while (wait := self.messages.take(payer)) > 0:
            await self._sleep(wait)
