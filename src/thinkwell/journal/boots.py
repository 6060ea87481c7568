"""The lives of the process: when each began, whether it lasted, whether its end was planned.

A life that has neither lasted nor been stopped ended soon after its start; nobody has to know when
exactly. Rows are kept for a while, so that a turn whose class is served again later is judged
fairly; a death nobody knows of any more does not count.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from thinkwell.journal.budget import Incident
from thinkwell.store.base import Reader, Store, Transaction

SOON = 60.0
"""Seconds after its start within which a death is a death soon after a start."""
KEPT = 30 * 24 * 3600.0
"""Seconds a life is remembered."""


class Boot(msgspec.Struct, frozen=True, kw_only=True):
    """One life of the process."""

    id: int
    started_at: float
    steady: bool = False
    """It lasted for `SOON` seconds."""
    stopped_at: float | None = None
    """Somebody asked it to stop."""

    @property
    def died_soon(self) -> bool:
        """Of a life that is over: whether it died soon after its start."""
        return not self.steady and self.stopped_at is None


async def begin_boot(store: Store, now: float) -> tuple[int, Sequence[Boot]]:
    """The id of the life that begins, and the two before it, the last one first."""
    async with store.transaction() as tx:
        rows = await tx.fetch_all("last_boots", {})
        await tx.execute("count_start_deaths", {})
        row = await tx.fetch_one("begin_boot", {"started_at": now})
        await tx.execute("drop_old_boots", {"before": now - KEPT})
    if row is None:
        raise RuntimeError("the store returned no id for a boot")
    before = [
        Boot(
            id=row["id"],
            started_at=row["started_at"],
            steady=bool(row["steady"]),
            stopped_at=row["stopped_at"],
        )
        for row in rows
    ]
    return row["id"], before


async def suspects_of(reader: Reader, before: Sequence[Boot]) -> set[tuple[str, str]]:
    """After two deaths soon after a start: the turns (agent, id) that had begun in both lives."""
    # One death soon after a start may be anything; two in a row point at what the process does
    # then.
    if len(before) < 2 or not all(boot.died_soon for boot in before):
        return set()
    both = {boot.id for boot in before}
    rows = await reader.fetch_all("attempted_turns", {})
    return {
        (row["agent"], row["id"])
        for row in rows
        if row["incident"] is not None
        and both <= set(msgspec.json.decode(row["incident"], type=Incident).boots)
    }


async def was_unplanned(reader: Reader, boot: int) -> bool:
    """Whether that life ended without anybody having asked for it."""
    row = await reader.fetch_one("boot_by_id", {"id": boot})
    return row is not None and row["stopped_at"] is None


async def mark_steady(tx: Transaction, boot: int) -> None:
    """It has lasted."""
    await tx.execute("mark_steady", {"id": boot})


async def mark_stopped(store: Store, boot: int, now: float) -> None:
    """Somebody asked it to stop: whatever ends from now on was meant to."""
    async with store.transaction() as tx:
        await tx.execute("mark_stopped", {"id": boot, "stopped_at": now})
