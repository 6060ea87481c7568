"""After the slot is free: the hooks of the end, once, also after a crash (spec/02 §4.5; spec/04
C12).

`on_chat_done` or `on_chat_abort`, then `on_chat_response`. A turn that failed has told
`on_chat_error` already, so exactly one of the three is called. What they raise is reported and
changes nothing. A turn started in one of them is one longer in the chain.
"""

from __future__ import annotations

from contextvars import ContextVar

import msgspec

from thinkwell.core import json
from thinkwell.core.events import HookRedelivered
from thinkwell.hooks.contexts import ChatAbortContext, ChatDoneContext, ChatResponse, facts_of
from thinkwell.journal.crash_points import crash_here
from thinkwell.journal.turns import TurnRecord, set_hooks_owed
from thinkwell.messages.message import UIMessage
from thinkwell.turn.end.ending import TurnOutcome
from thinkwell.turn.end.recovered import call_on_exhausted
from thinkwell.turn.end.settle import last_response
from thinkwell.turn.parts import Parts

chain_depth: ContextVar[int] = ContextVar("chain_depth", default=0)
"""How many turns have started one another in their end hooks, up to here."""

ended_turn: ContextVar[TurnRecord | None] = ContextVar("ended_turn", default=None)
"""The turn whose end hooks the current code belongs to."""


async def notify(
    parts: Parts, outcome: TurnOutcome, *, depth: int = 0, redelivered: bool = False
) -> None:
    """Run the hooks of the end."""
    record = outcome.record
    copy: UIMessage = json.loads(json.dumps(outcome.message))
    outcome = msgspec.structs.replace(outcome, message=copy)  # the hooks' own copy
    crash_here("c12")
    if outcome.cleared:
        await _call_on_abort(parts, outcome, "cleared")
    if record.hooks_owed == 0:
        return
    if redelivered:
        left = record.hooks_owed - 1
        await _owe(parts, record, left)  # first: the hook may kill the process
        parts.bus.emit(
            HookRedelivered,
            agent=record.agent_id,
            request_id=record.request_id,
            hook="on_chat_response",
            left=left,
        )
    token = chain_depth.set(depth + 1)
    ended = ended_turn.set(record)
    try:
        if record.incident.exhausted is not None:
            await call_on_exhausted(parts, outcome, redelivered=redelivered)
        if record.status == "completed":
            await _call_on_done(parts, outcome)
        elif record.status == "aborted":
            await _call_on_abort(parts, outcome, record.error or "aborted")
        await _call_on_response(parts, outcome, redelivered=redelivered)
    finally:
        chain_depth.reset(token)
        ended_turn.reset(ended)
    await _owe(parts, record, 0)


async def redeliver(parts: Parts, record: TurnRecord) -> None:
    """The process died before the hooks were done: run them again from what is stored."""
    stored = await parts.session.get_message(record.message_id) if record.message_id else None
    message: UIMessage = stored or {"id": record.message_id or "", "role": "assistant", "parts": []}
    outcome = TurnOutcome(
        record=record,
        message=message,
        output=record.output,
        response=last_response(message, record.stop_reason),
    )
    await notify(parts, outcome, redelivered=True)


async def _call_on_done(parts: Parts, outcome: TurnOutcome) -> None:
    context = ChatDoneContext(
        **facts_of(outcome.record, parts.agent_ref),
        response=outcome.response,
        message=outcome.message,
        output=outcome.output,
    )
    await parts.hooks.observe_end("on_chat_done", context)


async def _call_on_abort(parts: Parts, outcome: TurnOutcome, reason: str) -> None:
    fields = facts_of(outcome.record, parts.agent_ref)
    context = ChatAbortContext(**fields, reason=reason, message=outcome.message)
    await parts.hooks.observe_end("on_chat_abort", context)


async def _call_on_response(parts: Parts, outcome: TurnOutcome, *, redelivered: bool) -> None:
    record = outcome.record
    context = ChatResponse(
        **facts_of(record, parts.agent_ref),
        message=outcome.message,
        status=record.status,  # pyright: ignore[reportArgumentType] - a settled, executed turn
        error=record.error if record.status == "error" else None,
        usage=record.usage,
        stop_reason=record.stop_reason,  # pyright: ignore[reportArgumentType] - by `settle`
        steps=record.steps,
        output=outcome.output,
        redelivered=redelivered,
    )
    await parts.hooks.observe_end("on_chat_response", context)


async def _owe(parts: Parts, record: TurnRecord, owed: int) -> None:
    await parts.commits.insist(parts.owner, lambda tx: set_hooks_owed(tx, record, owed))
