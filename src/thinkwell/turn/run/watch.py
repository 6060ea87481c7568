"""Time limits of one model call: the call, its first word, the pauses, and the stall watchdog.

Running over a limit fails the call; a stall, and a gap within a reply, makes the turn go on with
another attempt (`StalledError`). A model that ignores that it was cancelled is left behind with its
attempt, as a hook is (`interrupt.py`).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from types import TracebackType

from thinkwell.core.errors import ModelTimeoutError, TurnError
from thinkwell.core.tasks import UNWIND
from thinkwell.core.visits import Guard, current_guard
from thinkwell.turn.end.ending import StageError, StalledError
from thinkwell.turn.run.interrupt import MODEL_CALL
from thinkwell.turn.run.settings import TurnSettings

STALL, GAP = "stall", "between two words"
UNLIMITED: AbstractAsyncContextManager[None] = nullcontext()
"""Stands in a turn that may take as long as it likes."""


class Watch:
    """`async with` it around a stream; `came()` and `heard()` around everything that comes.

    Both only note the time: a timer that fires too early is set anew then, because moving it for
    every delta would cost more than the delta.
    """

    def __init__(self, settings: TurnSettings) -> None:
        self._limits = settings.limits
        self._stall = settings.stall_timeout or None
        self._loop = asyncio.get_running_loop()
        self._limit = asyncio.timeout(None)
        self._took_too_long = False
        """Whether it was the whole call, not a pause, that ran over its limit."""
        self._step_ends = math.inf
        self._between = self._shorter(self._limits.chunk, GAP)
        self._first = self._shorter(self._limits.first_chunk, "before its first word")
        self._held_at = 0.0
        self._kind = ""
        self._since = 0.0
        self._deadline: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._is_over = False
        self._guard = current_guard.get()
        self._loss: asyncio.TimerHandle | None = None
        self.lost = False
        """Whether it was left behind: nobody hears it any more."""

    async def __aenter__(self) -> None:
        await self._limit.__aenter__()
        first = self._first
        limits = [each for each in (first[0], self._between[0], self._limits.step) if each]
        if limits:
            # The shortest of them all: then no delta has to move it.
            self._set_timer(self._loop.time() + min(limits))
        if self._limits.step:
            self._step_ends = self._loop.time() + self._limits.step
        self._arm(*first)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._loss is not None:
            self._loss.cancel()
        try:
            await self._limit.__aexit__(kind, error, trace)
        except TimeoutError as timeout:
            if self.lost:
                raise asyncio.CancelledError from timeout
            if not self._limit.expired():
                raise
            if self._took_too_long:
                text = f"The model call took longer than {self._limits.step:g} seconds."
            elif self._kind in (STALL, GAP):
                pause = self._limits.chunk if self._kind == GAP else self._stall
                raise StalledError("The model said nothing for too long.", pause) from timeout
            else:
                text = f"The model was silent for too long {self._kind}."
            raise ModelTimeoutError(text) from timeout
        if self.lost:  # however it ended: the turn went on without it
            raise asyncio.CancelledError from error

    def came(self) -> None:
        """Something came: nobody waits for the model until `heard`. Nobody hears it any more if the
        model ignored that its time was up.
        """
        if self._is_over:
            raise asyncio.CancelledError
        self._deadline = None

    def heard(self) -> None:
        """What came is dealt with: the next pause begins."""
        if self._between[0] is not None:
            self._arm(*self._between)

    def hold(self) -> None:
        """The call waits before it reaches the model: none of its limits counts until `go_on`."""
        self._held_at, self._deadline = self._loop.time(), None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def go_on(self) -> None:
        """The model is called now."""
        self._step_ends += self._loop.time() - self._held_at
        if self._step_ends < math.inf:
            self._set_timer(self._step_ends)
        self._arm(*self._first)

    def _shorter(self, limit: float | None, kind: str) -> tuple[float | None, str]:
        """The shorter of the limit and the stall watchdog decides."""
        if self._stall is not None and (limit is None or self._stall < limit):
            return self._stall, STALL
        return limit, kind

    def _arm(self, pause: float | None, kind: str) -> None:
        if pause is None:
            return
        self._kind = kind
        self._since = self._loop.time()
        self._deadline = self._since + pause
        if self._timer is None or self._deadline < self._timer_at:
            self._set_timer(self._deadline)

    def _end(self, limit: float) -> None:
        """Time is up: the model is cancelled, and has a moment to end."""
        self._is_over = True
        guard = self._guard
        if guard is not None:
            moment = max(guard.grace(), UNWIND)
            self._loss = self._loop.call_later(moment, self._lose, guard, limit)

    def _lose(self, guard: Guard, limit: float) -> None:
        self.lost = True
        guard.lost(MODEL_CALL, limit)

    def _set_timer(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = when
        self._timer = self._loop.call_at(when, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._step_ends <= self._timer_at:
            self._took_too_long = True
            self._limit.reschedule(self._loop.time())
            self._end(self._limits.step or 0.0)
        elif self._deadline is not None and self._deadline <= self._timer_at:
            self._limit.reschedule(self._loop.time())
            self._end(self._deadline - self._since)
        # While nobody waits for the model, `heard` sets it again, unless the step ends before.
        elif (when := min(self._deadline or math.inf, self._step_ends)) < math.inf:
            self._set_timer(when)


@asynccontextmanager
async def limited(seconds: float) -> AsyncGenerator[None]:
    """The time a whole turn may take."""
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            yield
    except TimeoutError as error:
        if not limit.expired():
            raise
        raise StageError(
            "turn", TurnError(f"The turn took longer than {seconds:g} seconds.")
        ) from error
