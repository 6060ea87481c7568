"""An agent that comes from another database.

Until its last row is written it counts as deleted: nobody owns or finds it, and what a process that
dies half-way leaves of it is removed at the next start; an import that fails removes it at once.
Other agents write in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeAlias

from thinkwell.core import json
from thinkwell.core.errors import StoreError
from thinkwell.journal.blobs import Blob
from thinkwell.journal.crash_points import crash_here
from thinkwell.journal.job_ends import move_queue_up
from thinkwell.journal.jobs import BEHIND
from thinkwell.journal.spending import moved_scope
from thinkwell.store.base import Commit, Transaction
from thinkwell.store.deleting import has_rows
from thinkwell.store.tables import counted_column, tables_of_agents
from thinkwell.store.transfer import Staged

PIECE = 200
"""Rows that one transaction writes: a few milliseconds."""


Remove: TypeAlias = Callable[[str], Awaitable[object]]
"""Removes an agent that counts as deleted."""


async def import_agent(
    commit: Commit, staged: Staged, agent_id: str, *, now: float, remove: Remove
) -> int:
    """Write an agent under that id; how many rows. Raises `StoreError` if one is there.

    If it fails half-way, `remove` takes away what it wrote: the name is free again.
    """
    agent = next(staged.rows("agents"), None)
    if agent is None:
        raise StoreError("The export has no agent.")
    _check_texts(staged)
    for row in staged.rows("spending"):
        moved_scope(row["scope"], staged.about, agent_id)
    cls, _, name = agent_id.partition("/")
    named = {"id": agent_id, "class": cls, "name": name, "created_at": agent["created_at"]}

    async def begin(tx: Transaction) -> None:
        if await has_rows(tx, agent_id):
            raise StoreError(
                f"There is an agent {agent_id} already. Delete it first, or import this one under "
                "another name: --as CLASS/NAME."
            )
        await tx.execute("begin_import", {**named, "now": now})

    await commit(begin)
    crash_here("i0")
    try:
        return await _write_all(commit, staged, agent_id, agent)
    except BaseException:
        await remove(agent_id)  # ours by now: whoever was there before was refused above
        raise


def _check_texts(staged: Staged) -> None:
    """All agents find a text by its hash: a wrong one would stand for what others were sent."""
    for row in staged.rows("blobs"):
        if Blob.of(row["body"]).hash != row["hash"]:
            raise StoreError(
                f"The export has a text with the hash {row['hash']!r:.60}, which is not its own: "
                "the file was damaged or changed. Nothing was changed here. Export the agent again."
            )


async def _write_all(
    commit: Commit, staged: Staged, agent_id: str, agent: Mapping[str, Any]
) -> int:
    writing, rows, count = _Rows(staged.about, agent_id), _rows_of(staged), 0
    while piece := list(islice(rows, PIECE)):
        await commit(lambda tx, piece=piece: writing.write(tx, piece))
        crash_here("i1")
        count += len(piece)
        await asyncio.sleep(0)
    facts = {name: agent[name] for name in ("generation", "state")}
    done = {"id": agent_id, "epoch": agent["epoch"] + 1, **facts}

    async def end(tx: Transaction) -> None:
        await tx.execute("end_import", done)
        await move_queue_up(tx, agent_id)

    await commit(end)
    return count


def _rows_of(staged: Staged) -> Iterator[tuple[str, dict[str, Any]]]:
    for table in ("blobs", *tables_of_agents()):
        if table == "reservations":
            continue  # no step runs here that could settle them: `spending` counts them as spent
        for row in staged.rows(table):
            yield table, row


class _Rows:
    """Writes the rows of a staged agent as they have to be here."""

    def __init__(self, was: str, agent_id: str) -> None:
        self._was = was
        self._agent_id = agent_id
        self._class = agent_id.partition("/")[0]
        self._positions: dict[int, int] = {}
        """Where the rows of the live journal are now."""

    async def write(self, tx: Transaction, piece: Sequence[tuple[str, dict[str, Any]]]) -> None:
        """Write some rows; again if the commit failed."""
        for table, row in piece:
            await self._write(tx, table, row)

    async def _write(self, tx: Transaction, table: str, row: dict[str, Any]) -> None:
        if table == "blobs":
            await tx.execute("keep_blob", row)
            return
        values = {**row, "agent": self._agent_id, **self._changes(table, row)}
        counted = counted_column(table)
        written = await tx.fetch_one(f"import_{table}", values) if counted else None
        if counted is None:
            await tx.execute(f"import_{table}", values)
        elif table == "journal" and written is not None:
            self._positions[row["pos"]] = written["pos"]

    def _changes(self, table: str, row: Mapping[str, Any]) -> dict[str, Any]:
        """What means something else here: positions of the journal, lives of the process."""
        match table:
            case "turns":
                # Its first row may be trimmed away; whatever is left of it comes after that.
                start = row["journal_start"]
                later = [now for was, now in self._positions.items() if start and was >= start]
                return {
                    "journal_start": min(later, default=None),
                    "incident": _without_boots(row["incident"]),
                }
            case "jobs":
                status = "waiting" if row["status"] == "running" else row["status"]
                # Those of a queue stand in line again, and the end of the import lets one begin.
                queued = row["kind"] == "queue" and row["finished_at"] is None
                held = BEHIND if queued else None
                return {"status": status, "epoch": None, "boot": None, "held": held}
            case "spending":
                return {
                    "scope": moved_scope(row["scope"], self._was, self._agent_id),
                    "nano_usd": row["nano_usd"] + row["reserved_nano_usd"],
                    "tokens": row["tokens"] + row["reserved_tokens"],
                    "reserved_nano_usd": 0,
                    "reserved_tokens": 0,
                }
            case "conversations":
                return {"class": self._class}
            case _:
                return {}


def _without_boots(incident: str | None) -> str | None:
    if incident is None:
        return None
    return json.dumps({k: v for k, v in json.loads(incident).items() if k != "boots"})
