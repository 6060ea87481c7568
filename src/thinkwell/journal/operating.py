"""What operators want, as it is stored: agents that are paused, turns that must stop.

Both are written before anybody acts on them, so a process that dies in between leaves what the next
one needs: a paused agent stays paused, a turn that was to stop does not come back.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from thinkwell.store.base import Reader, Transaction

PAUSED = "Paused by an operator."
"""Why, where nobody said."""


class Which(msgspec.Struct, frozen=True, kw_only=True):
    """Which turns an operator means: one, those of one agent, or all there are."""

    agent: str | None = None
    turn: str | None = None


async def pause_agent(tx: Transaction, agent_id: str, reason: str, *, now: float) -> bool:
    """From now on none of its turns and jobs begins. False if there is no such agent."""
    values = {"id": agent_id, "reason": reason, "now": now}
    return await tx.execute("pause_agent", values) == 1


async def resume_agent(tx: Transaction, agent_id: str) -> bool:
    """They may begin again. False if it was not paused."""
    return await tx.execute("resume_agent", {"id": agent_id}) == 1


async def paused_agents(reader: Reader) -> Mapping[str, str]:
    """The agents that are paused, and why."""
    rows = await reader.fetch_all("paused_agents", {})
    return {row["id"]: row["pause_reason"] or PAUSED for row in rows}


async def stop_turns(tx: Transaction, which: Which, reason: str) -> list[tuple[str, str]]:
    """Record that these turns must stop; which they are, by agent and id."""
    key = {"agent": which.agent, "id": which.turn}
    rows = await tx.fetch_all("turns_to_stop", key)
    await tx.execute("request_cancels", {**key, "reason": reason})
    return [(row["agent"], row["id"]) for row in rows]
