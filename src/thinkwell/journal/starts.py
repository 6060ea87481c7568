"""Starts of agents that may kill the process: what is stored of them (DESIGN §8.16).

A row says that an agent is being started, or how often the process died while it was. A start that
ends, well or with an exception, takes its row away.
"""

from __future__ import annotations

from collections.abc import Mapping

from thinkwell.journal.budget import DEATHS
from thinkwell.store.base import Reader, Store


async def deadly_starts(reader: Reader) -> Mapping[str, int]:
    """How often in a row the process died at the start of which agent."""
    rows = await reader.fetch_all("deadly_starts", {})
    return {row["agent"]: row["deaths"] for row in rows}


async def begin_start(store: Store, agent_id: str, boot: int) -> None:
    """Durable before the agent is started."""
    async with store.transaction() as tx:
        await tx.execute("begin_start", {"agent": agent_id, "boot": boot})


async def end_start(store: Store, agent_id: str) -> None:
    """The process has survived it."""
    async with store.transaction() as tx:
        await tx.execute("end_start", {"agent": agent_id})


def is_deadly(deaths: int) -> bool:
    """Whether an agent is not started any more."""
    return deaths >= DEATHS


def start_reason(deaths: int) -> str:
    """For operators: why the turns of an agent do not go on."""
    return f"The process died {deaths} times in a row while this agent was started."
