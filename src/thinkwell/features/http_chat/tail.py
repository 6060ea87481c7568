"""Following a turn from the other side of HTTP: leaving stops nothing (spec/01 §14.6)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Sequence

from thinkwell.journal.tail import Chunks, Ended, TailEvent, end_chunks
from thinkwell.journal.turns import TurnRecord
from thinkwell.messages.chunks import Chunk
from thinkwell.turn.end.end_turn import SAFE_ERROR

KEEP_ALIVE = 15.0
"""Seconds of silence after which a reader says that it still lives."""

SLICE = 256
"""Chunks that leave together at most."""


async def batches(tail: AsyncIterable[TailEvent]) -> AsyncGenerator[Sequence[str] | TurnRecord]:
    """The chunks of a turn, as JSON texts, from its start to its end; last the row of its end.

    They come in the batches in which they became durable, long ones in slices, so that a slow
    reader keeps little of them in the server's buffers. An empty batch says that nothing came for a
    while. Raises if the host stopped first: the turn goes on at its next start.
    """
    async for event in tail:
        if isinstance(event, Chunks):
            for begin in range(0, len(event.bodies), SLICE):
                yield event.bodies[begin : begin + SLICE]
            if not event.bodies and not event.replied:
                yield ()
        elif isinstance(event, Ended):
            if event.failure is not None:
                raise event.failure
            yield event.record


def last_chunks(record: TurnRecord) -> list[Chunk]:
    """How a stream says that its turn did not complete, in words for clients (spec/01 §14.4)."""
    return end_chunks(record.status, record.client_error or SAFE_ERROR)
