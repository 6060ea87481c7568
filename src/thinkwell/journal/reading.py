"""Reading a journal back: a live one after a crash, a packed one after the turn has ended."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from thinkwell.core import json
from thinkwell.core.errors import StoreError
from thinkwell.journal.packing import (
    FORMAT,
    split_array,
    unpack_events,
    unpack_stream,
)
from thinkwell.journal.turn_log import LogEvent
from thinkwell.journal.turns import TurnRecord
from thinkwell.store.base import Reader, Row


class StoredEvent(msgspec.Struct, frozen=True):
    """A journal entry, decoded, and how many chunks stand before it."""

    kind: str
    seq: int
    body: dict[str, Any]


class StoredJournal(msgspec.Struct, frozen=True):
    """What a turn had made durable."""

    bodies: tuple[str, ...]
    """Its chunks as JSON texts, byte for byte as they were told."""
    events: tuple[LogEvent, ...]
    """Everything else, oldest first; `journal/events.py` names the kinds."""

    def in_order(self) -> Iterator[StoredEvent]:
        """Everything as it happened; a chunk is an event of kind `chunk`."""
        events = deque(self.events)
        for seq, body in enumerate(self.bodies):
            while events and events[0].seq <= seq:
                yield _decoded(events.popleft())
            yield StoredEvent("chunk", seq, json.loads(body))
        yield from map(_decoded, events)

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        """The bodies of all events of one kind."""
        return [json.loads(event.body) for event in self.events if event.kind == kind]


def _decoded(event: LogEvent) -> StoredEvent:
    return StoredEvent(event.kind, event.seq, json.loads(event.body))


async def read_journal(reader: Reader, record: TurnRecord) -> StoredJournal:
    """The journal of a turn that has not ended, for whoever looks at one turn.

    Scans from the turn's start: the live journal has no index by turn. Raises `StoreError` if a
    chunk is missing.
    """
    if record.journal_start is None:
        return StoredJournal((), ())
    named = {"agent": record.agent_id, "turn": record.request_id, "start": record.journal_start}
    return live_journal(record, await reader.fetch_all("read_journal", named))


def live_journal(record: TurnRecord, rows: Iterable[Row]) -> StoredJournal:
    """What the live rows of a turn say.

    Raises `StoreError` if a chunk is missing: whoever went on behind the gap would number what
    comes next wrongly, and clients that count would miss it.
    """
    bodies: list[str] = []
    events: list[LogEvent] = []
    for row in rows:
        if row["kind"] == "chunks":
            if row["seq_from"] != len(bodies):
                raise StoreError(
                    f"The journal of the turn {record.request_id!r} is damaged: chunk "
                    f"{len(bodies)} is missing, the next one is {row['seq_from']}."
                )
            bodies.extend(split_array(row["body"]))
        else:
            events.append(LogEvent(row["kind"], row["seq_from"], row["body"]))
    return StoredJournal(tuple(bodies), tuple(events))


async def read_packed_journal(
    reader: Reader, agent_id: str, request_id: str
) -> StoredJournal | None:
    """Chunks and events of a turn that has ended; None if they are no longer kept."""
    row = await reader.fetch_one("packed_journal", {"agent": agent_id, "turn": request_id})
    return None if row is None else packed_journal(row)


def packed_journal(row: Row) -> StoredJournal:
    """The journal in a packed row. One of format 0 knows no events."""
    events = () if row["format"] == 0 else unpack_events(row["events"])
    return StoredJournal(tuple(_stream_of(row)), tuple(events))


def _stream_of(row: Row) -> list[str]:
    if row["format"] == 0:
        return split_array(row["chunks"])
    if row["format"] == FORMAT:
        return unpack_stream(row["stream"])
    raise StoreError(
        f"A stored stream has the format {row['format']}; this Thinkwell reads up to {FORMAT}."
    )
