"""Which stored messages a model request was made of, so that the journal can name instead of copy.

Messages are told apart by identity: the ones that history gave, the ones that a step of this turn
made, and all others, which hooks, scopes or we ourselves brought. So a request costs the journal a
few references however long the conversation is, and nothing is encoded twice. A message that is
kept here cannot be freed, so no other one gets its identity.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from hashlib import blake2b
from operator import attrgetter, is_
from typing import Any

import msgspec

from thinkwell.core import json
from thinkwell.journal.blobs import Blob
from thinkwell.journal.events import ModelAsked, StoredPath
from thinkwell.messages.model_messages import ModelMessage
from thinkwell.models.base import Model, ModelRequest, ToolSpec

_NAMED = ("messages", "system", "tools")
"""Fields of a request that the event names in its own way."""
_SETTINGS = tuple(name for name in ModelRequest.__struct_fields__ if name not in _NAMED)
_settings_in = attrgetter(*_SETTINGS)
_USUAL = _settings_in(ModelRequest(messages=()))
_SECRET = ("auth", "key", "token", "secret", "cookie")
REDACTED = "[redacted]"
"""Stands for a header that may hold a credential: journals are kept, credentials must not be."""

Piece = tuple[str, int, int]


class RequestRecord:
    """What is known of the messages of one turn's requests."""

    def __init__(self) -> None:
        self._history: tuple[ModelMessage, ...] = ()
        self._path: StoredPath | None = None
        self._path_written = True
        self._known: dict[int, tuple[ModelMessage, str, int]] = {}
        self._given = 0
        self._system: tuple[str, Blob | None] = ("", None)
        self._tools: tuple[tuple[ToolSpec, ...], Blob | None] = ((), None)
        self._history_prints: Sequence[str] = ()
        self._printed: dict[int, tuple[ModelMessage, str]] = {}
        self._last_prints: Sequence[str] = ()

    def begin(
        self, history: tuple[ModelMessage, ...], path: StoredPath, prints: Sequence[str]
    ) -> None:
        """The conversation was read, for the first request or once more."""
        self._history, self._path, self._path_written = history, path, False
        self._history_prints = prints
        self._known = {key: known for key, known in self._known.items() if known[1][0] == "s"}
        self._given = 0

    def add_step(self, number: int, messages: Sequence[ModelMessage]) -> None:
        """A step of this turn has ended, and the journal holds its chunks."""
        for place, message in enumerate(messages):
            self._known[id(message)] = (message, f"s{number}", place)

    def asked(
        self, request: ModelRequest, model: Model, step: int, at: float
    ) -> tuple[ModelAsked, tuple[Blob, ...]]:
        """The event of a request, and the texts it refers to."""
        system, tools = self._system_of(request.system), self._tools_of(request.tools)
        pieces, given = self._pieces(request.messages)
        prints = self._prints(
            request.messages, intact=pieces[:1] == (("h", 0, len(self._history)),)
        )
        same, self._last_prints = same_beginning(self._last_prints, prints), prints
        event = ModelAsked(
            step=step,
            provider=model.provider,
            model=model.model_id,
            at=at,
            system=None if system is None else system.hash,
            tools=None if tools is None else tools.hash,
            history=None if self._path_written else self._path,
            given=given,
            messages=pieces,
            settings=_settings(request),
            same=same,
            prints="".join(prints[same:]),
        )
        self._path_written = True
        return event, tuple(blob for blob in (system, tools) if blob is not None)

    def hashes(self, request: ModelRequest) -> tuple[str | None, str | None]:
        """Of the prompt and the tools, as an event would name them."""
        system, tools = self._system_of(request.system), self._tools_of(request.tools)
        return system and system.hash, tools and tools.hash

    def take_back(self, given: Sequence[ModelMessage]) -> None:
        """The event that brought these was not written: nothing may refer to them."""
        self._given -= len(given)
        self._last_prints = ()
        for message in given:
            self._known.pop(id(message), None)

    def _system_of(self, text: str) -> Blob | None:
        if text is not self._system[0]:
            self._system = (text, Blob.of(text) if text else None)
        return self._system[1]

    def _tools_of(self, specs: tuple[ToolSpec, ...]) -> Blob | None:
        if specs != self._tools[0]:
            self._tools = (specs, Blob.of(json.dumps(specs)) if specs else None)
        return self._tools[1]

    def _prints(self, messages: tuple[ModelMessage, ...], *, intact: bool) -> list[str]:
        """The hash of each message; those of stored ones are known by (id, version)."""
        if intact:
            later = messages[len(self._history) :]
            return [*self._history_prints, *map(self._print, later)]
        known = {id(m): p for m, p in zip(self._history, self._history_prints, strict=True)}
        return [known.get(id(message)) or self._print(message) for message in messages]

    def _print(self, message: ModelMessage) -> str:
        found = self._printed.get(id(message))
        if found is None:
            found = self._printed[id(message)] = message, fingerprint(message)
        return found[1]

    def _pieces(
        self, messages: tuple[ModelMessage, ...]
    ) -> tuple[tuple[Piece, ...], tuple[ModelMessage, ...]]:
        pieces: list[Piece] = []
        given: list[ModelMessage] = []
        start, history = 0, self._history
        if history and len(messages) >= len(history) and all(map(is_, history, messages)):
            pieces.append(("h", 0, len(history)))  # nearly always: nobody has changed it
            start = len(history)
        else:
            for place, message in enumerate(history):
                self._known[id(message)] = (message, "h", place)
        for message in messages[start:]:
            known = self._known.get(id(message))
            if known is None:
                known = self._known[id(message)] = (message, "g", self._given + len(given))
                given.append(message)
            _extend(pieces, known[1], known[2])
        self._given += len(given)
        return tuple(pieces), tuple(given)


def _extend(pieces: list[Piece], source: str, place: int) -> None:
    if pieces and pieces[-1][0] == source and pieces[-1][2] == place:
        pieces[-1] = (source, pieces[-1][1], place + 1)
    else:
        pieces.append((source, place, place + 1))


def _settings(request: ModelRequest) -> dict[str, Any]:
    given = _settings_in(request)
    if given == _USUAL:  # as in most turns
        return {}
    settings = zip(_SETTINGS, given, _USUAL, strict=True)
    changed = {name: value for name, value, usual in settings if value != usual}
    if "headers" in changed:
        changed["headers"] = {
            name: REDACTED if any(word in name.lower() for word in _SECRET) else value
            for name, value in changed["headers"].items()
        }
    return changed


def request_of(settings: Any, **named: Any) -> ModelRequest:
    """The request that `settings` and the named fields describe."""
    usual = msgspec.convert({**settings, "messages": ()}, ModelRequest)
    return msgspec.structs.replace(usual, **named)


_encode = msgspec.json.Encoder().encode


def fingerprint(message: ModelMessage) -> str:
    """The hash of one message, as a model is told it. Marks for a cache are no part of it."""
    return b64encode(blake2b(_encode(message), digest_size=3).digest()).decode()


def same_beginning(before: Sequence[str], now: Sequence[str]) -> int:
    """How many hashes the two have in common from the first on."""
    if list(now[: len(before)]) == list(before):  # nearly always: a conversation grows at its end
        return len(before)
    pairs = enumerate(zip(before, now, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(before), len(now)))
