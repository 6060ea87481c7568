"""Results that are recorded already, found for a call of the same tool with the same input.

A fork never repeats an effect: what its source did comes from the record, and everything else is
asked about or refused, unless the fork was made to run tools.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from thinkwell.core import json
from thinkwell.core.errors import ToolError
from thinkwell.hooks.contexts import ToolOutcome
from thinkwell.journal.ledger import LedgerRow, read_calls
from thinkwell.journal.turns import Forked
from thinkwell.messages.message import tool_name, tool_parts
from thinkwell.turn.run.approval import make_question
from thinkwell.turn.run.pending_call import PendingCall
from thinkwell.turn.run.running import RunningTurn
from thinkwell.turn.run.tool_policy import Prepared, Ready, Settled, Waiting

NOT_IN_A_FORK = (
    "This turn is a fork, in which tools do not run: only calls that were made before have results."
)


async def hold_back(turn: RunningTurn, call: PendingCall, ready: Ready, forked: Forked) -> Prepared:
    """What becomes of a call in a fork. One that a person has allowed there runs."""
    rows = await read_calls(turn.parts.store, turn.record.agent_id, forked.turn)
    row = recorded_call(turn, call, ready.input, rows)
    if row is not None:
        return from_row(ready, row)
    if call.approved or forked.tools == "live":
        return ready
    if forked.tools == "ask":
        return Waiting(make_question(turn, ready.tool, call))
    error = ToolError(NOT_IN_A_FORK)
    return Settled(outcome="failed", input=ready.input, tool=ready.tool, error=error)


def recorded_call(
    turn: RunningTurn, call: PendingCall, call_input: dict[str, Any], rows: Sequence[LedgerRow]
) -> LedgerRow | None:
    """The recorded call of the same tool with the same input; of equal ones the one of its turn."""
    wanted, before = json.canonical(call_input), 0
    for part in tool_parts(turn.reply.fold.message):
        if part["toolCallId"] == call.call_id:
            break
        same = tool_name(part) == call.tool_name
        before += same and json.canonical(part.get("input") or {}) == wanted
    same_calls = [
        row
        for row in rows
        if row.tool_name == call.tool_name and json.canonical(row.input) == wanted
    ]
    settled = same_calls[before : before + 1]
    return settled[0] if settled and settled[0].settled else None


def from_row(ready: Ready, row: LedgerRow) -> Settled:
    """A call whose result is in the ledger; the hooks that may hide something have seen it."""
    return Settled(
        outcome=cast("ToolOutcome", row.outcome or "executed"),
        input=ready.input,
        tool=ready.tool,
        output=row.output,
        error=None if row.error is None else ToolError(row.error),
        checked=True,
    )
