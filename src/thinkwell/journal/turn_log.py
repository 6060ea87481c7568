"""The chunks of one running turn, in memory and on their way to the disk.

`append` takes one encoded chunk. It is *written* once the commit that covers it is done, and only
then does `told` hear of it: nothing is told before it is stored. There is one listener, the handle
of the turn, and it has all the readers. The log never touches the database; `GroupCommit` does and
calls `advance`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec

from thinkwell.core import json
from thinkwell.core.errors import AgentDeletedError, OwnershipLostError, StoreError
from thinkwell.journal.blobs import Blob

KEPT = "kept"
"""The kind of event that says how far an answer has come that the provider keeps."""


class Owner(msgspec.Struct, eq=False, weakref=True):
    """Which activation writes: the agent and the epoch it claimed."""

    agent_id: str
    epoch: int
    """0 until the agent has a row; then the epoch its first write got."""
    over: bool = False
    """Another activation took its place here, or the agent is deleted: it writes nothing more. The
    epoch alone does not say so before the agent has a row, or in the transaction that deletes it.
    """
    deleted: bool = False
    """Whether that is why."""
    born: Callable[[], None] | None = None
    """Called once the agent has a row, if it had none. Contract: returns at once."""

    def lost(self) -> OwnershipLostError:
        """Why it may not write."""
        error = AgentDeletedError if self.deleted else OwnershipLostError
        return error(self.agent_id)


class LogEvent(msgspec.Struct, frozen=True):
    """A journal entry that is no chunk: a model request, its end, a claim (`journal/events.py`)."""

    kind: str
    seq: int
    """How many chunks stand before it."""
    body: str
    """JSON text."""
    blobs: tuple[Blob, ...] = ()
    """Texts it refers to by their hash; they are stored with it."""


def replied(events: Iterable[LogEvent], start: int = 0) -> tuple[int, ...]:
    """Where steps were complete: the journal has an event at the end of each model call."""
    return tuple(each.seq for each in events if each.kind == "model" and each.seq >= start)


class Mark(NamedTuple):
    """How long a log was at some moment."""

    chunks: int
    events: int
    size: int
    noted: int


class Entries(NamedTuple):
    """What came into a log since a mark."""

    since: Mark
    chunks: int
    events: tuple[LogEvent, ...]
    size: int
    noted: int


LogListener = Callable[[int, Sequence[str], Sequence[LogEvent]], None]
"""Called with the first sequence number, the chunk texts and the events of each commit, in order.

Must not raise or block.
"""


class TurnLog:
    """The journal of one turn while it runs."""

    __slots__ = (
        "bodies",
        "erased",
        "events",
        "events_written",
        "failure",
        "kept",
        "kept_written",
        "noted",
        "owner",
        "packed",
        "request_id",
        "size",
        "told",
        "written",
    )

    def __init__(
        self,
        owner: Owner,
        request_id: str,
        bodies: Sequence[str] = (),
        events: Sequence[LogEvent] = (),
    ) -> None:
        self.owner = owner
        self.request_id = request_id
        self.bodies: list[str] = list(bodies)
        """Every chunk so far, as JSON text; the index is its sequence number."""
        self.events: list[LogEvent] = list(events)
        """Everything else so far, oldest first. Kept to the end, which packs it."""
        self.noted = sum(len(event.body) for event in self.events)
        """Characters of the events that say how the reply came about."""
        hidden = (event for event in self.events if event.kind == "hidden")
        self.size = sum(map(len, self.bodies)) + sum(len(event.body) for event in hidden)
        """Characters of all chunks, told or not: what the reply itself takes."""
        self.written = len(self.bodies)
        """How many of them are durable."""
        self.events_written = len(self.events)
        """How many events are durable."""
        self.failure: StoreError | None = None
        """Set when the store refused this log; the turn must end."""
        self.packed = False
        """The transaction that ends the turn holds the whole stream, or a clear has erased it: no
        live rows any more.
        """
        self.told: LogListener | None = None
        """Hears of every commit."""
        self.kept: msgspec.Struct | None = None
        """How far an answer has come that the provider keeps (`journal/events.py`), if it does."""
        self.kept_written: msgspec.Struct | None = None
        """What of that is on its way to the disk, or there."""
        self.erased = False
        """A clear has erased it: not even what its events refer to is stored any more."""

    def append(self, body: str) -> None:
        """Take one encoded chunk. Raises if the store has given this log up."""
        if self.failure is not None:
            raise self.failure
        self.bodies.append(body)
        self.size += len(body)

    def append_event(self, kind: str, body: str, blobs: tuple[Blob, ...] = ()) -> None:
        """Take an event that belongs after the chunks so far."""
        self.events.append(LogEvent(kind, len(self.bodies), body, blobs))
        if kind == "hidden":
            self.size += len(body)

    def write_kept(self) -> None:
        """A commit begins: it says how far the kept answer has come, with the chunks so far.

        What the last one said is not needed in memory any more: a long answer has thousands.
        """
        self.kept_written = self.kept
        for place in range(len(self.events) - 1, -1, -1):
            if self.events[place].kind == KEPT:
                del self.events[place]
                self.events_written -= place < self.events_written
                break
        self.append_event(KEPT, json.dumps(self.kept))

    def note_event(self, kind: str, seq: int, body: str) -> None:
        """An event that its own transaction has written already."""
        self.events.insert(self.events_written, LogEvent(kind, seq, body))
        self.events_written += 1

    def mark(self) -> Mark:
        """How long the log is now."""
        return Mark(len(self.bodies), len(self.events), self.size, self.noted)

    def since(self, mark: Mark) -> Entries:
        """What has come since then."""
        return Entries(
            mark,
            len(self.bodies) - mark.chunks,
            tuple(self.events[mark.events :]),
            self.size - mark.size,
            self.noted - mark.noted,
        )

    def take_back(self, entries: Entries) -> None:
        """Drop them: the commit that was to hold them has failed.

        What came later moves up; nobody has heard of it yet.
        """
        first, count = entries.since.chunks, entries.chunks
        del self.bodies[first : first + count]
        gone = {id(event) for event in entries.events}
        waiting = [e for e in self.events[self.events_written :] if id(e) not in gone]
        self.events[self.events_written :] = [
            msgspec.structs.replace(event, seq=event.seq - count) if event.seq > first else event
            for event in waiting
        ]
        self.size -= entries.size
        self.noted -= entries.noted

    @property
    def all_written(self) -> bool:
        """Whether nothing waits for a commit."""
        return self.written == len(self.bodies) and self.events_written == len(self.events)

    def advance(self, upto: int, events: Sequence[LogEvent] = ()) -> None:
        """The commit that covers `events` and everything before `upto` is done: tell."""
        start, self.written = self.written, upto
        if self.told is not None and (upto > start or events):
            self.told(start, self.bodies[start:upto], events)
