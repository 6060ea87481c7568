"""What hooks are given (spec/02 §5). Frozen; collections are tuples and read-only mappings.

Only return values change a turn. Each class says when its hook fires relative to storage and
frames. Contexts are structs because one is made per streamed chunk.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeAlias, TypeVar

import msgspec

from thinkwell.core.principal import Principal
from thinkwell.core.signal import AbortSignal
from thinkwell.hooks.read_only import read_only_copy
from thinkwell.journal.budget import Cause, GiveUpReason, RecoveryKind
from thinkwell.journal.turns import StopReason, Trigger, TurnRecord
from thinkwell.messages.message import UIMessage
from thinkwell.messages.model_messages import ModelMessage
from thinkwell.messages.usage import Usage
from thinkwell.models.base import FinishReason, Model, ModelRequest, ToolChoice
from thinkwell.models.error_classes import ErrorClass
from thinkwell.tools.context import ToolContext
from thinkwell.tools.scope import Scope
from thinkwell.tools.tool import FunctionCall, Tool
from thinkwell.tools.typed import read_as

if TYPE_CHECKING:
    from thinkwell.messages.stream_chunks import StreamChunk

P = ParamSpec("P")
T = TypeVar("T")
Class: TypeAlias = type[T]
"""A class. Contexts have a field `type`, which takes the word inside of them."""

Stage: TypeAlias = Literal[
    "parse",
    "persist",
    "transcript",
    "turn",
    "step",
    "hook",
    "stream",
    "output",
    "recovery",
]
Classification: TypeAlias = ErrorClass
ToolOutcome: TypeAlias = Literal[
    "executed",
    "blocked",
    "substituted",
    "failed",
    "errored",
    "invalid",
    "unknown",
    "disabled",
    "denied",
    "aborted",
    "client",
]


class HookContext(msgspec.Struct, frozen=True, kw_only=True):
    """What every hook can see."""

    request_id: str
    """The turn's id on the wire."""
    trigger: Trigger
    """Who asked: `ws-chat`, `http-chat`, `programmatic`, `submission`, …"""
    continuation: bool
    """Whether the turn carries on the last answer without a new user message."""
    agent: Any
    """The agent whose turn it is."""
    abort_signal: AbortSignal
    """Tells when somebody asked to stop."""
    principal: Principal | None = None
    """Who asked for the turn, as the app's `auth` said."""

    @property
    def signal(self) -> AbortSignal:
        """The same as `abort_signal`."""
        return self.abort_signal


def facts_of(
    record: TurnRecord, agent: Any, abort_signal: AbortSignal | None = None
) -> dict[str, Any]:
    """The fields of `HookContext` for a turn (spec/02 §5.0.9).

    They are made here and nowhere else, so that every hook has the same facts, also where it is
    called beside the loop. A turn that is over has nothing to stop.
    """
    return {
        "request_id": record.request_id,
        "trigger": record.trigger,
        "continuation": record.continuation,
        "agent": agent,
        "abort_signal": AbortSignal() if abort_signal is None else abort_signal,
        "principal": record.principal,
    }


class TurnStartContext(HookContext, frozen=True, kw_only=True):
    """For `on_turn_start`: the turn has its slot, its input is not stored in the tree yet."""

    message: str | None
    """The text of the last user message of the input, if there is one."""
    messages: tuple[UIMessage, ...]
    """The input."""


class MessageContext(HookContext, frozen=True, kw_only=True):
    """For `on_message`: once per message that enters the conversation the model sees.

    A user message is stored by then; an assistant's and a tool's are durable with their chunks.
    """

    message: ModelMessage
    ui_message_id: str
    """The stored message it belongs to."""
    step_number: int | None
    """The step it was made in; None for the input."""


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
    scopes: tuple[Scope, ...] = ()
    """The registered scopes."""
    turn_metadata: Mapping[str, Any] | None = None
    """What the caller attached to the turn."""
    config: Any = None
    """What earlier hooks of this moment have chosen, as a `TurnConfig`."""


class ResponseCall(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call in a model's response: `arguments` is the JSON text the model wrote."""

    id: str
    name: str
    arguments: str


class ModelResponse(msgspec.Struct, frozen=True, kw_only=True):
    """What a model call came to, as `on_response` sees it and `before_step` may supply it."""

    content: str | None = None
    reasoning: str | None = None
    calls: tuple[ResponseCall, ...] = ()
    finish_reason: FinishReason = "stop"
    metadata: Mapping[str, Any] | None = None


class ToolCallInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One tool call of a finished step."""

    type: Literal["tool-call"] = "tool-call"
    tool_call_id: str
    tool_name: str
    input: Any
    dynamic: bool = False
    """Whether the agent's own code does not have the tool: a scope, a client or nobody does."""


class ToolResultInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One tool result of a finished step; a failed call has `error` instead of `output`."""

    type: Literal["tool-result"] = "tool-result"
    tool_call_id: str
    tool_name: str
    input: Any
    output: Any = None
    error: str | None = None
    dynamic: bool = False
    """Whether the agent's own code does not have the tool: a scope, a client or nobody does."""


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
    reasoning: tuple[Mapping[str, Any], ...]
    """The reasoning parts, each with its `text` and the provider's metadata."""
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
    runtime_context: Any
    """What `before_turn` or an earlier `before_step` handed to the tools."""
    request: ModelRequest
    """The request as it stands; an earlier hook may have changed it."""

    @property
    def iteration(self) -> int:
        """The same as `step_number`."""
        return self.step_number


class ResponseContext(HookContext, frozen=True, kw_only=True):
    """For `on_response`: the model has answered; no tool has run, the step is not recorded."""

    step_number: int
    request: ModelRequest
    """The request that was really used."""
    response: ModelResponse

    @property
    def iteration(self) -> int:
        """The same as `step_number`."""
        return self.step_number


class StepFinishContext(StepResult, frozen=True, kw_only=True):
    """For `on_step_finish`: the step, with all its tools settled and stored. Never fires for a
    step that was cut.

    Has the fields of every hook context too; a struct can have one base only, so they stand here
    again.
    """

    request_id: str
    trigger: Trigger
    continuation: bool
    agent: Any
    abort_signal: AbortSignal
    request: ModelRequest
    response: ResponseInfo
    runtime_context: Any = None
    principal: Principal | None = None

    @property
    def signal(self) -> AbortSignal:
        """The same as `abort_signal`."""
        return self.abort_signal


class ChunkContext(HookContext, frozen=True, kw_only=True):
    """For `on_chunk`: fires for every chunk of the stream, before it is committed and sent."""

    chunk: StreamChunk
    step_number: int
    message_id: str


class ToolCallContext(HookContext, frozen=True, kw_only=True):
    """For `before_tool_call`: input is validated, the tool has not run, nothing is claimed."""

    type: Literal["tool-call"] = "tool-call"
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
    scope: Scope | None = None
    """The scope that brought the tool, if one did."""
    phase: Literal["step", "approved"] = "step"
    """`approved` when the call runs after a person allowed it."""
    dynamic: bool = False
    """Whether the agent's own code does not have the tool: a scope, a client or nobody does."""

    @property
    def call(self) -> CallInfo:
        """Id, name and arguments in one."""
        return CallInfo(id=self.tool_call_id, name=self.tool_name, arguments=self.input)

    def input_as(self, kind: Class[T]) -> T:
        """The input as a pydantic model, a dataclass, a struct, a TypedDict.

        Raises `ValueError` if it does not fit.
        """
        return read_as(kind, self.input, f"The input of {self.tool_name!r}")

    def for_tool(self, tool: Callable[P, Any], read: Callable[P, T]) -> T | None:
        """What `read` says about the arguments of a call of `tool`; None for any other tool.

        `read` has the parameters of the tool's function, and pyright compares them. A
        `ToolContext` among them knows no `runtime_context`, `authorization` and `idempotency_key`.
        """
        execute = self.tool.execute
        if not isinstance(execute, FunctionCall) or not execute.is_of(tool):
            return None
        context = ToolContext(
            tool_call_id=self.tool_call_id,
            tool_name=self.tool_name,
            messages=self.messages,
            abort_signal=self.abort_signal,
            step_number=self.step_number,
            request_id=self.request_id,
            agent=self.agent,
            idempotency_key="",
            principal=self.principal,
        )
        return execute.hand_to(read, self.tool.validate(dict(self.input)), context)


class CallInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call by id, name and the arguments it runs with."""

    id: str
    name: str
    arguments: Any

    def input_as(self, kind: Class[T]) -> T:
        """The arguments as a pydantic model, a dataclass, a struct, a TypedDict.

        Raises `ValueError` if they do not fit.
        """
        return read_as(kind, self.arguments, f"The input of {self.name!r}")


class ToolSuccessContext(HookContext, frozen=True, kw_only=True):
    """For `on_tool_result`: the tool gave a result; nobody has seen it."""

    call: CallInfo
    original_input: Any
    tool: Tool
    scope: Scope | None
    result: Any
    preliminary: bool = False
    """Whether it is shown while the tool still runs: a value it yields or reports."""


class ToolFailureContext(HookContext, frozen=True, kw_only=True):
    """For `on_tool_error`: the call failed; nobody has seen why.

    `tool` is None for an unknown one.
    """

    call: CallInfo
    original_input: Any
    tool: Tool | None
    scope: Scope | None
    error: BaseException


class CallEnded(HookContext, frozen=True, kw_only=True):
    """What both kinds of `ToolResultContext` have. `tool` is None for an unknown one."""

    type: Literal["tool-call"] = "tool-call"
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
    dynamic: bool = False
    """Whether the agent's own code does not have the tool: a scope, a client or nobody does."""

    def input_as(self, kind: Class[T]) -> T:
        """The input as a pydantic model, a dataclass, a struct, a TypedDict.

        Raises `ValueError` if it does not fit, as the input of an `invalid` call may not.
        """
        return read_as(kind, self.input, f"The input of {self.tool_name!r}")


class CallSucceeded(CallEnded, frozen=True, kw_only=True):
    """The call has a result."""

    success: Literal[True] = True
    error: None = None


class CallFailed(CallEnded, frozen=True, kw_only=True):
    """The call failed, or was not allowed to run."""

    success: Literal[False] = False
    output: None = None
    error: BaseException


ToolResultContext: TypeAlias = CallSucceeded | CallFailed
"""For `after_tool_call`: once per call, before its result is stored and sent.

Two classes, so that a type checker knows after `if ctx.success` that there is no error, and else
that there is one.
"""


def call_ended(*, output: Any, error: BaseException | None, **facts: Any) -> ToolResultContext:
    """The context of a call that has its result, or failed."""
    for name in ("input", "original_input"):
        facts[name] = read_only_copy(facts[name])
    if error is None:
        return CallSucceeded(output=read_only_copy(output), **facts)
    return CallFailed(error=error, **facts)


class ChatRecoveryContext(HookContext, frozen=True, kw_only=True):
    """For `on_chat_recovery` and `should_keep_recovering`: the turn was interrupted and is about to
    be taken up again. Nothing of the new attempt is stored yet.
    """

    recovery_kind: RecoveryKind
    """`continue` if the reply has begun, else `retry`."""
    cause: Cause
    """`death` of the process, a planned `stop` of it, or a `stall` of the model."""
    attempt: int
    """Which attempt is about to begin; the first one of a turn is 0."""
    used: int
    """How many attempts without progress the budget has counted, this one included."""
    max_attempts: int
    """How many there may be."""
    work: int
    """What was produced since the first interruption, as the budget counts it."""
    age: float
    """Seconds since the turn was accepted."""
    partial_text: str
    """The words of the reply so far."""
    partial_parts: tuple[Mapping[str, Any], ...]
    """Its parts so far."""
    stash: Any = None
    """What `stash` was given last in this turn."""
    body: Mapping[str, Any] | None = None
    """Custom fields of the client's request."""


class RecoveryExhaustedContext(ChatRecoveryContext, frozen=True, kw_only=True):
    """For `on_exhausted`: the turn was given up; its end is stored and clients were told."""

    reason: GiveUpReason
    redelivered: bool = False
    """True when an earlier delivery may have been cut by a crash."""


class ChatErrorContext(HookContext, frozen=True, kw_only=True):
    """For `on_chat_error`: the turn failed. `get_messages()` has the partial answer, the end is not
    yet stored.
    """

    error: Exception
    """What went wrong."""
    stage: Stage
    classification: Classification | None = None
    """What `classify_chat_error` said."""
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
    output: Any = None
    """The validated structured output, if one was asked for."""
    redelivered: bool = False
    """True when an earlier delivery may have been cut by a crash."""


class ChatDoneContext(HookContext, frozen=True, kw_only=True):
    """For `on_chat_done`: the turn completed; stored and told."""

    response: ModelResponse
    """The last step's answer."""
    message: UIMessage
    output: Any = None


class ChatAbortContext(HookContext, frozen=True, kw_only=True):
    """For `on_chat_abort`: the turn was stopped or cleared away; stored and told."""

    reason: str
    message: UIMessage
    """What had been answered."""


class ScopeContext(msgspec.Struct, frozen=True, kw_only=True):
    """For `on_scope_register` and `on_scope_unregister`: the registry has changed already."""

    scope: Scope
    agent: Any
