"""Who is inside: open sockets and streams of those `auth` let in, and whether they may stay.

`auth` is asked again, with the request they came with, when their principal expires and when the
app revokes it. Whoever it does not know any more has to leave: nothing more is sent to them and
nothing more is taken from them. Turns they asked for go on.

Between `auth`'s first answer and the moment somebody is inside, time passes: a hook is asked, a
body comes slowly. Whoever was on the way while the app revoked anybody is asked about once more.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from thinkwell.core.clock import Clock, SystemClock
from thinkwell.core.principal import Principal
from thinkwell.core.tasks import LeftBehindError, TaskOwner, forsake, run_apart

log = logging.getLogger("thinkwell.server")

UNAUTHORIZED = 4401
COME_AGAIN = 1012
"""Closes a socket whose client comes back by itself: its principal has other claims now."""
LOOK_AGAIN = 60.0
"""Seconds after which the clock is read again: somebody may have set it."""
ANSWER_WITHIN = 10.0
"""Seconds `auth` has to answer when it is asked again; no answer refuses."""

Ask = Callable[[], Coroutine[Any, Any, Principal | None]]


class Guest:
    """One open socket or stream."""

    def __init__(
        self, principal: Principal | None, ask: Ask, answer_within: float = ANSWER_WITHIN
    ) -> None:
        self.principal = principal
        self.refused = asyncio.Event()
        """Set once it may not stay."""
        self.code = UNAUTHORIZED
        """What its socket is closed with."""
        self._ask = ask
        self._answer_within = answer_within

    async def ask_again(self) -> None:
        """Ask `auth` whether it may stay."""
        known = self.principal
        if known is None or self.refused.is_set():
            return
        try:
            now = await run_apart(self._ask(), name="auth", limit=self._answer_within)
        except LeftBehindError as hangs:
            log.error("auth does not answer and ignores its end, so its guest has to leave")
            forsake(hangs.task)
            now = None
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
        *,
        answer_within: float = ANSWER_WITHIN,
    ) -> None:
        self._clock = clock or SystemClock()
        self._sleep = sleep
        self._answer_within = answer_within
        self.rounds = 0
        """How often the app revoked somebody: one who comes in notes it before `auth` is asked."""
        self._inside: defaultdict[str, set[Guest]] = defaultdict(set)

    @asynccontextmanager
    async def staying(
        self, principal: Principal | None, ask: Ask, *, since: int
    ) -> AsyncGenerator[Guest]:
        """Somebody is inside while the block runs, or refused from the start."""
        guest = Guest(principal, ask, self._answer_within)
        if principal is None:  # nobody was asked who they are
            yield guest
            return
        tasks = TaskOwner("guest")
        self._inside[principal.id].add(guest)
        try:
            await self._catch_up(guest, since)
            if principal.expires_at is not None:
                tasks.spawn(self._watch(guest), name="expiry")
            yield guest
        finally:
            inside = self._inside[principal.id]
            inside.discard(guest)
            if not inside:
                del self._inside[principal.id]
            await tasks.close()

    async def refuses(self, principal: Principal | None, ask: Ask, *, since: int) -> bool:
        """Whether somebody who was on the way since then may not go on."""
        guest = Guest(principal, ask, self._answer_within)
        await self._catch_up(guest, since)
        return guest.refused.is_set()

    async def ask_again(self, principal_id: str) -> None:
        """Ask about everybody who came in as that principal, side by side."""
        self.rounds += 1
        inside = tuple(self._inside.get(principal_id, ()))
        await asyncio.gather(*(guest.ask_again() for guest in inside))

    async def _catch_up(self, guest: Guest, since: int) -> None:
        if self.rounds != since or self._rest(guest) <= 0:
            await guest.ask_again()

    def _rest(self, guest: Guest) -> float:
        """Seconds until its principal expires."""
        until = guest.principal and guest.principal.expires_at
        return math.inf if until is None else until - self._clock.now()

    async def _watch(self, guest: Guest) -> None:
        while not guest.refused.is_set():
            rest = self._rest(guest)
            if rest == math.inf:
                return
            if rest <= 0:
                await guest.ask_again()
            else:
                await self._sleep(min(rest, LOOK_AGAIN))
