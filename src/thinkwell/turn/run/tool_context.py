"""The context a tool's handler and its approval predicate are given."""

from __future__ import annotations

from thinkwell.tools.context import ToolContext
from thinkwell.turn.run.pending_call import PendingCall
from thinkwell.turn.run.running import RunningTurn
from thinkwell.turn.run.step import Step


def tool_context(
    turn: RunningTurn,
    step: Step,
    call: PendingCall,
    idempotency_key: str,
) -> ToolContext:
    """One call, seen from inside."""
    return ToolContext(
        tool_call_id=call.call_id,
        tool_name=call.tool_name,
        messages=step.request.messages,
        abort_signal=turn.signal,
        step_number=step.number,
        request_id=turn.record.request_id,
        agent=turn.parts.agent_ref,
        idempotency_key=idempotency_key,
        runtime_context=step.runtime_context,
        principal=turn.record.principal,
        authorization=turn.settings.authorization,
    )
