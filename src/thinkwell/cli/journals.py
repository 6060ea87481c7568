"""What `thinkwell turns show` says of a journal: its events as data, its requests whole."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from thinkwell.core import json
from thinkwell.core.errors import StoreError
from thinkwell.journal.events import (
    JournalBody,
    JournalEvent,
    Said,
    Unknown,
    encode_event,
    kind_of,
    read_events,
)
from thinkwell.journal.turns import TurnRecord
from thinkwell.store.base import Params, Row
from thinkwell.store.read_only import ReadOnlySqlite
from thinkwell.turn.recorded_requests import journal_before, journal_of, recorded_requests
from thinkwell.turn.travel.export import make_case
from thinkwell.turn.travel.story import PriceFunction, TurnStory, tell


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


def turn_story(
    database: ReadOnlySqlite, record: TurnRecord, price: PriceFunction | None
) -> TurnStory | None:
    """What happened in a turn, step by step; None if its journal is no longer kept."""

    async def told() -> TurnStory:
        beside = Beside(database)
        earlier = await journal_before(beside, record)
        return await tell(await make_case(beside, record), price, earlier)

    try:
        return asyncio.run(told())
    except StoreError:
        return None


def turn_requests(database: ReadOnlySqlite, record: TurnRecord) -> list[dict[str, Any]]:
    """What each model call of the turn was given, as JSON data."""
    found = asyncio.run(recorded_requests(Beside(database), record))
    return [json.loads(json.dumps(each)) for each in found]
