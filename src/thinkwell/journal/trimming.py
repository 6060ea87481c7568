"""Dropping what nobody needs any more of the journal, beside the turns.

A turn that ends leaves its live rows behind: the row that packs its journal holds all of it. They
go later, for many turns at once, because finding the oldest turn that still needs its own looks at
every turn that runs.
"""

from __future__ import annotations

import asyncio

from thinkwell.store.base import Commit, Store, Transaction

TRIM_EVERY = 1000
"""Live rows after whose writing the journal is trimmed."""
_SLICE = 5_000
"""Positions of the live journal that one statement looks at: it has no index by agent."""


async def trim_journal(store: Store) -> None:
    """Drop what nobody needs, in slices between which others write."""
    while True:
        async with store.transaction() as tx:
            # Read in the transaction that deletes: an emptied table counts its positions anew.
            row = await tx.fetch_one("needed_journal", {})
            needed = None if row is None else row["pos"]
            dropped = 0 if needed is None else await tx.execute("trim_journal", {"needed": needed})
        if dropped == 0:
            return
        await asyncio.sleep(0)


async def erase_live_rows(store: Store, commit: Commit, agent_id: str) -> None:
    """Drop what the ended turns of one agent left, in slices between which others write."""
    ends = await store.fetch_one("journal_ends", {})
    position, last = (0, -1) if ends is None else (ends["first"] or 0, ends["last"] or -1)
    while position <= last:
        bounds = {"agent": agent_id, "start": position, "stop": position + _SLICE}
        await commit(lambda tx, p=bounds: tx.execute("erase_journal", p))
        position += _SLICE


async def drop_old_streams(tx: Transaction, *, before: float, limit: int) -> int:
    """Drop packed journals of turns that ended before then, at most so many; how many there were.

    The oldest first: whoever calls it again goes on where it ended.
    """
    return await tx.execute("drop_old_packed_journals", {"before": before, "limit": limit})
