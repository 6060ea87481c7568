"""Who is inside: open sockets and streams of those `auth` let in, and whether they may stay.

`auth` is asked again, with the request they came with, when their principal expires and when the
app revokes it. Whoever it does not know any more has to leave: nothing more is sent to them and
nothing more is taken from them. Turns they asked for go on.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

from thinkwell.core.clock import Clock, SystemClock
from thinkwell.core.principal import Principal
from thinkwell.core.tasks import TaskOwner

log = logging.getLogger("thinkwell.server")

UNAUTHORIZED = 4401
COME_AGAIN = 1012
"""Closes a socket whose client comes back by itself: its principal has other claims now."""
LOOK_AGAIN = 60.0
"""Seconds after which the clock is read again: somebody may have set it."""

Ask = Callable[[], Awaitable[Principal | None]]


class Guest:
    """One open socket or stream."""

    def __init__(self, principal: Principal | None, ask: Ask) -> None:
        self.principal = principal
        self.refused = asyncio.Event()
        """Set once it may not stay."""
        self.code = UNAUTHORIZED
        """What its socket is closed with."""
        self._ask = ask

    async def ask_again(self) -> None:
        """Ask `auth` whether it may stay."""
        known = self.principal
        if known is None or self.refused.is_set():
            return
        try:
            now = await self._ask()
        except Exception:
            log.exception("auth failed when it was asked again, so its guest has to leave")
            now = None
        if now is None or now.id != known.id:
            self.refused.set()
        elif now.claims != known.claims:  # what it may do has changed: it comes back as that
            self.code = COME_AGAIN
            self.refused.set()
        else:
            self.principal = now


class Guests:
    """Everybody who is inside."""

    def __init__(
        self,
        clock: Clock | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._clock = clock or SystemClock()
        self._sleep = sleep
        self._inside: defaultdict[str, set[Guest]] = defaultdict(set)

    @asynccontextmanager
    async def staying(self, principal: Principal | None, ask: Ask) -> AsyncGenerator[Guest]:
        """Somebody is inside while the block runs."""
        guest = Guest(principal, ask)
        if principal is None:  # nobody was asked who they are
            yield guest
            return
        tasks = TaskOwner("guest")
        self._inside[principal.id].add(guest)
        if principal.expires_at is not None:
            tasks.spawn(self._watch(guest), name="expiry")
        try:
            yield guest
        finally:
            inside = self._inside[principal.id]
            inside.discard(guest)
            if not inside:
                del self._inside[principal.id]
            await tasks.close()

    async def ask_again(self, principal_id: str) -> None:
        """Ask about everybody who came in as that principal."""
        for guest in tuple(self._inside.get(principal_id, ())):
            await guest.ask_again()

    async def _watch(self, guest: Guest) -> None:
        while not guest.refused.is_set():
            until = guest.principal and guest.principal.expires_at
            if until is None:
                return
            rest = until - self._clock.now()
            if rest <= 0:
                await guest.ask_again()
            else:
                await self._sleep(min(rest, LOOK_AGAIN))
