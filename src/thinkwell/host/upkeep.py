"""What the host does for itself: rows past their time are dropped, by a job like any other.

The job belongs to a reserved id that no agent can have. It drops one piece and runs again: at once
while there is more, else after a while. So a file with a hundred thousand old streams holds up
neither a start nor a turn.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import TypeAlias

from thinkwell.agent.wiring import Shared
from thinkwell.core.errors import StoreError, StoreUnavailableError
from thinkwell.features.jobs.desk import JobDesk
from thinkwell.features.jobs.jobs import Jobs
from thinkwell.hooks.jobs import RunAgain
from thinkwell.journal.blobs import drop_unused_blobs
from thinkwell.journal.jobs import drop_ended_jobs
from thinkwell.journal.trimming import drop_old_streams, trim_journal
from thinkwell.session.versions import drop_old_versions

log = logging.getLogger("thinkwell.host")

HOST = "/host"
"""Whose job it is: the class of an agent is never empty."""
JOURNAL_RETENTION = 7 * 24 * 3600.0
"""Seconds the streams of ended turns are kept."""
JOB_RETENTION = 7 * 24 * 3600.0
"""Seconds ended jobs are kept."""
JOB_PIECE, STREAM_PIECE, BLOB_PIECE = 500, 50, 100
"""Rows that one transaction drops: a few milliseconds."""
SHRINKS = 16
"""How often one run of the job cuts a few pages off the file."""
PAUSE = 600.0
"""Seconds after which it looks again when nothing is left to drop."""


Drop: TypeAlias = Callable[..., Awaitable[int]]
"""`(tx, before=, limit=)`: drops what is older, at most so many rows; how many there were."""


class Upkeep:
    """The host, as far as its jobs are concerned. Every public async method can be a job."""

    def __init__(self, shared: Shared) -> None:
        self._clock = shared.clock
        self._commits = shared.commits
        self._store = shared.store
        self.desk = JobDesk(
            HOST,
            self,
            reader=shared.store,
            write=partial(shared.commits.run, None),
            insist=partial(shared.commits.insist, None),
            clock=shared.clock,
            bus=shared.bus,
            new_due=shared.new_due_job,
        )

    async def ensure(self) -> None:
        """Have the row of the one job there is, from the first start of a database on."""
        try:
            # Nothing is old in a new database; in another one the row says when it is due.
            job = await Jobs(self.desk).enqueue("drop_old_rows", key="drop_old_rows", delay=PAUSE)
            if job.ended:  # it failed too often in an earlier life
                await self.desk.revive(job.id)
        except StoreUnavailableError:
            pass  # the store's health has heard of it; the next start plans it
        except (StoreError, ValueError):  # one damaged row must not keep the others from starting
            log.exception("the upkeep could not be planned", extra={"action": "start"})

    async def drop_old_rows(self) -> RunAgain:
        """Drop a piece of what is past its time: ended jobs, packed journals, the texts and the
        versions they refer to.
        """
        now = self._clock.now()
        jobs, journals = now - JOB_RETENTION, now - JOURNAL_RETENTION
        more = False
        for piece in (
            partial(self._drop, drop_ended_jobs, before=jobs, limit=JOB_PIECE),
            partial(self._drop, drop_old_streams, before=journals, limit=STREAM_PIECE),
            partial(self._drop, drop_unused_blobs, before=journals, limit=BLOB_PIECE),
            partial(self._drop, drop_old_versions, before=journals, limit=STREAM_PIECE),
        ):
            more = await self._try(piece) or more
        if not more:
            more = await self._try(self._shrink)
        return RunAgain(0.0 if more else PAUSE)

    async def _try(self, piece: Callable[[], Awaitable[bool]]) -> bool:
        """One damaged page must end neither the upkeep of the others nor the job itself."""
        try:
            return await piece()
        except Exception:
            log.exception("a part of the upkeep failed", extra={"action": "upkeep"})
            return False

    async def _drop(self, drop: Drop, *, before: float, limit: int) -> bool:
        """Drop a piece. Whether there may be more."""
        work = partial(drop, before=before, limit=limit)
        return await self._commits.insist(None, work) == limit

    async def _shrink(self) -> bool:
        """What was dropped leaves the file too, a few pages at a time. Whether more is left."""
        await trim_journal(self._store)
        for _ in range(SHRINKS):
            if not await self._store.shrink():
                return False
            await asyncio.sleep(0)  # others write in between
        return True

    # As the runner sees it

    owes_hooks = False

    async def deliver_owed_hooks(self) -> None:
        """It has no turns."""

    @contextmanager
    def in_use(self) -> Generator[None]:
        """It never sleeps."""
        yield
