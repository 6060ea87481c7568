"""Following a turn: its chunks as they become durable, for readers inside and outside the process.

A reader keeps no place in the turn: it looks at what is durable whenever something has happened, so
it cannot hold the turn up and cannot miss anything. Any number of readers may follow one turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from types import TracebackType

from thinkwell.core import json
from thinkwell.core.signal import Disposer
from thinkwell.journal.turn_log import TurnLog
from thinkwell.messages.chunks import Chunk
from thinkwell.turn.handle import TurnHandle


class Tail:
    """Tells its one reader when to look at a turn again. It listens until its `with` is left."""

    def __init__(self, handle: TurnHandle) -> None:
        self._handle = handle
        self._news = asyncio.Event()
        self._leave_log: Disposer | None = None
        self._disposers = (handle.on_log(self._follow_log), handle.on_end(self.wake))
        handle.result.add_done_callback(self._wake_at_the_end)

    def __enter__(self) -> Tail:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._handle.result.remove_done_callback(self._wake_at_the_end)
        for dispose in self._disposers:
            dispose()
        if self._leave_log is not None:
            self._leave_log()

    def wake(self) -> None:
        """Let the reader look."""
        self._news.set()

    async def moves(self, silence: float | None = None) -> AsyncIterator[bool]:
        """True at first and for all that is new; the last time after the end was told.

        False after so many seconds in which nothing happened.
        """
        moved = True
        while True:
            self._news.clear()
            over = self._handle.ended is not None or self._handle.result.done()
            yield moved
            if over:
                return
            moved = await self._wait(silence)

    async def _wait(self, seconds: float | None) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            return False
        return True

    def _follow_log(self, log: TurnLog) -> None:
        if self._leave_log is not None:
            self._leave_log()
        self._leave_log = log.subscribe(lambda _first, _bodies: self.wake())
        self.wake()

    def _wake_at_the_end(self, _: object) -> None:
        self.wake()


def end_chunks(status: str, error: str | None) -> list[Chunk]:
    """How a stream says that its turn did not complete (spec/01 §14.4)."""
    if status == "error":
        return [{"type": "error", "errorText": error or ""}]
    return [{"type": "abort"}] if status == "aborted" else []


async def follow(handle: TurnHandle, stop: Callable[[], Awaitable[object]]) -> AsyncIterator[Chunk]:
    """Every chunk once, in order, until the turn has ended. Leaving earlier calls `stop`."""
    told = 0
    try:
        with Tail(handle) as tail:
            async for _ in tail.moves():
                for body in handle.written_from(told):
                    told += 1
                    yield json.loads(body)
        await asyncio.wait([handle.result])
    finally:
        if not handle.result.done():
            await stop()
