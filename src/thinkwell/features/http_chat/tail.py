"""Following a turn from the other side of HTTP: leaving stops nothing (spec/01 §14.6)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from thinkwell.journal.tail import Chunks, end_chunks
from thinkwell.journal.turns import TurnRecord
from thinkwell.messages.chunks import Chunk
from thinkwell.turn.end.end_turn import SAFE_ERROR
from thinkwell.turn.handle import TurnHandle

KEEP_ALIVE = 15.0
"""Seconds of silence after which a reader says that it still lives."""

SLICE = 256
"""Chunks that leave together at most."""


async def follow(handle: TurnHandle) -> AsyncGenerator[Sequence[str]]:
    """The chunks of a turn, as JSON texts, from its start to its end.

    They come in the batches in which they became durable, long ones in slices, so that a slow
    reader keeps little of them in the server's buffers. An empty batch says that nothing came for a
    while.
    """
    async with aclosing(handle.tail(silence=KEEP_ALIVE)) as events:
        async for event in events:
            if isinstance(event, Chunks):
                for begin in range(0, len(event.bodies), SLICE):
                    yield event.bodies[begin : begin + SLICE]
                if not event.bodies and not event.answered:
                    yield ()


def last_chunks(record: TurnRecord) -> list[Chunk]:
    """How a stream says that its turn did not complete, in words for clients (spec/01 §14.4)."""
    return end_chunks(record.status, record.client_error or SAFE_ERROR)


def end_of(handle: TurnHandle) -> TurnRecord:
    """The row of a turn that has ended. Raises if its host stopped first: it goes on elsewhere."""
    if handle.ended is None:
        handle.result()
        raise RuntimeError("a turn has a result, but nobody was told its end")
    return handle.ended.record
