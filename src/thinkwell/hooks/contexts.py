"""What hooks are given (spec/02 §5). Frozen; collections are tuples and read-only mappings.

Only return values change a turn. Each class says when its hook fires relative to storage and
frames. Contexts are structs because one is made per streamed chunk.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from thinkwell.core.signal import AbortSignal
from thinkwell.messages.chunks import Chunk
from thinkwell.messages.message import UIMessage
from thinkwell.messages.model_messages import ModelMessage
from thinkwell.messages.usage import Usage
from thinkwell.models.base import FinishReason, Model, ModelRequest, ToolChoice
from thinkwell.tools.tool import Tool

Stage: TypeAlias = Literal["parse", "turn", "step", "stream", "store", "recovery"]
ToolOutcome: TypeAlias = Literal[
    "executed", "blocked", "substituted", "errored", "invalid", "unknown", "aborted"
]
StopReason: TypeAlias = Literal[
    "end",
    "max_steps",
    "length",
    "content-filter",
    "other",
    "aborted",
    "error",
    "cleared",
    "caller_lost",
]


class HookContext(msgspec.Struct, frozen=True, kw_only=True):
    """What every hook can see."""

    request_id: str
    """The turn's id on the wire."""
    trigger: str
    """Who asked: `ws-chat`, `programmatic`, `submission`, …"""
    continuation: bool
    """Whether the turn carries on the last answer without a new user message."""
    agent: Any
    """The agent whose turn it is."""
    abort_signal: AbortSignal
    """Tells when somebody asked to stop."""


class TurnContext(HookContext, frozen=True, kw_only=True):
    """For `before_turn`: the assembled prompt. Input is stored, nothing of the answer is."""

    system: str
    messages: tuple[ModelMessage, ...]
    tools: Mapping[str, Tool]
    model: Model
    body: Mapping[str, Any] | None
    """Custom fields the client sent with its request."""
    attempt: int
    """0 for the first run of the turn; higher after a crash."""


class ToolCallInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One tool call of a finished step."""

    tool_call_id: str
    tool_name: str
    input: Any


class ToolResultInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One tool result of a finished step; a failed call has `error` instead of `output`."""

    tool_call_id: str
    tool_name: str
    input: Any
    output: Any = None
    error: str | None = None


class ResponseInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What the provider said about its answer."""

    id: str | None
    model_id: str | None
    timestamp: float
    messages: tuple[ModelMessage, ...]
    """The step as it will be sent back to the model."""
    headers: Mapping[str, str]


class StepResult(msgspec.Struct, frozen=True, kw_only=True):
    """One finished step: a model call and the tools it asked for."""

    step_number: int
    text: str
    reasoning_text: str
    files: tuple[Mapping[str, Any], ...]
    sources: tuple[Mapping[str, Any], ...]
    tool_calls: tuple[ToolCallInfo, ...]
    tool_results: tuple[ToolResultInfo, ...]
    finish_reason: FinishReason
    raw_finish_reason: str
    usage: Usage
    warnings: tuple[str, ...]
    provider_metadata: Mapping[str, Any] | None
    content: tuple[Mapping[str, Any], ...]
    """The step's parts in wire shape."""


class StepContext(HookContext, frozen=True, kw_only=True):
    """For `before_step`: fires before every model call, after the previous `on_step_finish`."""

    step_number: int
    steps: tuple[StepResult, ...]
    model: Model
    system: str
    messages: tuple[ModelMessage, ...]
    tools: Mapping[str, Tool]
    tool_choice: ToolChoice
    remaining_steps: int
    """How many steps may still begin, this one included."""


class StepFinishContext(StepResult, frozen=True, kw_only=True):
    """For `on_step_finish`: the step, with all its tools settled and stored. Never fires for a
    step that was cut.

    Has the fields of every hook context too; a struct can have one base only, so they stand here
    again.
    """

    request_id: str
    trigger: str
    continuation: bool
    agent: Any
    abort_signal: AbortSignal
    request: ModelRequest
    response: ResponseInfo


class ChunkContext(HookContext, frozen=True, kw_only=True):
    """For `on_chunk`: fires for every chunk of the stream, before it is committed and sent."""

    chunk: Chunk
    step_number: int
    message_id: str


class ToolCallContext(HookContext, frozen=True, kw_only=True):
    """For `before_tool_call`: input is validated, the tool has not run, nothing is claimed."""

    tool_call_id: str
    tool_name: str
    input: Mapping[str, Any]
    """What the tool would get now (an earlier hook may have replaced it)."""
    original_input: Mapping[str, Any]
    """What the model wrote."""
    step_number: int
    messages: tuple[ModelMessage, ...]
    provider_metadata: Mapping[str, Any] | None
    tool: Tool


class ToolResultContext(HookContext, frozen=True, kw_only=True):
    """For `after_tool_call`: once per call, before its result is stored and sent.

    `tool` is None for an unknown one.
    """

    tool_call_id: str
    tool_name: str
    input: Any
    """What the tool was run with."""
    original_input: Any
    """What the model wrote."""
    step_number: int
    messages: tuple[ModelMessage, ...]
    tool: Tool | None
    success: bool
    outcome: ToolOutcome
    output: Any
    error: BaseException | None
    duration_ms: float


class ChatErrorContext(HookContext, frozen=True, kw_only=True):
    """For `on_chat_error`: the turn failed; the partial answer is known, the end is not yet
    stored.
    """

    stage: Stage
    messages_persisted: bool
    """Whether the turn's input is in the tree."""
    partial: UIMessage | None
    """What had been answered, if anything."""
    attempt: int


class ChatResponse(HookContext, frozen=True, kw_only=True):
    """For `on_chat_response`: everything is stored, clients were told, the agent is free for the
    next turn.
    """

    message: UIMessage
    """The answer; its parts may be empty."""
    status: Literal["completed", "error", "aborted"]
    error: str | None
    usage: Usage
    stop_reason: StopReason
    steps: int
    redelivered: bool = False
    """True when an earlier delivery may have been cut by a crash."""
