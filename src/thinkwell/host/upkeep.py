"""What the host does for itself: rows past their time are dropped, by a job like any other.

The job belongs to a reserved id that no agent can have. It drops one piece and runs again: at once
while there is more, else after a while. So a file with a hundred thousand old streams holds up
neither a start nor a turn.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial

from thinkwell.agent.wiring import Shared
from thinkwell.core.errors import StoreError, StoreUnavailableError
from thinkwell.features.jobs import Jobs
from thinkwell.hooks.jobs import RunAgain
from thinkwell.journal.bodies import drop_unused_bodies
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
JOB_PIECE, STREAM_PIECE, BODY_PIECE = 500, 50, 100
"""Rows that one transaction drops: a few milliseconds."""
SHRINKS = 16
"""How often one run of the job cuts a few pages off the file."""
PAUSE = 600.0
"""Seconds after which it looks again when nothing is left to drop."""


class Upkeep:
    """The host, as far as its jobs are concerned. Every public async method can be a job."""

    def __init__(self, shared: Shared) -> None:
        self._clock = shared.clock
        self._commits = shared.commits
        self._store = shared.store
        self.jobs = Jobs(
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
            job = await self.jobs.enqueue("drop_old_rows", key="drop_old_rows", delay=PAUSE)
            if job.ended:  # it failed too often in an earlier life
                await self.jobs.revive(job.id)
        except StoreUnavailableError:
            pass  # the store's health has heard of it; the next start plans it
        except (
            StoreError,
            ValueError,
        ):  # one damaged page or row must not keep others from starting
            log.exception("the upkeep could not be planned", extra={"action": "start"})

    async def drop_old_rows(self) -> RunAgain:
        """Drop a piece of what is past its time."""
        now = self._clock.now()
        jobs = await self._commits.insist(
            None, lambda tx: drop_ended_jobs(tx, before=now - JOB_RETENTION, limit=JOB_PIECE)
        )
        more = await self._drop_journals(now - JOURNAL_RETENTION) or jobs == JOB_PIECE
        if not more:
            await trim_journal(self._store)
            more = await self._shrink()
        return RunAgain(0.0 if more else PAUSE)

    async def _drop_journals(self, before: float) -> bool:
        """A piece of each: packed journals, the texts and the versions they refer to."""
        more = False
        for drop, limit in (
            (drop_old_streams, STREAM_PIECE),
            (drop_unused_bodies, BODY_PIECE),
            (drop_old_versions, STREAM_PIECE),
        ):
            dropped = await self._commits.insist(None, partial(drop, before=before, limit=limit))
            more = more or dropped == limit
        return more

    async def _shrink(self) -> bool:
        """What was dropped leaves the file too, a few pages at a time. Whether more is left."""
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
