"""What `thinkwell turns show` says of a journal: its events as lines, its requests whole."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from thinkwell.core import json
from thinkwell.journal.events import (
    AttemptBegun,
    CallClaimed,
    CallSettled,
    HookDecided,
    JournalBody,
    JournalEvent,
    ModelAsked,
    ModelEnded,
    ModelFailed,
    OutsideAnswered,
    Said,
    Unknown,
    encode_event,
    kind_of,
    read_events,
)
from thinkwell.journal.turns import TurnRecord
from thinkwell.store.base import Params, Row
from thinkwell.store.read_only import ReadOnlySqlite
from thinkwell.turn.recorded_requests import journal_of, recorded_requests


class Beside:
    """A database that is read beside its server, for code that waits for its store."""

    def __init__(self, database: ReadOnlySqlite) -> None:
        self._database = database

    async def fetch_all(self, query: str, params: Params, /) -> Sequence[Row]:
        """Every row of the named query."""
        return self._database.fetch_all(query, params)

    async def fetch_one(self, query: str, params: Params, /) -> Row | None:
        """The first row of the named query, or None."""
        return next(iter(self._database.fetch_all(query, params)), None)


def turn_journal(database: ReadOnlySqlite, record: TurnRecord) -> list[JournalEvent | int]:
    """What happened in a turn; of the chunks of a stretch only how many they are."""
    journal = asyncio.run(journal_of(Beside(database), record))
    found: list[JournalEvent | int] = []
    for event in [] if journal is None else read_events(journal):
        if not isinstance(event, Said):
            found.append(event)
        elif found and isinstance(last := found[-1], int):
            found[-1] = last + 1
        else:
            found.append(1)
    return found


def events_as_lines(journal: Sequence[JournalEvent | int]) -> list[str]:
    """For people: one line each."""
    return [_chunks(event) if isinstance(event, int) else _line(event) for event in journal]


def events_as_data(journal: Sequence[JournalEvent | int]) -> list[dict[str, Any]]:
    """For programs: each with its `kind`, and what is stored of it."""
    return [_data(event) for event in journal]


def _data(event: JournalEvent | int) -> dict[str, Any]:
    match event:
        case int():
            return {"kind": "chunks", "count": event}
        case Unknown():
            return {**event.body, "kind": event.kind}
        case JournalBody():
            return {"kind": kind_of(event), **json.loads(encode_event(event))}
        case Said():
            return {"kind": "chunks", "count": 1}


def turn_requests(database: ReadOnlySqlite, record: TurnRecord) -> list[dict[str, Any]]:
    """What each model call of the turn was given, as JSON data."""
    found = asyncio.run(recorded_requests(Beside(database), record))
    return [json.loads(json.dumps(each)) for each in found]


def _chunks(count: int) -> str:
    return f"{count} chunk{'' if count == 1 else 's'}"


def _line(event: JournalEvent) -> str:
    match event:
        case AttemptBegun():
            code = "" if event.code is None else f", under {event.code}"
            return f"attempt {event.attempt}{code}"
        case ModelAsked():
            return f"step {event.step}: {event.provider}:{event.model} is asked"
        case ModelEnded():
            used = event.usage
            tokens = f"{used.input_tokens or 0:,} tokens in, {used.output_tokens or 0:,} out"
            return f"step {event.step_number}: {event.finish_reason}, {tokens}"
        case ModelFailed():
            return f"step {event.step}: the model call failed: {event.error}"
        case HookDecided():
            call = f" about {event.call_id}" if event.call_id else ""
            return f"{event.event}{call}: {json.dumps(event.said)}"
        case CallClaimed():
            return f"call {event.call_id}: {event.tool_name} runs ({event.effect})"
        case CallSettled():
            return f"call {event.call_id}: {event.outcome} after {event.took_ms:.0f} ms"
        case OutsideAnswered():
            return f"call {event.part.get('toolCallId')}: answered from outside"
        case _:
            return event.kind if isinstance(event, Unknown) else "the structured output is valid"
