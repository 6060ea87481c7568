"""Short ways to read frames in tests."""

from typing import TypeVar

from thinkwell.core.tasks import Pieces
from thinkwell.wire.decode import decode_in_pieces
from thinkwell.wire.frames import Frame

T = TypeVar("T")


def finish(work: Pieces[T]) -> T:
    """The result of work in pieces, done at once."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value


def decode_frame(data: str | bytes) -> Frame:
    """The frame in one WebSocket message, read without pauses."""
    return finish(decode_in_pieces(data))
