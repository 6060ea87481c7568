"""`once` holds for a call of the conversation, not for one turn (DESIGN §8.15).

Before a tool that may not be repeated runs, the ledger of the whole agent is asked for the same
call with an outcome that nobody knows: cut by a crash or left behind by a stop, in this turn, in
an earlier one or in the reply this one continues. The tool's own `reconcile` may know what came
of it; otherwise the call is refused, with the reason.
"""

from __future__ import annotations

import msgspec

from thinkwell.core.errors import ToolChangedError
from thinkwell.core.turn_events import ToolOutcomeUnknown
from thinkwell.core.user_code import call_user
from thinkwell.journal.ledger import LATE, LedgerRow, close_call, open_calls
from thinkwell.tools.reconcile import Done, EarlierCall, NotDone
from thinkwell.tools.tool import Tool
from thinkwell.turn.run.pending_call import PendingCall
from thinkwell.turn.run.redaction import check_settled, log_unasked
from thinkwell.turn.run.running import RunningTurn
from thinkwell.turn.run.tool_policy import Changed, Ready, Settled, unknown_outcome

NOT_DONE = "It did not take effect."


async def earlier_outcome(
    turn: RunningTurn, call: PendingCall, ready: Ready
) -> Settled | str | None:
    """The result of the same call made before, or the refusal; else the tool may run.

    Then the key of an earlier call that did not take effect, if there was one: this one stands for
    it, and whoever knows the key knows that.
    """
    tool, parts, key = ready.tool, turn.parts, None
    for row in await open_calls(parts.store, parts.owner.agent_id, tool.name, ready.input):
        here = row.turn == turn.record.request_id
        if here and row.call_id in turn.calls.running:
            continue  # a call beside this one: the model wants both
        match await _what_came_of(turn, tool, row):
            case Done(output=output):
                settled = Settled(outcome="executed", input=ready.input, tool=tool, output=output)
                if row.outcome == LATE:  # the hooks have seen it before it was written there
                    settled = msgspec.structs.replace(settled, checked=True)
                settled = await check_settled(turn, call, settled)
                await _close(turn, row, output=settled.output, error=settled.error_text)
                return settled
            case NotDone():
                if not (here and row.call_id == call.call_id):  # its own claim is taken over
                    await _close(turn, row, output=None, error=NOT_DONE)
                    key = key or row.idempotency_key
            case _:
                _tell(turn, call, row)
                return unknown_outcome(
                    tool.name, ready.input, tool=tool, earlier=row.call_id != call.call_id
                )
    return key


async def outcome_of_changed(turn: RunningTurn, call: PendingCall, changed: Changed) -> Settled:
    """The result of a call that does not run because the code has changed.

    If it was cut while it ran, it may have taken effect under the old code. Only what the old tool
    promised counts then; the new one's `reconcile` may know more, and is a question, no effect.
    """
    row, tool, error = call.ledger, changed.tool, changed.error
    if row is not None and row.effect == "idempotent" and isinstance(error, ToolChangedError):
        error = ToolChangedError(
            call.tool_name, error.change, available=error.available, may_have_run=True
        )
    if row is not None and row.effect == "once":
        came = None if tool is None else await _what_came_of(turn, tool, row)
        if isinstance(came, Done):
            return Settled(outcome="executed", input=row.input, tool=tool, output=came.output)
        if not isinstance(came, NotDone):
            _tell(turn, call, row)
            return unknown_outcome(call.tool_name, call.input, tool=tool)
    outcome = "unknown" if tool is None else "invalid"
    return Settled(outcome=outcome, input=call.input, tool=tool, error=error)


async def _what_came_of(turn: RunningTurn, tool: Tool, row: LedgerRow) -> Done | NotDone | None:
    if row.outcome == LATE:
        return Done(row.output) if row.error is None else NotDone()
    if tool.reconcile is None:
        return None
    earlier = EarlierCall(
        tool_name=row.tool_name,
        input=row.input,
        idempotency_key=row.idempotency_key,
        tool_call_id=row.call_id,
        request_id=row.turn,
        agent=turn.parts.agent_ref,
    )
    reconcile, what = tool.reconcile, f"reconcile of {tool.name!r}"
    try:
        return await call_user(what, reconcile, earlier)
    except Exception as error:  # noqa: BLE001 - then nobody knows, and the hooks see that
        log_unasked(turn.parts, what, error, {"action": "reconcile", "tool": tool.name})
        return None


async def _close(turn: RunningTurn, row: LedgerRow, *, output: object, error: str | None) -> None:
    parts = turn.parts
    await parts.commits.insist(
        parts.owner,
        lambda tx: close_call(
            tx, parts.owner.agent_id, row, output=output, error=error, now=parts.clock.now()
        ),
    )


def _tell(turn: RunningTurn, call: PendingCall, row: LedgerRow) -> None:
    turn.parts.bus.emit(
        ToolOutcomeUnknown,
        **turn.event_fields(),
        tool_call_id=call.call_id,
        tool_name=row.tool_name,
        earlier_call=row.call_id,
        earlier_turn=row.turn,
    )
