"""Who may write for an agent: the fence of DESIGN §5.

A host claims an agent and gets an epoch; claiming again, anywhere, makes a higher one. A batch of
writes checks in its own transaction that the epochs it was written under still hold. The caller
drops the rows of agents that lost and stops their activations; the other agents' rows commit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from thinkwell.core import json
from thinkwell.core.errors import StoreError
from thinkwell.store.base import Reader, Store, Transaction


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnedAgent:
    """What a host learns when it takes an agent."""

    epoch: int
    """The number its writes are made under."""
    generation: int
    """The agent's current generation of turns."""
    state: str | None
    """The agent's stored state as JSON text, if it has one."""


async def claim(store: Store, agent_id: str, *, cls: str, name: str, now: float) -> OwnedAgent:
    """Take the agent, creating its row if this is the first time. Earlier claims lose."""
    async with store.transaction() as tx:
        row = await tx.fetch_one(
            "claim_agent", {"id": agent_id, "class": cls, "name": name, "now": now}
        )
    if row is None:
        raise StoreError(f"Claiming agent {agent_id!r} returned nothing.")
    return OwnedAgent(epoch=row["epoch"], generation=row["generation"], state=row["state"])


UNBORN = 0
"""The epoch of whoever looks at an agent that has no row yet."""


async def claim_if_there(
    store: Store, agent_id: str, *, cls: str, name: str, now: float
) -> OwnedAgent:
    """Take the agent if it has a row. Otherwise it gets one with its first write (`bear`)."""
    if await store.fetch_one("agent_epoch", {"id": agent_id}) is None:
        return OwnedAgent(epoch=UNBORN, generation=0, state=None)
    return await claim(store, agent_id, cls=cls, name=name, now=now)


async def bear(tx: Transaction, agent_id: str, epoch: int, *, now: float) -> int | None:
    """The first write for an agent without a row makes it.

    The epoch it is owned under from then on; None if somebody else owns it.
    """
    if epoch != UNBORN:
        return None
    cls, _, name = agent_id.partition("/")
    row = await tx.fetch_one("bear_agent", {"id": agent_id, "class": cls, "name": name, "now": now})
    return None if row is None else row["epoch"]


async def is_current(tx: Reader, agent_id: str, epoch: int) -> bool:
    """Whether an agent is still owned under that epoch."""
    row = await tx.fetch_one("agent_epoch", {"id": agent_id})
    return row is not None and row["epoch"] == epoch


async def check_epochs(tx: Reader, claims: Mapping[str, int]) -> set[str]:
    """Those agents of `claims` (agent id → epoch) that somebody else owns by now. One query."""
    if len(claims) == 1:
        ((agent_id, epoch),) = claims.items()
        return set() if await is_current(tx, agent_id, epoch) else {agent_id}
    rows = await tx.fetch_all("agent_epochs", {"ids": json.dumps(list(claims))})
    current = {row["id"]: row["epoch"] for row in rows}
    return {agent_id for agent_id, epoch in claims.items() if current.get(agent_id) != epoch}
