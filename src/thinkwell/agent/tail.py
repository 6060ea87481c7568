"""Following a turn from inside the process: its chunks as they become durable."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

from thinkwell.core import json
from thinkwell.messages.chunks import Chunk
from thinkwell.turn.ending import TurnResult
from thinkwell.turn.ticket import Ticket


class Tail:
    """Tells its one reader when to look at a turn again."""

    def __init__(self, ticket: Ticket) -> None:
        self._ticket = ticket
        self._news = asyncio.Event()
        ticket.on_log(lambda log: (log.subscribe(lambda _first, _bodies: self.wake()), self.wake()))
        ticket.on_end(self.wake)
        ticket.result.add_done_callback(lambda _: self.wake())

    def wake(self) -> None:
        """Let the reader look."""
        self._news.set()

    async def moves(self) -> AsyncIterator[None]:
        """Once at first, then for all that is new; the last time after the end was told."""
        while True:
            self._news.clear()
            over = self._ticket.ended is not None or self._ticket.result.done()
            yield
            if over:
                return
            await self._news.wait()


def last_chunks(result: TurnResult) -> list[Chunk]:
    """How a stream says that its turn did not complete."""
    if result.status == "error":
        return [{"type": "error", "errorText": result.error or ""}]
    return [{"type": "abort"}] if result.status == "aborted" else []


async def follow(ticket: Ticket, stop: Callable[[], Awaitable[object]]) -> AsyncIterator[Chunk]:
    """Every chunk once, in order, until the turn has ended. Leaving earlier calls `stop`."""
    told = 0
    try:
        async for _ in Tail(ticket).moves():
            for body in ticket.written_from(told):
                told += 1
                yield json.loads(body)
        await asyncio.wait([ticket.result])
    finally:
        if not ticket.result.done():
            await stop()
