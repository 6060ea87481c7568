"""Saying what came of a tool call whose outcome is unknown: somebody looked and knows better."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType

from thinkwell.core import json
from thinkwell.journal.ledger import resolve_call
from thinkwell.turn.parts import Parts


async def resolve_outcome(
    parts: Parts, tool_call_id: str, *, output: Any = UNSET, error: str | UnsetType = UNSET
) -> bool:
    """Exactly one of the two. False if no such call is open."""
    if (output is UNSET) == (error is UNSET):
        raise TypeError(
            "Give exactly one of output= and error=: `resolve_tool_outcome(call_id, "
            "output=...)` if it took effect, else `error=...`."
        )
    value = None if output is UNSET else json.to_jsonable(output)
    text = None if error is UNSET else str(error)
    return await parts.commits.run(
        parts.owner,
        lambda tx: resolve_call(
            tx,
            parts.owner.agent_id,
            tool_call_id,
            output=value,
            error=text,
            now=parts.clock.now(),
        ),
    )
