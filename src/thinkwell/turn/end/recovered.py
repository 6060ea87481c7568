"""What is said about turns that were interrupted, when they end and while they are taken up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from thinkwell.core.signal import AbortSignal
from thinkwell.core.turn_events import (
    ChatRecoveryCompleted,
    ChatRecoveryExhausted,
    ChatRecoveryFailed,
    ChatRecoverySkipped,
)
from thinkwell.hooks.contexts import ChatRecoveryContext, RecoveryExhaustedContext, facts_of
from thinkwell.hooks.read_only import read_only_copy
from thinkwell.hooks.recovery import recovery_of
from thinkwell.hooks.registry import Hook
from thinkwell.journal.budget import GiveUpReason, RecoveryKind
from thinkwell.journal.turns import TurnRecord
from thinkwell.messages.message import Part
from thinkwell.turn.end.ending import Aborted, Completed, Ending, Skipped, TurnOutcome
from thinkwell.turn.parts import Parts

if TYPE_CHECKING:
    from thinkwell.turn.run.running import RunningTurn

ON_EXHAUSTED = "on_exhausted"


def recovery_facts(parts: Parts, record: TurnRecord, kind: RecoveryKind) -> dict[str, Any]:
    """What every event about an interrupted turn says."""
    return {
        "agent": record.agent_id,
        "request_id": record.request_id,
        "attempt": record.attempt,
        "max_attempts": recovery_of(parts.agent.chat_recovery).max_attempts,
        "recovery_kind": kind,
    }


def report_recovery(turn: RunningTurn, ending: Ending, error: Exception | None) -> None:
    """The end of a turn that was interrupted is stored: say what came of it."""
    past, bus = turn.past, turn.parts.bus
    facts = recovery_facts(turn.parts, turn.record, past.kind)
    if past.given_up is not None:
        given_up = past.given_up
        bus.emit(ChatRecoveryExhausted, **facts, reason=given_up.reason, detail=given_up.text)
    elif past.declined is not None:
        bus.emit(ChatRecoverySkipped, **facts, reason=past.declined)
    elif isinstance(ending, Aborted | Skipped):
        reason = "stopped" if isinstance(ending, Aborted) else "cleared"
        bus.emit(ChatRecoverySkipped, **facts, reason=reason)
    elif isinstance(ending, Completed):
        bus.emit(ChatRecoveryCompleted, **facts)
    else:
        bus.emit(ChatRecoveryFailed, **facts, error=error)


def recovery_context(
    parts: Parts,
    record: TurnRecord,
    reply: Sequence[Part],
    *,
    kind: RecoveryKind,
    signal: AbortSignal | None = None,
) -> ChatRecoveryContext:
    """What the agent's code is shown of an interrupted turn."""
    incident = record.incident
    own_copy = cast("Sequence[Mapping[str, Any]]", read_only_copy(list(reply)))
    return ChatRecoveryContext(
        **facts_of(record, parts.agent_ref, signal),
        recovery_kind=kind,
        cause="death",
        attempt=record.attempt,
        used=max(incident.barren, incident.stalls),
        max_attempts=recovery_of(parts.agent.chat_recovery).max_attempts,
        work=incident.work,
        age=max(parts.clock.now() - record.created_at, 0.0),
        partial_text="".join(str(part["text"]) for part in reply if part.get("type") == "text"),
        partial_parts=tuple(own_copy),
        stash=read_only_copy(incident.stash),
        body=record.body and read_only_copy(record.body),
    )


def wants_exhausted(parts: Parts) -> bool:
    """Whether the app is told of turns that were given up."""
    return recovery_of(parts.agent.chat_recovery).on_exhausted is not None


async def call_on_exhausted(parts: Parts, outcome: TurnOutcome, *, redelivered: bool) -> None:
    """Tell the app that a turn was given up."""
    call = recovery_of(parts.agent.chat_recovery).on_exhausted
    if call is None:
        return
    record, shown = outcome.record, outcome.message["parts"]
    base = recovery_context(parts, record, shown, kind="continue" if shown else "retry")
    fields: dict[str, Any] = {name: getattr(base, name) for name in base.__struct_fields__}
    fields["cause"] = "stall" if record.stop_reason == "error" else "death"
    context = RecoveryExhaustedContext(
        **fields,
        reason=cast("GiveUpReason", record.incident.exhausted),
        redelivered=redelivered,
    )
    await parts.hooks.call_end(ON_EXHAUSTED, Hook(call, ON_EXHAUSTED), context)
