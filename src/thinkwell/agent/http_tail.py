"""Following a turn for somebody on the other side of HTTP: leaving stops nothing (spec/01 §14.6).

Any number of readers may follow one turn. A reader keeps no place in the turn: it looks at what is
durable whenever something has happened, so it cannot hold the turn up and cannot miss anything.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from types import TracebackType

from thinkwell.agent.turns import Turns
from thinkwell.core.signal import Disposer
from thinkwell.journal.turn_log import TurnLog
from thinkwell.journal.turns import TurnRecord
from thinkwell.messages.chunks import Chunk
from thinkwell.turn.settle import SAFE_ERROR
from thinkwell.turn.ticket import Ticket

KEEP_ALIVE = 15.0
"""Seconds of silence after which a reader says that it still lives."""


def tickets_of(turns: Turns) -> list[Ticket]:
    """The turn that runs and those that wait, in order."""
    return turns._queue.tickets()  # pyright: ignore[reportPrivateUsage]


async def follow(turns: Turns, ticket: Ticket) -> AsyncGenerator[Sequence[str]]:
    """The chunks of a turn, as JSON texts, from its start to its end.

    They come in the batches in which they became durable; an empty batch says that nothing came
    for a while.
    """
    told = 0
    with _News(turns, ticket) as news:
        while True:
            news.clear()
            over = ticket.ended is not None or ticket.result.done()
            fresh = ticket.written_from(told)
            if fresh:
                told += len(fresh)
                yield fresh
            if over:
                return
            if not await news.wait():
                yield ()


def last_chunks(record: TurnRecord) -> list[Chunk]:
    """How a stream says that its turn did not complete (spec/01 §14.4)."""
    if record.status == "error":
        return [{"type": "error", "errorText": record.client_error or SAFE_ERROR}]
    return [{"type": "abort"}] if record.status == "aborted" else []


def end_of(ticket: Ticket) -> TurnRecord:
    """The row of a turn that has ended. Raises if its host stopped first: it goes on elsewhere."""
    if ticket.ended is None:
        ticket.result.result()
        raise RuntimeError("a turn has a result, but nobody was told its end")
    return ticket.ended


class _News:
    """Wakes one reader whenever there may be something new about a turn."""

    def __init__(self, turns: Turns, ticket: Ticket) -> None:
        self._turns = turns
        self._ticket = ticket
        self._news = asyncio.Event()
        self._log: TurnLog | None = None
        self._disposers: list[Disposer] = []

    def __enter__(self) -> _News:
        self._disposers.append(self._turns.changes.subscribe(self._news.set))
        self._ticket.result.add_done_callback(self._wake)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ticket.result.remove_done_callback(self._wake)
        for dispose in self._disposers:
            dispose()

    def clear(self) -> None:
        """The reader is about to look."""
        self._news.clear()
        running = self._turns.running
        mine = running is not None and running.record.request_id == self._ticket.record.request_id
        if running is not None and mine and running.log is not self._log:
            self._log = running.log
            self._disposers.append(running.log.subscribe(lambda _first, _bodies: self._news.set()))

    async def wait(self) -> bool:
        """Until something has happened; False if nothing did for a while."""
        try:
            async with asyncio.timeout(KEEP_ALIVE):
                await self._news.wait()
        except TimeoutError:
            return False
        return True

    def _wake(self, _: object) -> None:
        self._news.set()
