"""Following a turn from the other side of HTTP: leaving stops nothing (spec/01 §14.6)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

from thinkwell.journal.turns import TurnRecord
from thinkwell.messages.chunks import Chunk
from thinkwell.turn.end.settle import SAFE_ERROR
from thinkwell.turn.handle import TurnHandle
from thinkwell.turn.tail import Tail, end_chunks

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
    told = 0
    with Tail(handle) as tail:
        async for moved in tail.moves(KEEP_ALIVE):
            fresh = handle.written_from(told)
            told += len(fresh)
            for begin in range(0, len(fresh), SLICE):
                yield fresh[begin : begin + SLICE]
            if not fresh and not moved:
                yield ()


def last_chunks(record: TurnRecord) -> list[Chunk]:
    """How a stream says that its turn did not complete, in words for clients (spec/01 §14.4)."""
    return end_chunks(record.status, record.client_error or SAFE_ERROR)


def end_of(handle: TurnHandle) -> TurnRecord:
    """The row of a turn that has ended. Raises if its host stopped first: it goes on elsewhere."""
    if handle.ended is None:
        handle.result.result()
        raise RuntimeError("a turn has a result, but nobody was told its end")
    return handle.ended
