"""What the bus tells: one frozen class for each event, told apart by `type` (spec/04 §17).

`type` is a literal, so that type checkers know the fields of an event whose type was compared.
Every event names its agent; those of the store speak of the whole process and have none. An event
never holds what a hook hides: it is told when the hooks have had it.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from thinkwell.core.bus_event import BusEvent, FiberEvent, JobEvent, Problem, type_of
from thinkwell.core.context_events import ContextChanged, ContextPromptMade
from thinkwell.core.lifecycle_events import (
    AgentActivated,
    AgentDestroyed,
    AgentPassivated,
    ClientConnected,
    ClientDisconnected,
    HookRedelivered,
    HostBooted,
    HostDraining,
    MessageCancelled,
    MessagesCleared,
    RpcCalled,
    StateUpdated,
)
from thinkwell.core.principal import Principal
from thinkwell.core.schedule_events import (
    QueueCreated,
    QueueDeadLetter,
    QueueFailed,
    QueueRetried,
    ScheduleCancelled,
    ScheduleCreated,
    ScheduleDuplicated,
    ScheduleExecuted,
    ScheduleFailed,
    ScheduleRetried,
    SchedulesUnreconciled,
)
from thinkwell.core.turn_events import (
    ChatOnStartDegraded,
    ChatRecoveryAttempt,
    ChatRecoveryCompleted,
    ChatRecoveryDetected,
    ChatRecoveryExhausted,
    ChatRecoveryFailed,
    ChatRecoveryScheduled,
    ChatRecoverySkipped,
    ChatRequestFailed,
    ChatStreamStalled,
    ChatTranscriptRepaired,
    ChatTurnFinish,
    ChatTurnParked,
    ChatTurnStart,
    HookFailed,
    HookLeftBehind,
    ModelAdmitted,
    ModelWaiting,
    ToolEndedLate,
    ToolFailed,
    ToolLeftBehind,
    ToolOutcomeUnknown,
    ToolsShadowed,
)


class ChatDecision(BusEvent, frozen=True, kw_only=True):
    """An answer from outside was applied and stored."""

    type: Literal["chat:decision"] = "chat:decision"
    turn: str | None
    message_id: str
    tool_call_id: str
    tool_name: str
    action: Literal["answer", "approve"]
    approved: bool | None
    reason: str | None
    principal: Principal | None
    by_client: bool
    approval_id: str | None = None
    input_hash: str | None = None
    schema_hash: str | None = None
    rule: str | None = None
    """The rule that allowed the call; nobody was asked."""
    expired: bool = False
    """Nobody had answered in time, so the call is denied."""
    decided_at: float | None = None


class ApprovalAsked(BusEvent, frozen=True, kw_only=True):
    """A call waits for somebody to allow it. The question is stored."""

    type: Literal["approval:asked"] = "approval:asked"
    approval_id: str
    turn: str | None
    message_id: str
    tool_call_id: str
    tool_name: str
    principal: Principal | None
    """Who asked for the turn."""
    expires_at: float | None
    note: str | None
    """Why it is asked although a rule seemed to cover it."""


class ApprovalRuleMade(BusEvent, frozen=True, kw_only=True):
    """From now on some calls are allowed without asking."""

    type: Literal["approval:rule:made"] = "approval:rule:made"
    rule: str
    tool_name: str
    principal: str | None
    """Whose turns it is about."""
    made_by: Principal | None
    by_client: bool


class ApprovalRuleRevoked(BusEvent, frozen=True, kw_only=True):
    """A rule holds no longer."""

    type: Literal["approval:rule:revoked"] = "approval:rule:revoked"
    rule: str
    tool_name: str
    revoked_by: Principal | None
    by_client: bool


class ClientForged(BusEvent, frozen=True, kw_only=True):
    """A client said of a call what it cannot have got honestly. Nothing came of it."""

    type: Literal["client:forged"] = "client:forged"
    principal: str | None
    what: str
    message_id: str
    tool_call_id: str


class ToolQueued(BusEvent, frozen=True, kw_only=True):
    """A sync tool has to wait for a thread."""

    type: Literal["tool:queued"] = "tool:queued"
    waiting: int
    """How many calls wait in the whole process."""


class RpcFailed(BusEvent, frozen=True, kw_only=True):
    """A method that a client called has raised."""

    type: Literal["rpc:error"] = "rpc:error"
    method: str
    error: BaseException


class JobStarted(JobEvent, frozen=True, kw_only=True):
    """An attempt has begun."""

    type: Literal["job:started"] = "job:started"


class JobFinished(JobEvent, frozen=True, kw_only=True):
    """A job is done."""

    type: Literal["job:finished"] = "job:finished"


class JobRetried(JobEvent, frozen=True, kw_only=True):
    """It waits for its next attempt."""

    type: Literal["job:retried"] = "job:retried"
    error: str | None
    due_at: float


class JobFailed(JobEvent, frozen=True, kw_only=True):
    """It is given up."""

    type: Literal["job:failed"] = "job:failed"
    error: str | None


class JobCancelled(JobEvent, frozen=True, kw_only=True):
    """It was cancelled."""

    type: Literal["job:cancelled"] = "job:cancelled"


class JobHeld(JobEvent, frozen=True, kw_only=True):
    """It is due, but nothing here can run it."""

    type: Literal["job:held"] = "job:held"
    reason: str


class FiberStarted(FiberEvent, frozen=True, kw_only=True):
    """An attempt of a fiber has begun."""

    type: Literal["fiber:run:started"] = "fiber:run:started"
    attempt: int


class FiberEnded(FiberEvent, frozen=True, kw_only=True):
    """A fiber is over, and how is stored."""

    type: Literal["fiber:run:ended"] = "fiber:run:ended"
    status: str
    """`completed`, `aborted`, `interrupted` or `error`."""
    error: str | None


class FiberInterrupted(FiberEvent, frozen=True, kw_only=True):
    """A fiber was cut off and its function is gone: `on_fiber_recovered` is asked."""

    type: Literal["fiber:run:interrupted"] = "fiber:run:interrupted"
    attempt: int


class FiberSkipped(FiberEvent, frozen=True, kw_only=True):
    """The recovery of a fiber failed for too long, and it is given up."""

    type: Literal["fiber:recovery:skipped"] = "fiber:recovery:skipped"
    reason: str


class AgentParked(BusEvent, frozen=True, kw_only=True):
    """An agent stays asleep, because the process died too often at its start."""

    type: Literal["agent:parked"] = "agent:parked"
    reason: str


class AgentPaused(BusEvent, frozen=True, kw_only=True):
    """An operator has paused an agent: its turns and jobs wait."""

    type: Literal["agent:paused"] = "agent:paused"
    reason: str


class AgentResumed(BusEvent, frozen=True, kw_only=True):
    """It goes on."""

    type: Literal["agent:resumed"] = "agent:resumed"


class AgentDamaged(BusEvent, frozen=True, kw_only=True):
    """What is stored of an agent cannot be read: one turn of it, or all of it."""

    type: Literal["agent:damaged"] = "agent:damaged"
    request_id: str | None = None
    error: Problem = None


class StoreFailing(BusEvent, frozen=True, kw_only=True):
    """The store does not write. New work is refused, what runs waits."""

    type: Literal["store:failing"] = "store:failing"
    reason: str


class StoreRecovered(BusEvent, frozen=True, kw_only=True):
    """It writes again, and everything that waited for it is stored."""

    type: Literal["store:recovered"] = "store:recovered"


Event: TypeAlias = (
    ChatTurnStart
    | ChatTurnFinish
    | ChatTurnParked
    | ChatRequestFailed
    | ChatRecoveryDetected
    | ChatRecoveryScheduled
    | ChatRecoveryAttempt
    | ChatRecoveryCompleted
    | ChatRecoverySkipped
    | ChatRecoveryFailed
    | ChatRecoveryExhausted
    | ChatDecision
    | ChatOnStartDegraded
    | ApprovalAsked
    | ApprovalRuleMade
    | ApprovalRuleRevoked
    | ChatStreamStalled
    | ChatTranscriptRepaired
    | ModelWaiting
    | ModelAdmitted
    | ClientForged
    | ContextChanged
    | ContextPromptMade
    | ToolsShadowed
    | ToolQueued
    | ToolFailed
    | ToolLeftBehind
    | ToolEndedLate
    | ToolOutcomeUnknown
    | HookFailed
    | HookLeftBehind
    | RpcFailed
    | JobStarted
    | JobFinished
    | JobRetried
    | JobFailed
    | JobCancelled
    | JobHeld
    | FiberStarted
    | FiberEnded
    | FiberInterrupted
    | FiberSkipped
    | ScheduleCreated
    | ScheduleExecuted
    | ScheduleRetried
    | ScheduleFailed
    | ScheduleCancelled
    | ScheduleDuplicated
    | SchedulesUnreconciled
    | QueueCreated
    | QueueRetried
    | QueueFailed
    | QueueDeadLetter
    | AgentParked
    | AgentPaused
    | AgentResumed
    | AgentDamaged
    | StoreFailing
    | StoreRecovered
    | StateUpdated
    | RpcCalled
    | MessagesCleared
    | MessageCancelled
    | ClientConnected
    | ClientDisconnected
    | AgentDestroyed
    | AgentActivated
    | AgentPassivated
    | HostBooted
    | HostDraining
    | HookRedelivered
)
"""Everything the bus tells by itself. Compare `type`, or match on the class."""

TYPES = tuple(type_of(event) for event in get_args(Event))
"""The names of all of them."""
