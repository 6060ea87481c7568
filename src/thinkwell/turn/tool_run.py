"""Running one tool: claimed in the ledger and committed, then executed.

What it raises is a result.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from thinkwell.core.errors import AbortTurn, StoreError, ToolError
from thinkwell.core.tasks import is_cancelled
from thinkwell.hooks.dispatch import HookFailedError
from thinkwell.journal.crash_points import crash_here
from thinkwell.journal.ledger import Claim, claim_call, idempotency_key, is_open
from thinkwell.messages.chunks import tool_output
from thinkwell.messages.message import tool_name, tool_parts
from thinkwell.tools.execute import run_tool
from thinkwell.tools.tool import Tool
from thinkwell.tools.truncation import limit_output
from thinkwell.turn.interrupt import interruptible
from thinkwell.turn.pending_call import PendingCall
from thinkwell.turn.running import RunningTurn
from thinkwell.turn.step import Step
from thinkwell.turn.tool_context import tool_context
from thinkwell.turn.tool_policy import REPEATABLE, Ready, Settled, unknown_outcome


async def execute(turn: RunningTurn, step: Step, call: PendingCall, ready: Ready) -> Settled:
    """Claim the call, then run the tool."""
    parts, tool = turn.parts, ready.tool
    if turn.signal.aborted:
        error = ToolError(f"Stopped before it ran: {turn.signal.reason}")
        return Settled(outcome="aborted", input=ready.input, tool=tool, error=error)
    if tool.effect not in REPEATABLE and is_open(turn.ledger.values(), tool.name, ready.input):
        return unknown_outcome(tool, ready.input)
    claim = Claim(
        call_id=call.call_id,
        tool_name=tool.name,
        input=ready.input,
        effect=tool.effect,
        idempotency_key=_key(turn, call, ready),
        step=step.number,
    )
    await parts.commits.run(
        parts.owner, lambda tx: claim_call(tx, turn.record, claim, now=parts.clock.now())
    )
    crash_here("c7")
    settled = await _run(turn, step, call, ready, key=claim.idempotency_key)
    crash_here("c8")
    return settled


async def _run(
    turn: RunningTurn, step: Step, call: PendingCall, ready: Ready, *, key: str
) -> Settled:
    tool = ready.tool

    async def preliminary(value: Any) -> None:
        if not call.approved:  # its part lives in a message that is stored already
            await turn.emit(tool_output(call.call_id, value, preliminary=True))

    context = tool_context(turn, step, call, key)
    try:
        with interruptible(turn.signal, grace=turn.parts.agent.cancel_grace):
            output = await run_tool(_limited(turn, tool), ready.value, context, preliminary)
    except (StoreError, HookFailedError):
        raise
    except asyncio.CancelledError as error:
        if is_cancelled():
            raise
        return Settled(outcome="errored", input=ready.input, tool=tool, error=error)
    except AbortTurn as stop:
        if not turn.signal.aborted:
            raise  # the tool itself ends the turn
        error = ToolError(f"Stopped before it finished: {stop.reason}")
        return Settled(outcome="aborted", input=ready.input, tool=tool, error=error)
    except Exception as error:  # noqa: BLE001 - what a tool raises goes to the model
        outcome = "aborted" if turn.signal.aborted else "errored"
        return Settled(outcome=outcome, input=ready.input, tool=tool, error=error)
    output = limit_output(output, turn.parts.agent.max_tool_output_chars)
    return Settled(outcome="executed", input=ready.input, tool=tool, output=output)


def _limited(turn: RunningTurn, tool: Tool) -> Tool:
    """The tool with the time limit that holds in this turn."""
    return replace(tool, timeout=turn.settings.limits.of_tool(tool.name, tool.timeout))


def _key(turn: RunningTurn, call: PendingCall, ready: Ready) -> str:
    """The same call of the same turn always gets the same key; equal calls count up."""
    if call.ledger is not None:
        return call.ledger.idempotency_key
    occurrence = 1
    for part in tool_parts(turn.fold.message):
        if part["toolCallId"] == call.call_id:
            break
        if tool_name(part) == call.tool_name and part.get("input") == call.input:
            occurrence += 1
    return idempotency_key(turn.record.request_id, call.tool_name, ready.input, occurrence)
