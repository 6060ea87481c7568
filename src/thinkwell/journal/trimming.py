"""Dropping live rows of the journal that no turn needs any more, beside the turns.

A turn that ends leaves its live rows behind: the row that packs its journal holds all of it. They
go later, for many turns at once, because finding the oldest turn that still needs its own looks at
every turn that runs.
"""

from __future__ import annotations

import asyncio

from thinkwell.store.base import Store

TRIM_EVERY = 1000
"""Live rows after whose writing the journal is trimmed."""


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
