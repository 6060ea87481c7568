"""After the slot is free: the response hooks, once, also after a crash (spec/02 §4.5, §5.14;
spec/04 C12).
"""

from __future__ import annotations

from thinkwell.core import json
from thinkwell.core.signal import AbortSignal
from thinkwell.hooks.contexts import ChatResponse
from thinkwell.journal.crash_points import crash_here
from thinkwell.journal.turns import TurnRecord, set_hooks_owed
from thinkwell.messages.message import UIMessage
from thinkwell.turn.ending import TurnOutcome, TurnResult
from thinkwell.turn.face import Parts
from thinkwell.turn.settle import has_content


async def notify(parts: Parts, outcome: TurnOutcome, *, redelivered: bool = False) -> None:
    """Run `on_chat_response`. What it raises is reported, never changes the outcome."""
    record = outcome.record
    crash_here("c12")
    if record.hooks_owed == 0:
        return
    if redelivered:
        await _owe(parts, record, record.hooks_owed - 1)
    response = ChatResponse(
        request_id=record.request_id,
        trigger=record.trigger,
        continuation=record.continuation,
        agent=parts.agent_ref,
        abort_signal=AbortSignal(),
        message=json.loads(json.dumps(outcome.message)),  # the hooks' own copy
        status=record.status,  # pyright: ignore[reportArgumentType] - a settled, executed turn
        error=record.error if record.status == "error" else None,
        usage=record.usage,
        stop_reason=record.stop_reason,  # pyright: ignore[reportArgumentType] - written by `settle`
        steps=record.steps,
        redelivered=redelivered,
    )
    await parts.hooks.observe("on_chat_response", response)
    await _owe(parts, record, 0)


async def redeliver(parts: Parts, record: TurnRecord) -> None:
    """The process died before the hooks were done: run them again from what is stored."""
    stored = await parts.session.get_message(record.message_id) if record.message_id else None
    message: UIMessage = stored or {"id": record.message_id or "", "role": "assistant", "parts": []}
    await notify(parts, TurnOutcome(record=record, message=message), redelivered=True)


def result_of(outcome: TurnOutcome) -> TurnResult:
    """What whoever waits for the turn gets."""
    record = outcome.record
    return TurnResult(
        request_id=record.request_id,
        status=record.status,
        message=outcome.message if has_content(outcome.message) else None,
        error=record.error if record.status == "error" else None,
        stop_reason=record.stop_reason,
        usage=record.usage,
        steps=record.steps,
        continuation=record.continuation,
    )


async def _owe(parts: Parts, record: TurnRecord, owed: int) -> None:
    await parts.commits.run(parts.owner, lambda tx: set_hooks_owed(tx, record, owed))
