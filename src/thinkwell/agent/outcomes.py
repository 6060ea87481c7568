"""Saying what came of a tool call whose outcome is unknown."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType

from thinkwell.core import json
from thinkwell.journal.ledger import resolve_call
from thinkwell.turn.turns import Turns


class ToolOutcomes:
    """What somebody who looked knows better than the ledger."""

    _turns: Turns

    async def resolve_tool_outcome(
        self, tool_call_id: str, *, output: Any = UNSET, error: str | UnsetType = UNSET
    ) -> bool:
        """Say what came of a call that was cut off; without it, the same call is never run again.

        Exactly one of the two. With `output`, which may be None, it took effect: the next call of
        the same gets that result instead of running. With `error` it did not, and may run again.
        False if no such call is open.
        """
        if (output is UNSET) == (error is UNSET):
            raise TypeError(
                "Give exactly one of output= and error=: `resolve_tool_outcome(call_id, "
                "output=...)` if it took effect, else `error=...`."
            )
        parts = self._turns.parts
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
