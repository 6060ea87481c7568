"""A turn in one file: its row, its journal, and everything the journal refers to.

File format 1: a JSON object that says `"thinkwell": "turn"` and `"version": 1`. A field may be
added with a default, nothing else changes without a new number. A case holds what was stored and no
more: what hooks have hidden is not in it, and headers that may hold a credential were never written
down.

`Case` is also what the other parts of time travel read, whether it comes from a file or a store.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

import msgspec

from thinkwell.core import json
from thinkwell.core.errors import ConfigurationError, StoreError
from thinkwell.journal.events import CallSettled, ModelAsked, StoredPath, read_events
from thinkwell.journal.ledger import LedgerRow
from thinkwell.journal.reading import StoredJournal
from thinkwell.journal.turn_log import LogEvent
from thinkwell.journal.turns import TurnRecord
from thinkwell.messages.message import UIMessage
from thinkwell.session.versions import PastMessage

VERSION = 1
LeftOut: TypeAlias = Literal["headers", "principal", "body", "state"]
"""What an export may leave out: a replay does not compare it then."""
LEFT_OUT: tuple[LeftOut, ...] = ("headers", "principal", "body", "state")


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One turn with everything that is needed to tell it, to replay it and to fork it."""

    turn: TurnRecord
    journal: StoredJournal
    paths: Mapping[str, Sequence[str]] = {}
    """Ids of the messages that were read, root side first, by the last one of each path."""
    depth: int = 1
    """How many messages the path to the first of them has."""
    messages: Mapping[str, Mapping[int, UIMessage]] = {}
    """What they said, by id and version."""
    texts: Mapping[str, str] = {}
    """Prompts and tool schemas by their hash."""
    calls: tuple[LedgerRow, ...] = ()
    """The ledger of the turn."""
    state: Any = None
    """The agent's state when the case was made."""
    left_out: tuple[LeftOut, ...] = ()

    async def path(self, path: StoredPath) -> Sequence[PastMessage]:
        """Messages of the session as they were read (`Sources`)."""
        ids = list(self.paths.get(path.leaf, ()))[-path.count :]
        if len(ids) != path.count or ids[0] != path.first:
            raise StoreError(f"The case does not hold the path to the message {path.leaf!r}.")
        return [self._past(each, path.versions.get(at, 1)) for at, each in enumerate(ids)]

    async def text(self, digest: str) -> str:
        """A prompt or the schemas of tools (`Sources`)."""
        if digest not in self.texts:
            raise StoreError(f"The case does not hold the text {digest}.")
        return self.texts[digest]

    def _past(self, message_id: str, version: int) -> PastMessage:
        message = self.messages.get(message_id, {}).get(version)
        if message is None:
            raise StoreError(f"The case does not hold version {version} of {message_id!r}.")
        return PastMessage(message, len(json.dump_bytes(message)))

    def history(self) -> list[UIMessage]:
        """The conversation as the turn found it: its own question is the last message of it."""
        first = next((path for path in _read_paths(self.journal)), None)
        if first is None:
            ids = next(iter(self.paths.values()), ())
            return [self._past(each, min(self.messages[each])).message for each in ids]
        ids = list(self.paths.get(first.leaf, ()))[-first.count :]
        found = [self._past(i, first.versions.get(at, 1)).message for at, i in enumerate(ids)]
        if self.turn.continuation and found:
            # Each approved call that ran before the first request has changed the stored reply.
            read = first.versions.get(len(ids) - 1, 1)
            found[-1] = self._past(ids[-1], max(read - _ran_before(self.journal), 1)).message
        return found

    def to_json(self) -> str:
        """The text of its file, one line for each chunk and event, so that a diff can be read."""
        about: dict[str, Any] = {
            "thinkwell": "turn",
            "version": VERSION,
            "agent": self.turn.agent_id,
            "leftOut": self.left_out,
            "turn": _row(self.turn),
            "state": self.state,
            "depth": self.depth,
            "paths": self.paths,
            "texts": self.texts,
            "messages": {
                i: {str(v): m for v, m in all_.items()} for i, all_ in self.messages.items()
            },
            "calls": [_row(call) for call in self.calls],
        }
        lines = [f'"{name}": {json.dumps(msgspec.to_builtins(about[name]))}' for name in about]
        chunks = [_text_of_chunk(body) for body in self.journal.bodies]
        events = [f'["{e.kind}",{e.seq},{e.body}]' for e in self.journal.events]
        lines += [f'"chunks": {_lined(chunks)}', f'"events": {_lined(events)}']
        return "{\n" + ",\n".join(lines) + "\n}\n"

    def save(self, path: str | Path) -> None:
        """Write the file."""
        Path(path).write_text(self.to_json())

    @classmethod
    def load(cls, path: str | Path) -> Case:
        """Read a file. Raises `ConfigurationError` that says what is wrong with it."""
        try:
            return read_case(Path(path).read_text())
        except OSError as error:
            raise ConfigurationError(f"Cannot read the case {path}: {error.strerror}.") from error
        except (ConfigurationError, msgspec.ValidationError, KeyError, TypeError) as error:
            raise ConfigurationError(f"{path} is no case of a turn: {error}") from error


def read_case(text: str | bytes) -> Case:
    """The case in a JSON text."""
    try:
        data = json.loads(text)
    except ValueError as error:
        raise ConfigurationError(f"it is no JSON ({error}).") from error
    if not isinstance(data, dict) or cast("Any", data).get("thinkwell") != "turn":
        raise ConfigurationError("write one with `thinkwell turns export ID > case.json`.")
    given = cast("dict[str, Any]", data)
    if given["version"] > VERSION:
        raise ConfigurationError(
            f"it has version {given['version']}; this Thinkwell reads up to {VERSION}."
        )
    stored = given["messages"]
    return Case(
        turn=msgspec.convert(_fields(given["turn"]), TurnRecord, strict=False),
        journal=StoredJournal(
            tuple(b if isinstance(b, str) else json.dumps(b) for b in given["chunks"]),
            tuple(LogEvent(kind, seq, json.dumps(body)) for kind, seq, body in given["events"]),
        ),
        paths=given["paths"],
        depth=given["depth"],
        messages={i: {int(v): m for v, m in all_.items()} for i, all_ in stored.items()},
        texts=given["texts"],
        calls=tuple(msgspec.convert(_fields(each), LedgerRow) for each in given["calls"]),
        state=given.get("state"),
        left_out=tuple(given.get("leftOut", ())),
    )


def _ran_before(journal: StoredJournal) -> int:
    """How many calls had their result before a model was asked."""
    count = 0
    for event in read_events(journal):
        if isinstance(event, ModelAsked):
            break
        count += isinstance(event, CallSettled)
    return count


def _read_paths(journal: StoredJournal) -> list[StoredPath]:
    asked = [event for event in read_events(journal) if isinstance(event, ModelAsked)]
    return [event.history for event in asked if event.history is not None]


def _text_of_chunk(body: str) -> str:
    """A chunk as JSON data; as a text where reading and writing it would change a byte."""
    return body if json.dumps(json.loads(body)) == body else json.dumps(body)


def _lined(items: Sequence[str]) -> str:
    return "[]" if not items else "[\n" + ",\n".join(items) + "\n]"


def _row(row: msgspec.Struct) -> dict[str, Any]:
    """The fields of a row, in the spelling of the wire."""
    data = cast("dict[str, Any]", msgspec.to_builtins(row))
    return {re.sub(r"_([a-z])", lambda m: m[1].upper(), name): data[name] for name in data}


def _fields(data: dict[str, Any]) -> dict[str, Any]:
    return {re.sub(r"([A-Z])", lambda m: f"_{m[1].lower()}", name): data[name] for name in data}
