"""Saying what came of a tool call whose outcome is unknown: somebody looked and knows better."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType

from thinkwell.core import json
from thinkwell.core.errors import ToolError
from thinkwell.hooks.contexts import CallInfo
from thinkwell.journal.ledger import open_call, resolve_call
from thinkwell.journal.turns import find_turn
from thinkwell.turn.known_tools import known_tool
from thinkwell.turn.parts import Parts
from thinkwell.turn.run.earlier_calls import NOT_DONE
from thinkwell.turn.run.redaction import check_beside, facts_beside


async def resolve_outcome(
    parts: Parts,
    tool_call_id: str,
    *,
    output: Any = UNSET,
    error: str | UnsetType = UNSET,
    not_done: bool = False,
) -> bool:
    """Exactly one of the three. The id may be the call's key. False if no such call is open."""
    if (output is not UNSET) + (error is not UNSET) + not_done != 1:
        raise TypeError(
            "Give exactly one of output=, error= and not_done=True: `resolve_tool_outcome(call_id, "
            "output=...)` if it took effect, else `error=...` or `not_done=True`."
        )
    if not_done:
        error = NOT_DONE
    agent_id = parts.owner.agent_id
    row = await open_call(parts.store, agent_id, tool_call_id)
    turn = None if row is None else await find_turn(parts.store, agent_id, row.turn)
    if row is None or turn is None:
        return False
    # The ledger replays what it holds, so the hooks look at it before it is written there.
    call = CallInfo(id=row.call_id, name=row.tool_name, arguments=row.input)
    tool = known_tool(parts, row.tool_name)
    checked = await check_beside(
        parts,
        facts_beside(parts, turn, call, tool),
        output=None if output is UNSET else json.to_jsonable(output),
        error=None if error is UNSET else ToolError(str(error)),
    )
    value, text = checked.output, checked.text(exposed=parts.agent.expose_errors)
    return await parts.commits.run(
        parts.owner,
        lambda tx: resolve_call(
            tx,
            agent_id,
            row.call_id,
            output=value,
            error=text,
            now=parts.clock.now(),
        ),
    )
