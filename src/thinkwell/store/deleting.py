"""The rows of an agent that is deleted: marked in one transaction, removed in many.

Other agents write in between, however much this one has stored. The mark is durable: a process that
dies half-way goes on at its next start, and nobody owns the agent meanwhile (`ownership.py`).
"""

from __future__ import annotations

from thinkwell.store.base import Reader, Transaction

PIECE = 200
"""Rows that one transaction removes: a few milliseconds."""

REMOVALS = (
    "remove_conversations",
    "remove_sessions",
    "remove_messages",
    "remove_turns",
    "remove_packed_journals",
    "remove_tool_calls",
    "remove_decisions",
    "remove_starts",
    "remove_approvers",
    "remove_approvals",
    "remove_approval_rules",
    "remove_storage",
    "remove_jobs",
    "remove_message_versions",
    "remove_context_blocks",
    "remove_prompts",
    "remove_spending",
    "remove_reservations",
)
"""Each removes at most `limit` rows. Texts that journals share are beside them."""


async def mark_deleted(tx: Transaction, agent_id: str, *, now: float) -> None:
    """From this commit on the agent is gone for everybody."""
    cls, _, name = agent_id.partition("/")
    await tx.execute("mark_deleted", {"agent": agent_id, "class": cls, "name": name, "now": now})
    await tx.execute("remove_conversations", {"agent": agent_id, "limit": PIECE})


async def deleted_agents(reader: Reader) -> list[str]:
    """The ids of agents that are marked and have rows left."""
    return [row["id"] for row in await reader.fetch_all("deleted_agents", {})]


async def has_rows(reader: Reader, agent_id: str) -> bool:
    """Whether anything is stored of an agent: itself, or rows that lost it."""
    return bool(await reader.fetch_all("rows_of_agent", {"agent": agent_id}))


async def remove_piece(tx: Transaction, agent_id: str) -> bool:
    """Remove some rows of a marked agent, but not itself. False when none is left."""
    left = PIECE
    for query in REMOVALS:
        left -= await tx.execute(query, {"agent": agent_id, "limit": left})
        if left <= 0:
            return True
    uses = await tx.fetch_all("blob_uses_of", {"agent": agent_id, "limit": left})
    for row in uses:
        await tx.execute("drop_blob_use", {"agent": agent_id, "hash": row["hash"]})
        await tx.execute("drop_unused_blob", {"hash": row["hash"]})
    return len(uses) == left


async def remove_agent(tx: Transaction, agent_id: str) -> None:
    """Remove the agent itself, when nothing else is left of it."""
    await tx.execute("remember_epoch", {"agent": agent_id})
    await tx.execute("remove_agent", {"agent": agent_id})
