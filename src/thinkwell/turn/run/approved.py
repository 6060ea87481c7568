"""Calls that a person has allowed since the turn before: they run first (spec/02 §4 P4, §7.9).

Their parts live in an answer that is stored already, so their results are written there and shown
as an update of that message. They are chunks of this stream as well, between `start` and the first
step: a client that reads the stream shows what it says there, whatever it is told beside it
(DESIGN §8.14).
"""

from __future__ import annotations

import msgspec

from thinkwell.messages.waiting import approved_calls
from thinkwell.models.base import ModelRequest
from thinkwell.turn.run.assemble import read_history
from thinkwell.turn.run.pending_call import PendingCall
from thinkwell.turn.run.prompt import Prompt
from thinkwell.turn.run.running import RunningTurn
from thinkwell.turn.run.step import Step, step_tools
from thinkwell.turn.run.tool_calls import run_tool_calls


async def run_approved_calls(turn: RunningTurn, prompt: Prompt) -> Prompt:
    """Run what was allowed; the prompt then holds the results."""
    parts = approved_calls(turn.fold.message)
    if not parts:
        return prompt
    step = Step(
        number=0,
        model=prompt.model,
        request=ModelRequest(messages=prompt.messages, system=prompt.system),
        tools=step_tools(turn, prompt),
        runtime_context=prompt.config.runtime_context,
    )
    calls = [
        PendingCall.from_part(part, turn.ledger.get(part["toolCallId"]), approved=True)
        for part in parts
    ]
    await turn.start_stream()
    await run_tool_calls(turn, step, calls, "tool-calls")
    if prompt.config.messages is not None:
        return prompt
    messages = await read_history(turn, prompt.tools)
    return msgspec.structs.replace(prompt, messages=messages)
