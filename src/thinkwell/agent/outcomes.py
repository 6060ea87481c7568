"""Saying what came of a tool call whose outcome is unknown."""

from __future__ import annotations

from typing import Any

from thinkwell.agent.turns import Turns
from thinkwell.core import json
from thinkwell.journal.ledger import resolve_call


class ToolOutcomes:
    """What somebody who looked knows better than the ledger."""

    _turns: Turns

    async def resolve_tool_outcome(
        self, tool_call_id: str, *, output: Any = None, error: str | None = None
    ) -> bool:
        """Say what came of a call that was cut off; without it, the same call is never run again.

        With `output` (or nothing) it took effect: the next call of the same gets that result
        instead of running. With `error` it did not, and may run again. False if no such call is
        open.
        """
        parts = self._turns.parts
        value = json.to_jsonable(output)
        return await parts.commits.run(
            parts.owner,
            lambda tx: resolve_call(
                tx,
                parts.owner.agent_id,
                tool_call_id,
                output=value,
                error=error,
                now=parts.clock.now(),
            ),
        )
