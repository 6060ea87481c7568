"""A client's result and the hooks that may change or hide it: before it is stored or shown."""

from __future__ import annotations

import msgspec
from msgspec import UNSET

from thinkwell.core.errors import ToolError
from thinkwell.hooks.contexts import CallInfo
from thinkwell.journal.turns import TurnRecord, answering_turn
from thinkwell.messages.message import Part, is_settled, tool_name
from thinkwell.tools.tool import Tool, client_tool
from thinkwell.turn.ask.answers import (
    Answer,
    find_stored_call,
    no_turn,
    result_answer,
    runs_here,
    tool_of,
)
from thinkwell.turn.parts import Parts
from thinkwell.turn.run.redaction import check_beside, facts_beside
from thinkwell.turn.run.running import RunningTurn


async def check_answer(parts: Parts, running: RunningTurn | None, answer: Answer) -> Answer | None:
    """What the hooks leave of a client's result, before it is stored. None: no call waits for it.

    Outside of the transaction, because it is the agent's own code. Whether the call still waits is
    looked up again inside: the first answer wins.
    """
    if answer.outcome != "client" or not _is_watched(parts):
        return answer
    found = await _called(parts, running, answer.tool_call_id)
    if found is None:
        return None
    part, turn = found
    if is_settled(part) or runs_here(parts, part, running):
        return None  # it would not be applied either, so no hook hears of it
    name = tool_name(part)
    call = CallInfo(id=answer.tool_call_id, name=name, arguments=part.get("input"))
    tool = tool_of(parts, name, running) or _declared(turn, name)
    facts = facts_beside(parts, turn or no_turn(parts), call, tool)
    output, error = answer.given
    if output is UNSET:
        failure = ToolError(error if isinstance(error, str) else "The tool failed.")
        checked = await check_beside(parts, facts, error=failure)
        if checked.error is failure:
            return answer
    else:
        checked = await check_beside(parts, facts, output=output)
    made = (
        result_answer(answer.tool_call_id, output=checked.output)
        if checked.error is None
        else result_answer(
            answer.tool_call_id, error=checked.text(exposed=parts.agent.expose_errors)
        )
    )
    return msgspec.structs.replace(answer, change=made.change, given=made.given)


def _declared(turn: TurnRecord | None, name: str) -> Tool | None:
    """A tool that only the client knows, as it was declared."""
    for said in () if turn is None else turn.client_tools:
        if said.get("name") == name:
            return client_tool(name, said.get("description"), said.get("parameters"))
    return None


def _is_watched(parts: Parts) -> bool:
    registry = parts.hooks.registry
    return bool(registry.hooks("on_tool_result") or registry.hooks("on_tool_error"))


async def _called(
    parts: Parts, running: RunningTurn | None, tool_call_id: str
) -> tuple[Part, TurnRecord | None] | None:
    """The call an answer is for, and its turn."""
    if running is not None and not running.reply.stored:
        part = running.reply.fold.tool_call(tool_call_id)
        if part is not None:
            return part, running.record
    found = await find_stored_call(parts.store, parts, tool_call_id)
    if found is None:
        return None
    turn = await answering_turn(parts.store, parts.owner.agent_id, found.message["id"])
    return found.part, turn
