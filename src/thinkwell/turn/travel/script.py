"""A journal read as a script: what the model said in each call, and what came of each tool call.

Pure. Chunks are what was told, so the events of a model are read back from them: the inverse of
`turn/run/model_call.py`. How a call ended is in the events beside them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, cast

import msgspec

from thinkwell.core import json
from thinkwell.journal.events import (
    AttemptBegun,
    CallClaimed,
    CallSettled,
    JournalEvent,
    ModelAsked,
    ModelEnded,
    ModelFailed,
    ModelPaused,
    ModelResumed,
    OutsideAnswered,
    Said,
    read_events,
)
from thinkwell.journal.reading import StoredJournal
from thinkwell.messages.chunks import Chunk
from thinkwell.models.base import (
    FilePart,
    Finish,
    FinishReason,
    ModelEvent,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    SourceDocument,
    SourceUrl,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputStart,
    ToolResult,
)

CallEnd: TypeAlias = Literal["finish", "retried", "failed", "stalled", "cut"]
"""How a model call ended; `cut`: the process died, or somebody stopped the turn."""
OUTCOMES = frozenset(
    {"tool-output-available", "tool-output-error", "tool-input-error", "tool-approval-request"}
)
"""Chunks that tell what came of a call."""
INCOMPLETE = "did not complete the arguments"
"""Stands in the error of a call whose input the model never ended."""


class ScriptedCall(msgspec.Struct, kw_only=True):
    """One call of a model."""

    step: int
    attempt: int
    provider: str
    model: str
    at: float
    start: int
    """How many chunks stood before it."""
    chunks: list[Chunk] = msgspec.field(default_factory=list[Chunk])
    end: CallEnd = "cut"
    finish: Finish | None = None
    answer: str | None = None
    """What the hidden answer tool was given."""
    error: str = ""
    ended_at: float = 0.0
    resumed: bool = False
    """It was not asked: the provider gave the rest of the answer before it."""


class TurnScript(msgspec.Struct, kw_only=True):
    """Everything that a replay plays."""

    calls: list[ScriptedCall] = msgspec.field(default_factory=list[ScriptedCall])
    attempts: list[int] = msgspec.field(default_factory=list[int])
    """How many chunks there were at the end of each attempt."""
    told: dict[str, list[int]] = msgspec.field(default_factory=dict[str, list[int]])
    """Places of the chunks about each tool call that tell what came of it."""
    claimed: list[tuple[str, int]] = msgspec.field(default_factory=list[tuple[str, int]])
    """Calls whose tool began, and in which attempt."""
    outcomes: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    answers: list[tuple[int, OutsideAnswered]] = msgspec.field(
        default_factory=list[tuple[int, OutsideAnswered]]
    )
    """What came from outside while the turn ran, and behind how many chunks."""
    chunks: list[Chunk] = msgspec.field(default_factory=list[Chunk])

    def stop_of(self, attempt: int) -> int:
        """How many chunks there were when an attempt was cut, or had ended."""
        return self.attempts[min(max(attempt, 1), len(self.attempts)) - 1]

    def is_last(self, attempt: int) -> bool:
        """Whether an attempt is the last one."""
        return attempt >= len(self.attempts)

    def began(self, call_id: str, attempt: int) -> bool:
        """Whether the tool of a call began in that attempt."""
        return (call_id, attempt) in self.claimed

    def next_place(self, call_id: str, length: int) -> int | None:
        """Where the stream, being so long, tells something of a call next."""
        return next((place for place in self.told.get(call_id, ()) if place >= length), None)

    def approval_id(self, call_id: str) -> str | None:
        """The id under which a person was asked."""
        for place in self.told.get(call_id, ()):
            if self.chunks[place]["type"] == "tool-approval-request":
                return str(self.chunks[place]["approvalId"])
        return None


def read_script(journal: StoredJournal) -> TurnScript:
    """The script of a journal."""
    script, reading = TurnScript(), _Reading()
    for event in read_events(journal):
        _read(script, reading, event)
    script.attempts.append(len(script.chunks))
    return script


class _Reading(msgspec.Struct):
    attempt: int = 0
    open: ScriptedCall | None = None
    failed: ScriptedCall | None = None


def _read(script: TurnScript, reading: _Reading, event: JournalEvent) -> None:
    match event:
        case Said(chunk=chunk, hidden=hidden):
            _take_chunk(script, reading, chunk, hidden=hidden)
        case AttemptBegun():
            _begin_attempt(script, reading)
        case ModelAsked() | ModelResumed():
            _begin_call(script, reading, event)
        case ModelEnded() | ModelFailed():
            _end_call(reading, event)
        case ModelPaused():
            _pause_call(reading, event)
        case CallClaimed():
            script.claimed.append((event.call_id, reading.attempt))
        case CallSettled():
            script.outcomes[event.call_id] = event.outcome
        case OutsideAnswered():
            script.answers.append((len(script.chunks), event))
        case _:
            pass


def _take_chunk(script: TurnScript, reading: _Reading, chunk: Chunk, *, hidden: bool) -> None:
    if reading.open is not None:
        reading.open.chunks.append(chunk)
    if hidden:
        return
    if chunk["type"] in OUTCOMES and chunk.get("providerExecuted") is not True:
        script.told.setdefault(str(chunk["toolCallId"]), []).append(len(script.chunks))
    script.chunks.append(chunk)


def _begin_attempt(script: TurnScript, reading: _Reading) -> None:
    if reading.failed is not None:
        reading.failed.end = "stalled"
    reading.open = reading.failed = None
    if reading.attempt:
        script.attempts.append(len(script.chunks))
    reading.attempt += 1


def _begin_call(script: TurnScript, reading: _Reading, event: ModelAsked | ModelResumed) -> None:
    if reading.failed is not None:
        reading.failed.end = "retried"
        reading.failed = None
    reading.open = ScriptedCall(
        step=event.step,
        attempt=reading.attempt,
        provider=event.provider,
        model=event.model,
        at=event.at,
        start=len(script.chunks),
        resumed=isinstance(event, ModelResumed),
    )
    script.calls.append(reading.open)


def _end_call(reading: _Reading, event: ModelEnded | ModelFailed) -> None:
    call, reading.open = reading.open, None
    if call is None:  # a hook answered in the model's place
        return
    call.ended_at = event.at
    if isinstance(event, ModelFailed):
        call.end, call.error = "failed", event.error
        reading.failed = call
        return
    call.end, call.answer = "finish", event.answer
    call.finish = Finish(
        reason=cast("FinishReason", event.finish_reason),
        raw_reason=event.raw_finish_reason,
        usage=event.usage,
        response_id=event.response_id,
        model_id=event.model_id,
        provider_metadata=event.provider_metadata,
        warnings=event.warnings,
    )


def _pause_call(reading: _Reading, event: ModelPaused) -> None:
    call, reading.open = reading.open, None
    if call is not None:
        call.ended_at, call.end = event.at, "finish"
        call.finish = Finish(
            reason="other",
            raw_reason=event.reason,
            usage=event.usage,
            response_id=event.response_id,
            paused=event.options,
        )


def model_events(call: ScriptedCall, later: Sequence[Chunk] = ()) -> list[ModelEvent]:
    """What the model said in a call, without its end.

    `later` are the chunks behind it: where a hook looks at errors first, a call that cannot run is
    told there.
    """
    back = _ReadBack(call.chunks, resumed=call.resumed)
    said: list[ModelEvent] = []
    for chunk in call.chunks:
        if chunk["type"] == "reset-step":  # a hook says the rest of it
            break
        said.extend(back.event(chunk))
    for chunk in later if call.end == "finish" else ():
        failed = chunk["type"] == "tool-input-error" and str(chunk["toolCallId"]) in back.inputs
        if failed and INCOMPLETE not in str(chunk.get("errorText")):
            said.append(back.call(chunk))
    return said


class _ReadBack:
    """Makes the events of one model call of its chunks."""

    def __init__(self, chunks: Sequence[Chunk], *, resumed: bool = False) -> None:
        self._chunks = chunks
        self._resumed = resumed
        """What is open belongs to the call before: it goes on, and does not begin anew."""
        self.inputs: dict[str, list[str]] = {}
        """What was written of calls that are not complete."""
        self._names: dict[str, str] = {}
        self._started: set[str] = set()

    def event(self, chunk: Chunk) -> Iterator[ModelEvent]:
        """The events of a chunk."""
        kind, call_id = chunk["type"], str(chunk.get("toolCallId"))
        if kind.startswith(("text-", "reasoning-")):
            yield from self._words(chunk)
        elif kind == "tool-input-start":
            name = str(chunk["toolName"])
            self.inputs[call_id], self._names[call_id] = [], name
            yield ToolInputStart(call_id, name, chunk.get("providerExecuted") is True)
        elif kind == "tool-input-delta":
            delta = str(chunk["inputTextDelta"])
            self.inputs.setdefault(call_id, []).append(delta)
            yield ToolInputDelta(call_id, delta)
        elif kind in ("tool-input-available", "tool-input-error"):
            yield self.call(chunk)
        elif chunk.get("providerExecuted") is True:
            yield _provider_result(chunk)
        else:
            yield from _other(chunk)

    def call(self, chunk: Chunk) -> ToolCall:
        """A whole call, as the model wrote it."""
        call_id = str(chunk["toolCallId"])
        written = "".join(self.inputs.pop(call_id, []))
        if self._resumed and call_id not in self._names:
            written = ""  # the beginning is in the call before
        given = chunk.get("input")
        return ToolCall(
            call_id,
            self._names.get(call_id, str(chunk["toolName"])),
            written or ("" if given in (None, {}) else json.dumps(given)),
            chunk.get("providerMetadata"),
            chunk.get("providerExecuted") is True,
        )

    def _words(self, chunk: Chunk) -> Iterator[ModelEvent]:
        kind, _, moment = chunk["type"].partition("-")
        part_id, metadata = str(chunk["id"]), chunk.get("providerMetadata")
        start, delta, end = _WORDS[kind]
        key = f"{kind}:{part_id}"
        if moment == "start":
            self._started.add(key)
            yield start(part_id, metadata)
            return
        if key not in self._started:
            # A part that was cut and goes on: the model began it anew. If it has no words here, it
            # was not the model that ended it.
            if not self._resumed:
                if not self._has_words(kind, part_id):
                    return
                yield start(part_id)
            self._started.add(key)
        yield delta(part_id, str(chunk["delta"])) if moment == "delta" else end(part_id, metadata)

    def _has_words(self, kind: str, part_id: str) -> bool:
        return any(c["type"] == f"{kind}-delta" and c["id"] == part_id for c in self._chunks)


_WORDS: Mapping[str, tuple[Any, Any, Any]] = {
    "text": (TextStart, TextDelta, TextEnd),
    "reasoning": (ReasoningStart, ReasoningDelta, ReasoningEnd),
}


def _provider_result(chunk: Chunk) -> ToolResult:
    return ToolResult(
        str(chunk["toolCallId"]),
        chunk.get("output"),
        chunk.get("errorText"),
        chunk.get("preliminary") is True,
        chunk.get("providerMetadata"),
    )


def _other(chunk: Chunk) -> Iterator[ModelEvent]:
    kind, given = chunk["type"], chunk
    if kind == "file":
        yield FilePart(given["url"], given["mediaType"])
    elif kind == "source-url":
        yield SourceUrl(given["sourceId"], given["url"], given.get("title"))
    elif kind == "source-document":
        yield SourceDocument(
            given["sourceId"], given["mediaType"], given["title"], given.get("filename")
        )
