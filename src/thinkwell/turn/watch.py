"""Time limits of one model call: the call, its first word, the pauses, and the stall watchdog.

Running over a limit fails the call; a stall makes the turn try again (`StalledError`). Only what is
configured costs anything.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from types import TracebackType

from thinkwell.core.errors import ModelTimeoutError, TurnError
from thinkwell.turn.ending import StageError, StalledError
from thinkwell.turn.settings import TurnSettings


class Watch:
    """`async with` it around a stream; `rest()` and `heard()` around everything that comes."""

    def __init__(self, settings: TurnSettings) -> None:
        self._limits = settings.limits
        self._stall = settings.stall_timeout or None
        pauses = (self._limits.first_chunk, self._limits.chunk, self._limits.step, self._stall)
        self.watching = any(pauses)
        self._pause = asyncio.timeout(None)
        self._step = asyncio.timeout(self._limits.step)
        self._kind = ""

    async def __aenter__(self) -> None:
        await self._step.__aenter__()
        await self._pause.__aenter__()
        if self.watching:
            self._arm(self._limits.first_chunk, "before its first word")

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            await self._leave(kind, error, trace)
        except TimeoutError as timeout:
            if self._step.expired():
                text = f"The model call took longer than {self._limits.step:g} seconds."
            elif self._pause.expired() and self._kind == "stall":
                raise StalledError("The model said nothing for too long.") from timeout
            elif self._pause.expired():
                text = f"The model was silent for too long {self._kind}."
            else:
                raise
            raise ModelTimeoutError(text) from timeout

    def rest(self) -> None:
        """Something came: nobody waits for the model until `heard`."""
        self._pause.reschedule(None)

    def heard(self) -> None:
        """What came is dealt with: the next pause begins."""
        self._arm(self._limits.chunk, "between two words")

    async def _leave(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            await self._pause.__aexit__(kind, error, trace)
        except TimeoutError as timeout:
            await self._step.__aexit__(TimeoutError, timeout, timeout.__traceback__)
            raise
        await self._step.__aexit__(kind, error, trace)

    def _arm(self, limit: float | None, kind: str) -> None:
        """The shorter of the limit and the stall watchdog decides."""
        pause, self._kind = limit, kind
        if self._stall is not None and (pause is None or self._stall < pause):
            pause, self._kind = self._stall, "stall"
        loop = asyncio.get_running_loop()
        self._pause.reschedule(None if pause is None else loop.time() + pause)


@asynccontextmanager
async def limited(seconds: float | None) -> AsyncGenerator[None]:
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
