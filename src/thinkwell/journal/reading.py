"""Reading a journal back: a live one after a crash, a packed one after the turn has ended."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import msgspec

from thinkwell.core import json
from thinkwell.core.errors import StoreError
from thinkwell.journal.turns import TurnRecord
from thinkwell.store.base import Reader, Transaction

log = logging.getLogger("thinkwell.journal")


class StoredEvent(msgspec.Struct, frozen=True):
    """A journal entry that is no chunk, and how many chunks stand before it."""

    kind: str
    seq: int
    body: dict[str, Any]


class StoredJournal(msgspec.Struct, frozen=True):
    """What a turn had made durable."""

    bodies: tuple[str, ...]
    """Its chunks as JSON texts, byte for byte as they were told."""
    events: tuple[StoredEvent, ...]
    """Its events as (kind, body), oldest first:

    `model` for the end of a model call, `hidden` for a chunk clients do not see, `answer` for what
    came from outside while the turn ran.
    """

    def in_order(self) -> Iterator[StoredEvent]:
        """Everything as it happened; a chunk is an event of kind `chunk`."""
        events = list(self.events)
        for seq, body in enumerate(self.bodies):
            while events and events[0].seq <= seq:
                yield events.pop(0)
            yield StoredEvent("chunk", seq, json.loads(body))
        yield from events


_raw_list = msgspec.json.Decoder(list[msgspec.Raw])


async def read_journal(reader: Reader, record: TurnRecord) -> StoredJournal:
    """The journal of a turn that has not ended.

    Scans from the turn's start: the live journal has no index by turn.
    """
    bodies: list[str] = []
    events: list[StoredEvent] = []
    if record.journal_start is not None:
        rows = await reader.fetch_all(
            "read_journal",
            {"agent": record.agent_id, "turn": record.request_id, "start": record.journal_start},
        )
        for row in rows:
            if row["kind"] == "chunks":
                bodies.extend(_split(row["body"]))
            else:
                events.append(StoredEvent(row["kind"], row["seq_from"], json.loads(row["body"])))
    return StoredJournal(tuple(bodies), tuple(events))


async def read_packed(reader: Reader, agent_id: str, request_id: str) -> tuple[str, ...]:
    """The chunks of a turn that has ended, or nothing if they are no longer kept."""
    row = await reader.fetch_one("packed_journal", {"agent": agent_id, "turn": request_id})
    return () if row is None else tuple(_split(row["chunks"]))


async def pack_journal(
    tx: Transaction, record: TurnRecord, bodies: list[str], *, now: float, needed: int | None
) -> None:
    """Keep the whole stream in one row and drop live rows before `needed`, which nobody needs."""
    await tx.execute(
        "pack_journal",
        {
            "agent": record.agent_id,
            "turn": record.request_id,
            "chunks": f"[{','.join(bodies)}]",
            "settled_at": now,
        },
    )
    if needed is not None:
        await tx.execute("trim_journal", {"needed": needed})


async def needed_journal(reader: Reader) -> int | None:
    """The first live row that some turn may need; None if that cannot be told.

    Reads rows of all agents, so not in a transaction: damage to one would doom it.
    """
    try:
        row = await reader.fetch_one("needed_journal", {})
    except StoreError as error:
        log.error("the journal cannot be trimmed: %s", error, extra={"action": "trim"})
        return None
    return None if row is None else row["pos"]


def _split(text: str) -> list[str]:
    return [bytes(raw).decode() for raw in _raw_list.decode(text)]
