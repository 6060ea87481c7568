"""The model requests of a turn, made again from its journal and from what that refers to.

The journal names messages of the session by their place on the path and their version, steps of
the turn by number, prompt and tools by hash; whatever else was sent is in it verbatim. So each
request comes back exactly as the model got it, also after a crash, after hooks have changed it,
and after messages were changed later. Two things do not come back: headers that may hold a
credential, and reasoning that was neither sent nor stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from thinkwell.core import json
from thinkwell.core.errors import StoreError
from thinkwell.journal.blobs import read_blob
from thinkwell.journal.events import ModelAsked, OutsideAnswered, Said, StoredPath, read_events
from thinkwell.journal.reading import StoredJournal, read_journal, read_packed_journal
from thinkwell.journal.turns import TurnRecord
from thinkwell.messages.convert import to_model_messages, truncate_message
from thinkwell.messages.fold import Fold
from thinkwell.messages.limits import MAX_ROW_BYTES
from thinkwell.messages.model_messages import ModelMessage
from thinkwell.models.base import ModelRequest, ToolSpec
from thinkwell.session.versions import PastMessage, read_past_path
from thinkwell.store.base import Reader
from thinkwell.turn.run.request_record import request_of
from thinkwell.turn.run.step_result import step_blocks, step_messages


class RecordedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One model call of a turn."""

    step: int
    provider: str
    model: str
    at: float
    request: ModelRequest


async def journal_of(reader: Reader, record: TurnRecord) -> StoredJournal | None:
    """The journal of a turn, running or ended; None if it is no longer kept."""
    if record.settled:
        return await read_packed_journal(reader, record.agent_id, record.request_id)
    return await read_journal(reader, record)


async def journal_before(reader: Reader, record: TurnRecord) -> tuple[str, StoredJournal] | None:
    """The id and the journal of the turn before this one that asked a model, if it is kept."""
    before = await turn_before(reader, record)
    journal = None if before is None else await journal_of(reader, before)
    return None if before is None or journal is None else (before.request_id, journal)


async def turn_before(reader: Reader, record: TurnRecord) -> TurnRecord | None:
    """The turn accepted last before this one that asked a model."""
    names = {"agent": record.agent_id, "id": record.request_id}
    row = await reader.fetch_one("turn_before", names)
    return None if row is None else TurnRecord.from_row(row)


class LostRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A model call whose request does not come back, and why."""

    step: int
    provider: str
    model: str
    at: float
    problem: str


class Sources(Protocol):
    """Where the texts and messages are found that a journal refers to.

    Both raise `StoreError` for what is gone.
    """

    async def path(self, path: StoredPath) -> Sequence[PastMessage]:
        """Messages of the session in the versions that were read then."""
        ...

    async def text(self, digest: str) -> str:
        """The text with that hash."""
        ...


class StoredSources:
    """What one agent has stored."""

    def __init__(self, reader: Reader, agent_id: str) -> None:
        self._reader = reader
        self._scope = {"agent": agent_id, "session": ""}

    async def path(self, path: StoredPath) -> Sequence[PastMessage]:
        """See `Sources`."""
        past = await read_past_path(
            self._reader, self._scope, path.leaf, count=path.count, versions=path.versions
        )
        if past[0].message["id"] != path.first:
            raise StoreError(f"The path to the message {path.leaf!r} is no longer what it was.")
        return past

    async def text(self, digest: str) -> str:
        """See `Sources`."""
        text = await read_blob(self._reader, digest)
        if text is None:
            raise StoreError(f"The text {digest} that a request refers to is no longer kept.")
        return text


async def recorded_requests(reader: Reader, record: TurnRecord) -> list[RecordedRequest]:
    """What each model call of the turn was given, in order.

    Raises `StoreError` if something that the journal refers to is gone, or was never written.
    """
    journal = await journal_of(reader, record)
    if journal is None:
        return []
    requests: list[RecordedRequest] = []
    sources = StoredSources(reader, record.agent_id)
    for request in await requests_in(journal, record.message_id, sources):
        if isinstance(request, LostRequest):
            raise StoreError(request.problem)
        requests.append(request)
    return requests


async def requests_in(
    journal: StoredJournal, message_id: str | None, sources: Sources
) -> list[RecordedRequest | LostRequest]:
    """The requests of a journal; one that cannot be made again says why."""
    book = _Book(message_id, sources)
    requests: list[RecordedRequest | LostRequest] = []
    for event in read_events(journal):
        match event:
            case Said(chunk=chunk):
                book.fold.apply(chunk)
            case OutsideAnswered(part=part):
                book.fold.replace_call(part)
            case ModelAsked():
                requests.append(await _request(book, event))
            case _:
                pass
    return requests


async def _request(book: _Book, asked: ModelAsked) -> RecordedRequest | LostRequest:
    try:
        return await book.request(asked)
    except StoreError as error:
        return LostRequest(
            step=asked.step,
            provider=asked.provider,
            model=asked.model,
            at=asked.at,
            problem=str(error),
        )


class _Book:
    """Where the messages of a request are looked up, while the journal is read."""

    def __init__(self, message_id: str | None, sources: Sources) -> None:
        self._sources = sources
        self._history: Sequence[ModelMessage] = ()
        self._given: list[ModelMessage] = []
        self.fold = Fold({"id": message_id or "", "role": "assistant", "parts": []})

    async def request(self, asked: ModelAsked) -> RecordedRequest:
        if asked.history is not None:
            self._history, self._given = await self._path(asked.history), []
        if asked.incomplete is not None:
            raise StoreError(f"The request of step {asked.step} is not kept: {asked.incomplete}")
        self._given.extend(asked.given)
        messages: list[ModelMessage] = []
        for source, start, stop in asked.messages:
            messages.extend(self._source(source)[start:stop])
        tools = "[]" if asked.tools is None else await self._sources.text(asked.tools)
        request = request_of(
            asked.settings,
            messages=tuple(messages),
            system="" if asked.system is None else await self._sources.text(asked.system),
            tools=msgspec.json.decode(tools, type=tuple[ToolSpec, ...]),
        )
        return RecordedRequest(
            step=asked.step,
            provider=asked.provider,
            model=asked.model,
            at=asked.at,
            request=request,
        )

    def _source(self, source: str) -> Sequence[ModelMessage]:
        if source == "h":
            return self._history
        if source == "g":
            return self._given
        block = step_blocks(self.fold.message["parts"])[int(source[1:])]
        return step_messages(json.loads(json.dumps(block)))

    async def _path(self, path: StoredPath) -> list[ModelMessage]:
        messages: list[ModelMessage] = []
        for place, each in enumerate(await self._sources.path(path)):
            shortened = place < path.older or each.bytes > MAX_ROW_BYTES
            message = truncate_message(each.message) if shortened else each.message
            messages.extend(to_model_messages(message))
        return messages
