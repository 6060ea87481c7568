"""What `chat` and `chat_stream` tell of a turn: small events instead of chunks (spec/02 §12.10).

The events are a reading of the turn's durable chunks, so nothing is told that is not stored. One
thing chunks do not say is when a step's answer is complete and its tools begin: the tail says it,
and `close_step` is called at that place. Who follows the turn and who gets the events is
`entry.py`'s business.

Invariant: a step's `content_end` comes once, after its deltas and before its tools.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Literal, TypeAlias

import msgspec

from thinkwell.core import json
from thinkwell.hooks.contexts import CallInfo
from thinkwell.messages.chunks import Chunk
from thinkwell.models.base import FinishReason


def _tag(name: str) -> str:
    return "agent" + re.sub(r"(?=[A-Z])", "_", name).lower()


class AgentResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The last step's answer, as `chat` returns it."""

    content: str | None = None
    reasoning: str | None = None
    finish_reason: FinishReason = "stop"


class _Event(msgspec.Struct, frozen=True, kw_only=True, tag=_tag):
    """Each has a `type` that names it and tells it from the others; as JSON with the prefix
    `agent_`.
    """


class ChatStart(_Event, frozen=True, kw_only=True):
    """The turn has begun."""

    type: ClassVar[Literal["chat_start"]] = "chat_start"
    message: str | None


class ReasoningDelta(_Event, frozen=True, kw_only=True):
    """The model thinks aloud."""

    type: ClassVar[Literal["reasoning_delta"]] = "reasoning_delta"
    delta: str


class ReasoningEnd(_Event, frozen=True, kw_only=True):
    """It has thought; once per step, before anything else of the step."""

    type: ClassVar[Literal["reasoning_end"]] = "reasoning_end"


class ContentDelta(_Event, frozen=True, kw_only=True):
    """The model says something."""

    type: ClassVar[Literal["content_delta"]] = "content_delta"
    delta: str


class ContentEnd(_Event, frozen=True, kw_only=True):
    """The step's answer is complete; also without text. Its tools come now."""

    type: ClassVar[Literal["content_end"]] = "content_end"


class ToolCallDelta(_Event, frozen=True, kw_only=True):
    """A piece of a call's arguments; the first of an index has `id` and `name`."""

    type: ClassVar[Literal["tool_call_delta"]] = "tool_call_delta"
    index: int
    arguments_delta: str
    id: str | None = None
    name: str | None = None


class ToolCallStart(_Event, frozen=True, kw_only=True):
    """A call begins."""

    type: ClassVar[Literal["tool_call_start"]] = "tool_call_start"
    call: CallInfo


class ToolCallResult(_Event, frozen=True, kw_only=True):
    """A call gave a result."""

    type: ClassVar[Literal["tool_call_result"]] = "tool_call_result"
    call: CallInfo
    result: Any


class ToolCallError(_Event, frozen=True, kw_only=True):
    """A call failed; `error` is what the model reads."""

    type: ClassVar[Literal["tool_call_error"]] = "tool_call_error"
    call: CallInfo
    error: str


class ChatDone(_Event, frozen=True, kw_only=True):
    """The turn completed. The last event."""

    type: ClassVar[Literal["chat_done"]] = "chat_done"
    response: AgentResponse


class ChatAbort(_Event, frozen=True, kw_only=True):
    """The turn was stopped. The last event."""

    type: ClassVar[Literal["chat_abort"]] = "chat_abort"
    reason: str


class ChatError(_Event, frozen=True, kw_only=True):
    """The turn failed. The last event."""

    type: ClassVar[Literal["chat_error"]] = "chat_error"
    error: Exception


AgentEvent: TypeAlias = (
    ChatStart
    | ReasoningDelta
    | ReasoningEnd
    | ContentDelta
    | ContentEnd
    | ToolCallDelta
    | ToolCallStart
    | ToolCallResult
    | ToolCallError
    | ChatDone
    | ChatAbort
    | ChatError
)


class EventReader:
    """Reads the chunks of one turn as events."""

    def __init__(self) -> None:
        self._calls: dict[str, CallInfo] = {}
        self._read: dict[str, Callable[[Chunk], Iterator[AgentEvent]]] = {
            "start-step": self._start_step,
            "reset-step": self._reset_step,
            "finish-step": lambda _: self.close_step(),
            "reasoning-delta": self._reasoning,
            "text-delta": self._text,
            "tool-input-start": self._input_start,
            "tool-input-delta": self._input_delta,
            "tool-input-available": self._input,
            "tool-input-error": self._failed,
            "tool-output-available": self._output,
            "tool-output-error": self._failed,
        }
        self._begin_step()

    def read(self, chunk: Chunk) -> Iterator[AgentEvent]:
        """The events of one chunk; most have one or none."""
        reader = self._read.get(chunk["type"])
        if reader is not None:
            yield from reader(chunk)

    def close_step(self) -> Iterator[AgentEvent]:
        """The step's answer is complete: its calls begin now."""
        if self._closed:
            return
        self._closed = True
        yield from self._end_reasoning()
        yield ContentEnd()
        for call_id in self._waiting:
            yield ToolCallStart(call=self._calls[call_id])
        self._waiting = []

    def _begin_step(self) -> None:
        self._closed = False
        self._muted = False
        self._thinking = False
        self._waiting: list[str] = []
        self._indexes: dict[str, int] = {}
        self._names: dict[str, str] = {}

    def _start_step(self, _: Chunk) -> Iterator[AgentEvent]:
        self._begin_step()
        yield from ()

    def _reset_step(self, _: Chunk) -> Iterator[AgentEvent]:
        # A hook rewrote the answer. Deltas cannot be taken back: what comes now is in the response.
        self._waiting = []
        self._muted = True
        yield from ()

    def _reasoning(self, chunk: Chunk) -> Iterator[AgentEvent]:
        if chunk["delta"] and not self._muted:
            self._thinking = True
            yield ReasoningDelta(delta=chunk["delta"])

    def _text(self, chunk: Chunk) -> Iterator[AgentEvent]:
        if chunk["delta"] and not self._muted:
            yield from self._end_reasoning()
            yield ContentDelta(delta=chunk["delta"])

    def _input_start(self, chunk: Chunk) -> Iterator[AgentEvent]:
        self._names[chunk["toolCallId"]] = chunk["toolName"]
        yield from ()

    def _input_delta(self, chunk: Chunk) -> Iterator[AgentEvent]:
        yield from self._arguments(chunk["toolCallId"], chunk["inputTextDelta"])

    def _input(self, chunk: Chunk) -> Iterator[AgentEvent]:
        call_id, name = chunk["toolCallId"], chunk["toolName"]
        self._names[call_id] = name
        self._calls[call_id] = CallInfo(id=call_id, name=name, arguments=chunk["input"])
        if call_id not in self._indexes:
            yield from self._arguments(call_id, json.dumps(chunk["input"]))
        self._waiting.append(call_id)

    def _arguments(self, call_id: str, delta: str) -> Iterator[AgentEvent]:
        if not delta or self._muted:
            return
        yield from self._end_reasoning()
        first = call_id not in self._indexes
        index = self._indexes.setdefault(call_id, len(self._indexes))
        yield ToolCallDelta(
            index=index,
            arguments_delta=delta,
            id=call_id if first else None,
            name=self._names.get(call_id) if first else None,
        )

    def _output(self, chunk: Chunk) -> Iterator[AgentEvent]:
        if chunk.get("preliminary") is not True:
            yield from self._begun(chunk)
            yield ToolCallResult(call=self._calls[chunk["toolCallId"]], result=chunk["output"])

    def _failed(self, chunk: Chunk) -> Iterator[AgentEvent]:
        yield from self._begun(chunk)
        yield ToolCallError(call=self._calls[chunk["toolCallId"]], error=chunk["errorText"])

    def _begun(self, chunk: Chunk) -> Iterator[AgentEvent]:
        """A call that could not be read begins with its error."""
        yield from self.close_step()
        call_id = chunk["toolCallId"]
        if call_id not in self._calls:
            name = chunk.get("toolName") or self._names.get(call_id, "")
            self._calls[call_id] = CallInfo(id=call_id, name=name, arguments=chunk.get("input"))
            yield ToolCallStart(call=self._calls[call_id])

    def _end_reasoning(self) -> Iterator[AgentEvent]:
        if self._thinking:
            self._thinking = False
            yield ReasoningEnd()
