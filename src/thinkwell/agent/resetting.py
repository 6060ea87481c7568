"""The transaction behind a reset and a clear."""

from __future__ import annotations

from thinkwell.store.base import Transaction
from thinkwell.turn.face import Parts


async def next_generation(tx: Transaction, parts: Parts, *, forget: bool) -> int:
    """Move the generation on and skip what is unsettled; `forget` also deletes the conversation."""
    agent = {"agent": parts.owner.agent_id}
    row = await tx.fetch_one("bump_generation", {"id": parts.owner.agent_id})
    generation: int = 0 if row is None else row["generation"]
    await tx.execute(
        "skip_older_turns",
        {**agent, "generation": generation, "settled_at": parts.clock.now()},
    )
    await tx.execute("forgive_continuation", agent)
    if forget:
        await tx.execute("drop_packed_journals", agent)
        await parts.session.clear(tx)
    return generation
