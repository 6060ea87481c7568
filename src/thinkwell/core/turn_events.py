"""Events about one turn, its tool calls and its hooks."""

from __future__ import annotations

from typing import Any, Literal

from thinkwell.core.bus_event import BusEvent, CallEvent, Problem, TurnEvent


class ChatTurnStart(TurnEvent, frozen=True, kw_only=True):
    """A turn has its slot."""

    type: Literal["chat:turn:start"] = "chat:turn:start"
    trigger: str
    """Who asked: `ws-chat`, `http-chat`, `programmatic`, …"""
    continuation: bool
    generation: int


class ChatTurnFinish(TurnEvent, frozen=True, kw_only=True):
    """A turn has left its slot."""

    type: Literal["chat:turn:finish"] = "chat:turn:finish"
    trigger: str
    continuation: bool
    generation: int
    status: str
    """`completed`, `error`, `aborted` or `skipped`."""
    duration_ms: float
    error: Problem = None


class ChatTurnParked(TurnEvent, frozen=True, kw_only=True):
    """The process died too often at one place of a turn, which is not run again by itself."""

    type: Literal["chat:turn:parked"] = "chat:turn:parked"
    places: Any
    deaths: int
    reason: str


class ChatRequestFailed(TurnEvent, frozen=True, kw_only=True):
    """A turn failed; `error` is what `on_chat_error` made of it."""

    type: Literal["chat:request:failed"] = "chat:request:failed"
    stage: str
    messages_persisted: bool
    """Whether its input is stored."""
    classification: str | None
    error: Problem


class ChatStreamStalled(TurnEvent, frozen=True, kw_only=True):
    """The model said nothing for too long, or its answer broke off; it is asked to go on."""

    type: Literal["chat:stream:stalled"] = "chat:stream:stalled"
    timeout_ms: float | None
    reason: str


class ModelWaiting(TurnEvent, frozen=True, kw_only=True):
    """A model call has to wait: its `ModelLimits` let nobody through now."""

    type: Literal["model:waiting"] = "model:waiting"
    model: str
    """Provider and model."""
    limit: str
    """The pattern in `model_limits`."""
    reason: Literal["parallel", "requests", "tokens", "provider", "turn"]
    """What is used up; `provider`: it has asked for a pause; `turn`: others wait already."""
    ahead: int
    """How many calls waited already."""


class ModelAdmitted(TurnEvent, frozen=True, kw_only=True):
    """A model call that waited begins now. One that was stopped instead says so by its end."""

    type: Literal["model:admitted"] = "model:admitted"
    model: str
    limit: str
    waited_ms: float


class RecoveryEvent(TurnEvent, frozen=True, kw_only=True):
    """Something about a turn that was interrupted. One incident belongs to one turn, so
    `request_id` names it.
    """

    attempt: int
    """Which attempt of the turn it is about, from 1; the first one is no recovery."""
    max_attempts: int
    """How many may follow an interruption without progress."""
    recovery_kind: Literal["retry", "continue"]
    """Whether the attempt begins anew, or goes on in a reply that has begun."""


class ChatRecoveryDetected(RecoveryEvent, frozen=True, kw_only=True):
    """A turn was interrupted for the first time: by a death or a planned stop of the process, or by
    a model that fell silent.
    """

    type: Literal["chat:recovery:detected"] = "chat:recovery:detected"
    cause: Literal["death", "stop", "stall"]


class ChatRecoveryScheduled(RecoveryEvent, frozen=True, kw_only=True):
    """It is decided that another attempt is made."""

    type: Literal["chat:recovery:scheduled"] = "chat:recovery:scheduled"
    delay: float
    """Seconds until then."""
    cause: Literal["death", "stop", "stall"]


class ChatRecoveryAttempt(RecoveryEvent, frozen=True, kw_only=True):
    """An interrupted turn is taken up again: its attempt is stored and begins."""

    type: Literal["chat:recovery:attempt"] = "chat:recovery:attempt"


class ChatRecoveryCompleted(RecoveryEvent, frozen=True, kw_only=True):
    """A turn that was taken up again has its answer."""

    type: Literal["chat:recovery:completed"] = "chat:recovery:completed"


class ChatRecoverySkipped(RecoveryEvent, frozen=True, kw_only=True):
    """An interrupted turn has ended without another attempt, or in the middle of one."""

    type: Literal["chat:recovery:skipped"] = "chat:recovery:skipped"
    reason: Literal["already_answered", "continue_disabled", "stopped", "cleared"]


class ChatRecoveryFailed(RecoveryEvent, frozen=True, kw_only=True):
    """A turn that was taken up again has failed, as any turn may."""

    type: Literal["chat:recovery:failed"] = "chat:recovery:failed"
    error: Problem


class ChatRecoveryExhausted(RecoveryEvent, frozen=True, kw_only=True):
    """A turn was interrupted too often, or for too long, and is given up."""

    type: Literal["chat:recovery:exhausted"] = "chat:recovery:exhausted"
    reason: Literal[
        "crash_loop",
        "work_budget_exceeded",
        "no_progress_timeout",
        "recovery_aborted",
        "max_attempts_exceeded",
    ]
    detail: str
    """The same in a sentence."""


class ChatOnStartDegraded(BusEvent, frozen=True, kw_only=True):
    """Something stored of an agent cannot be read, and it serves without it."""

    type: Literal["chat:onstart:degraded"] = "chat:onstart:degraded"
    step: str
    """`state`, `transcript-hydration` or `durable-work-recovery`."""
    error: Problem


class ChatTranscriptRepaired(TurnEvent, frozen=True, kw_only=True):
    """Stored messages had calls without a result or wrong inputs, and were mended."""

    type: Literal["chat:transcript:repaired"] = "chat:transcript:repaired"
    removed_tool_calls: int
    normalized_inputs: int
    tool_call_ids: tuple[str, ...]


class ToolsShadowed(TurnEvent, frozen=True, kw_only=True):
    """A client declared a tool whose name is taken; the client's is left out."""

    type: Literal["tools:shadowed"] = "tools:shadowed"
    name: str
    winner: str
    loser: str


class ToolFailed(CallEvent, frozen=True, kw_only=True):
    """A tool raised; `error` is what `on_tool_error` left of it."""

    type: Literal["tool:error"] = "tool:error"
    error: Problem


class ToolLeftBehind(CallEvent, frozen=True, kw_only=True):
    """A tool ignored a stop or its time limit, and the turn went on without it."""

    type: Literal["tool:left_behind"] = "tool:left_behind"


class ToolEndedLate(CallEvent, frozen=True, kw_only=True):
    """A tool that was left behind has ended."""

    type: Literal["tool:ended_late"] = "tool:ended_late"
    error: Problem


class ToolOutcomeUnknown(CallEvent, frozen=True, kw_only=True):
    """A call was refused: the same call was cut off, and nobody knows what came of it."""

    type: Literal["tool:outcome_unknown"] = "tool:outcome_unknown"
    earlier_call: str
    earlier_turn: str


class HookFailed(BusEvent, frozen=True, kw_only=True):
    """A hook raised, or returned what it may not."""

    type: Literal["hook:error"] = "hook:error"
    request_id: str | None
    """The turn it was called in, if there was one."""
    event: str
    """When it was called: `on_chunk`, `on_tool_result`, …"""
    hook: str
    """Which one: its name."""
    error: BaseException


class HookLeftBehind(TurnEvent, frozen=True, kw_only=True):
    """A hook or another function of the app ignored a stop or its time limit."""

    type: Literal["hook:left_behind"] = "hook:left_behind"
    hook: str
