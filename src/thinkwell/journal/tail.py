"""What a reader of a turn is told: who began, every durable chunk once, updates, one end.

There is one tail for all readers: WebSocket frames, SSE, callbacks, `stream`, features. While a
turn waits or runs, its handle tells these events from memory (`turn/handle.py`), each after the
commit that covers it; when it has ended, `read_tail` makes the same events of what is stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from thinkwell.journal.reading import read_packed_journal
from thinkwell.journal.turn_log import replied
from thinkwell.journal.turns import TurnRecord
from thinkwell.messages.chunks import Chunk
from thinkwell.messages.message import UIMessage
from thinkwell.store.base import Reader


class Started(msgspec.Struct, frozen=True):
    """The turn has its slot and a journal. A turn that never ran has no such event."""

    record: TurnRecord
    written: int = 0
    """How many chunks are durable already: earlier attempts wrote them, or the reader is late."""


class Chunks(msgspec.Struct, frozen=True):
    """Chunks that became durable together; nothing at all for a reader that asked about silence."""

    first: int
    """The number of the first one, counted from 0 over the whole turn."""
    bodies: Sequence[str] = ()
    """Each as its JSON text."""
    replied: Sequence[int] = ()
    """Numbers of chunks before which the reply of a step was complete; its tools come behind."""

    @property
    def upto(self) -> int:
        """The number of the chunk that comes next."""
        return self.first + len(self.bodies)


class Updated(msgspec.Struct, frozen=True):
    """A message has changed beside the stream: a call in it was answered or came to its end."""

    message: UIMessage


class Ended(msgspec.Struct, frozen=True):
    """The last event: the end is stored, and the clients know it."""

    record: TurnRecord
    error: str | None = None
    """What clients read of a failure."""
    reply: str | None = None
    """The stored text of its reply, where the end has just written it."""
    failure: Exception | None = None
    """Nobody hears more here, but the turn has not ended: its app stops, and it goes on later."""


TailEvent: TypeAlias = Started | Chunks | Updated | Ended
EndedTurn: TypeAlias = tuple[Started, Chunks, Ended]
"""The whole tail of a turn that has ended."""


async def read_tail(reader: Reader, record: TurnRecord, start: int = 0) -> EndedTurn:
    """The events of a turn that has ended, from the chunk `start` on, as far as they are kept."""
    journal = await read_packed_journal(reader, record.agent_id, record.request_id)
    bodies, events = ((), ()) if journal is None else (journal.bodies, journal.events)
    return (
        Started(record, len(bodies)),
        Chunks(min(start, len(bodies)), bodies[start:], replied(events, start)),
        Ended(record, record.client_error),
    )


def end_chunks(status: str, error: str | None) -> list[Chunk]:
    """How a stream says that its turn did not complete (spec/01 §14.4)."""
    if status == "error":
        return [{"type": "error", "errorText": error or ""}]
    return [{"type": "abort"}] if status == "aborted" else []
