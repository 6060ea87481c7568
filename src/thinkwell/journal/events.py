"""What a journal holds beside chunks, as types: how a turn came to its reply.

Live rows and packed journals hold the same events: a kind, how many chunks stand before, and a JSON
body. The bodies are stored formats: a field may be added with a default, nothing else changes.
From these events, the texts that are stored once by their hash (`journal/blobs.py`) and the
messages of the session a turn can be explained, replayed and exported.

What hooks hide stays hidden: events say that a hook changed something, and hold the result of the
change, never what was there before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias, cast

import msgspec

from thinkwell.core import json
from thinkwell.journal.code_version import CodeVersion
from thinkwell.journal.reading import StoredJournal
from thinkwell.messages.chunks import Chunk
from thinkwell.messages.model_messages import ModelMessage
from thinkwell.messages.usage import Usage


class JournalBody(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A body as it is stored."""


class AttemptBegun(JournalBody, frozen=True, kw_only=True):
    """The turn's loop begins: for the first time, after a crash, or after a stall."""

    attempt: int
    at: float
    code: CodeVersion | None = None
    """What ran it, if that is not the code that accepted the turn."""


class StoredPath(JournalBody, frozen=True, kw_only=True):
    """Messages of the session that follow each other: the end of the path to `leaf`."""

    leaf: str
    first: str
    count: int
    older: int = 0
    """How many of them, from the first on, were shortened for the model."""
    versions: Mapping[int, int] = {}
    """The version of a message by its place, where that is not the first one."""


class ModelAsked(JournalBody, frozen=True, kw_only=True):
    """The request of one model call, as references to what is stored anyway.

    `messages` names what was sent in pieces `(source, start, stop)`: of `history` (`h`), which
    holds until an event brings another; of everything in `given` since then (`g`); or of a step of
    this turn (`s0`, `s1`, …).
    """

    step: int
    provider: str
    model: str
    at: float
    system: str | None = None
    """The hash of the system prompt."""
    tools: str | None = None
    """The hash of the tools as the model is told of them."""
    history: StoredPath | None = None
    given: tuple[ModelMessage, ...] = ()
    """Messages that are stored nowhere else: what hooks and scopes chose, what we ask ourselves."""
    messages: tuple[tuple[str, int, int], ...] = ()
    settings: Mapping[str, Any] = {}
    """All other fields of the request that are not as usual, by name."""
    same: int = 0
    """How many messages are as in the request before it in this turn."""
    prints: str = ""
    """A hash of each message behind those, four characters each (`journal/prefix.py`)."""
    incomplete: str | None = None
    """Why the request is not here: it held something that JSON cannot hold."""


class StepReserved(JournalBody, frozen=True, kw_only=True):
    """The most that the next model call can cost is set aside from the budgets of the turn."""

    step: int
    nano_usd: int = 0
    tokens: int = 0
    limit: int | None = None
    """Output tokens that the call was limited to, because there was no room for more."""
    at: float = 0.0


class ModelEnded(JournalBody, frozen=True, kw_only=True):
    """A model call, or the hook in its place, has answered."""

    step_number: int
    finish_reason: str
    raw_finish_reason: str = ""
    usage: Usage = msgspec.field(default_factory=Usage)
    provider_metadata: dict[str, Any] | None = None
    response_id: str | None = None
    model_id: str | None = None
    warnings: tuple[str, ...] = ()
    at: float = 0.0
    """When; 0 in journals of older releases."""
    answer: str | None = None
    """What the model gave to the hidden answer tool, which no chunk tells."""
    answered_by: str | None = None
    """The model whose tokens these are, as `provider:name`."""


class ModelPaused(JournalBody, frozen=True, kw_only=True):
    """The provider paused amid its own tools; it goes on in another call of the same step."""

    step: int
    at: float
    reason: str = ""
    """In the provider's own words."""
    usage: Usage = msgspec.field(default_factory=Usage)
    options: Mapping[str, Any] = {}
    """Provider options that the next call sends along."""
    response_id: str | None = None


class ModelFailed(JournalBody, frozen=True, kw_only=True):
    """A model call failed or fell silent; another one may follow."""

    step: int
    error: str
    at: float


class WaitBegun(JournalBody, frozen=True, kw_only=True):
    """A model call waits for the limits of its model."""

    step: int
    model: str
    limit: str
    reason: str
    at: float


class WaitOver(JournalBody, frozen=True, kw_only=True):
    """It begins now."""

    step: int
    waited_ms: float
    at: float


class ResponseKept(JournalBody, frozen=True, kw_only=True):
    """How far an answer has come that the provider keeps: written with the chunks it covers.

    The last one of a step counts. Dropped when the journal is packed.
    """

    step: int
    provider: str
    token: Mapping[str, Any] | None = None
    """What the model needs to go on behind those chunks; None if there is nothing to take up."""
    renamed: tuple[str, str] | None = None
    """The model's id of a text, and the one of an earlier text that it goes on with."""
    goes_on: str | None = None
    """An earlier text that is still open, which the first text of the answer goes on with."""


class ModelResumed(JournalBody, frozen=True, kw_only=True):
    """The answer of the last request of this step is taken up again; nothing new was asked."""

    step: int
    provider: str
    model: str
    at: float
    token: Mapping[str, Any]
    changed: tuple[str, ...] = ()
    """What the code would ask otherwise by now: `prompt`, `tools`, `model`."""


class HookDecided(JournalBody, frozen=True, kw_only=True):
    """A hook answered something other than None."""

    event: str
    hook: str
    said: Mapping[str, Any]
    """What it chose, by field. Prompt and messages are in the request, so only their names."""
    call_id: str | None = None


class CallClaimed(JournalBody, frozen=True, kw_only=True):
    """A tool is about to run. Its input is in the chunks, or in the decision that changed it."""

    call_id: str
    tool_name: str
    step: int
    effect: str
    key: str
    at: float


class CallSettled(JournalBody, frozen=True, kw_only=True):
    """A call has its result, which is in the chunk that follows."""

    call_id: str
    outcome: str
    took_ms: float = 0.0


class OutsideAnswered(JournalBody, frozen=True, kw_only=True):
    """A client or a person answered a call while the turn ran."""

    part: dict[str, Any]
    stop_reason: str
    auto_continue: bool
    client_tools: tuple[dict[str, Any], ...] | None = None


class OutputRead(JournalBody, frozen=True, kw_only=True):
    """The structured output was read and is valid."""

    value: Any


class Said(msgspec.Struct, frozen=True):
    """A chunk. A hidden one is reasoning that clients were not to see."""

    chunk: Chunk
    hidden: bool = False


class Unknown(msgspec.Struct, frozen=True):
    """An event that a newer release has written."""

    kind: str
    body: dict[str, Any]


JournalEvent: TypeAlias = (
    AttemptBegun
    | ModelAsked
    | StepReserved
    | ModelEnded
    | ModelPaused
    | ModelResumed
    | ResponseKept
    | ModelFailed
    | WaitBegun
    | WaitOver
    | HookDecided
    | CallClaimed
    | CallSettled
    | OutsideAnswered
    | OutputRead
    | Said
    | Unknown
)

_TYPES: dict[str, type[JournalBody]] = {
    "attempt": AttemptBegun,
    "request": ModelAsked,
    "reserved": StepReserved,
    "model": ModelEnded,
    "pause": ModelPaused,
    "kept": ResponseKept,
    "resumed": ModelResumed,
    "failure": ModelFailed,
    "wait": WaitBegun,
    "admitted": WaitOver,
    "decision": HookDecided,
    "claim": CallClaimed,
    "result": CallSettled,
    "answer": OutsideAnswered,
    "output": OutputRead,
}
_KINDS = {made: kind for kind, made in _TYPES.items()}


def kind_of(event: JournalBody) -> str:
    """The word under which an event is stored."""
    return _KINDS[type(event)]


def encode_event(event: JournalBody) -> str:
    """The body of an event. Raises `ValueError` or `TypeError` for what JSON cannot hold."""
    return json.dumps(event)


def read_events(journal: StoredJournal) -> list[JournalEvent]:
    """Everything a turn wrote, as it happened."""
    return [_typed(entry.kind, entry.body) for entry in journal.in_order()]


def _typed(kind: str, body: dict[str, Any]) -> JournalEvent:
    if kind in ("chunk", "hidden"):
        return Said(body, hidden=kind == "hidden")
    known = _TYPES.get(kind)
    if known is None:
        return Unknown(kind, body)
    return cast("JournalEvent", msgspec.convert(body, known, strict=False))
