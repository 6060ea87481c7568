"""Making a case of a turn that is stored: the journal, and whatever it refers to, in one piece."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import msgspec

from thinkwell.core import json
from thinkwell.core.errors import ConfigurationError, StoreError
from thinkwell.journal.events import ModelAsked, read_events
from thinkwell.journal.ledger import read_ledger
from thinkwell.journal.turn_log import LogEvent
from thinkwell.journal.turns import TurnRecord
from thinkwell.messages.message import UIMessage
from thinkwell.messages.validate import read_stored
from thinkwell.session.versions import read_end_of_path
from thinkwell.store.base import Reader
from thinkwell.turn.recorded_requests import StoredSources, journal_of
from thinkwell.turn.travel.case import LEFT_OUT, Case, LeftOut

_ENDS_ELSEWHERE = 50
"""Messages that are exported of a conversation in which the turn asked no model."""


async def make_case(
    reader: Reader, record: TurnRecord, *, leave_out: Collection[LeftOut] = ()
) -> Case:
    """The case of a turn that is stored. Raises `StoreError` if its journal is no longer kept."""
    journal = await journal_of(reader, record)
    if journal is None:
        raise StoreError(
            f"The journal of the turn {record.request_id} is no longer kept. Journals stay for "
            "seven days after the end of a turn."
        )
    sources = StoredSources(reader, record.agent_id)
    found = _Found()
    for asked in read_events(journal):
        if isinstance(asked, ModelAsked):
            await found.take(asked, sources)
    if not found.paths:
        await _path_of_turn(reader, record, found)
    elif record.continuation and record.message_id is not None:
        await _earlier_versions(reader, record.agent_id, record.message_id, found)
    owned = await reader.fetch_one("agent_row", {"id": record.agent_id})
    state = None if owned is None or owned["state"] is None else json.loads(owned["state"])
    case = Case(
        turn=record,
        journal=journal,
        paths=found.paths,
        depth=await _depth(reader, record, found),
        messages=found.messages,
        texts=found.texts,
        calls=tuple((await read_ledger(reader, record)).values()),
        state=state,
    )
    return _without(case, leave_out)


class _Found:
    """What the journal of a turn refers to."""

    def __init__(self) -> None:
        self.paths: dict[str, Sequence[str]] = {}
        self.messages: dict[str, dict[int, UIMessage]] = {}
        self.texts: dict[str, str] = {}

    async def take(self, asked: ModelAsked, sources: StoredSources) -> None:
        """What one request refers to. What is gone is left out: its request is lost."""
        try:
            for digest in (asked.system, asked.tools):
                if digest is not None and digest not in self.texts:
                    self.texts[digest] = await sources.text(digest)
            if asked.history is not None:
                past = [each.message for each in await sources.path(asked.history)]
                self.keep(asked.history.leaf, past, asked.history.versions)
        except StoreError:
            return

    def keep(self, leaf: str, past: Sequence[UIMessage], versions: Mapping[int, int]) -> None:
        """The end of a path; of two readings the longer one names it."""
        ids = [message["id"] for message in past]
        if len(ids) > len(self.paths.get(leaf, ())):
            self.paths[leaf] = ids
        for place, message in enumerate(past):
            self.messages.setdefault(message["id"], {})[versions.get(place, 1)] = message


async def _path_of_turn(reader: Reader, record: TurnRecord, found: _Found) -> None:
    """No model was asked: the conversation as it is now."""
    leaf = record.message_id if record.continuation else record.branch_from
    if leaf:
        scope = {"agent": record.agent_id, "session": ""}
        past = await read_end_of_path(reader, scope, leaf, count=_ENDS_ELSEWHERE)
        found.keep(leaf, past, {})


async def _earlier_versions(reader: Reader, agent_id: str, message_id: str, found: _Found) -> None:
    """What the reply said before this turn went on with it."""
    named = {"agent": agent_id, "session": "", "ids": json.dumps([message_id])}
    newest = max(found.messages.get(message_id, {1: None}))
    for row in await reader.fetch_all("message_versions", named):
        message = read_stored(row["content"])[0]
        if message is not None and row["version"] < newest:
            found.messages.setdefault(message_id, {})[row["version"]] = message


async def _depth(reader: Reader, record: TurnRecord, found: _Found) -> int:
    """Where the exported path begins: old messages are sent shortened, counted from the root."""
    for ids in found.paths.values():
        named = {"agent": record.agent_id, "session": "", "ids": json.dumps([ids[0]])}
        for row in await reader.fetch_all("message_rows", named):
            return row["depth"]
    return 1


def _without(case: Case, leave_out: Collection[LeftOut]) -> Case:
    unknown = set(leave_out) - set(LEFT_OUT)
    if unknown:
        wrong, known = sorted(unknown)[0], ", ".join(LEFT_OUT)
        raise ConfigurationError(f"An export cannot leave out {wrong!r}. Choose from: {known}.")
    turn, journal = case.turn, case.journal
    if "headers" in leave_out:
        events = tuple(map(_without_headers, journal.events))
        journal = msgspec.structs.replace(journal, events=events)
    if "principal" in leave_out:
        turn = msgspec.structs.replace(turn, principal=None)
    if "body" in leave_out:
        turn = msgspec.structs.replace(turn, body=None, metadata=None)
    return msgspec.structs.replace(
        case,
        turn=turn,
        journal=journal,
        state=None if "state" in leave_out else case.state,
        left_out=tuple(name for name in LEFT_OUT if name in leave_out),
    )


def _without_headers(event: LogEvent) -> LogEvent:
    if event.kind != "request":
        return event
    body = json.loads(event.body)
    body.get("settings", {}).pop("headers", None)
    return msgspec.structs.replace(event, body=json.dumps(body))
