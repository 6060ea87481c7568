"""What the host does for itself: rows past their time are dropped, by a job like any other.

The job belongs to a reserved id that no agent can have. It drops one piece and runs again: at once
while there is more, else after a while. So a file with a hundred thousand old streams holds up
neither a start nor a turn.
"""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial

from thinkwell.agent.wiring import Shared
from thinkwell.core.errors import StoreError, StoreUnavailableError
from thinkwell.features.jobs import Jobs
from thinkwell.hooks.jobs import RunAgain
from thinkwell.journal.jobs import drop_ended_jobs
from thinkwell.journal.trimming import drop_old_streams

log = logging.getLogger("thinkwell.host")

HOST = "/host"
"""Whose job it is: the class of an agent is never empty."""
JOURNAL_RETENTION = 7 * 24 * 3600.0
"""Seconds the streams of ended turns are kept."""
JOB_RETENTION = 7 * 24 * 3600.0
"""Seconds ended jobs are kept."""
JOB_PIECE, STREAM_PIECE = 500, 50
"""Rows that one transaction drops: a few milliseconds."""
PAUSE = 600.0
"""Seconds after which it looks again when nothing is left to drop."""


class Upkeep:
    """The host, as far as its jobs are concerned. Every public async method can be a job."""

    def __init__(self, shared: Shared) -> None:
        self._clock = shared.clock
        self._commits = shared.commits
        self.jobs = Jobs(
            HOST,
            self,
            reader=shared.store,
            write=partial(shared.commits.run, None),
            insist=partial(shared.commits.insist, None),
            clock=shared.clock,
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
        except StoreError:  # one damaged page must not keep the others from starting
            log.exception("the upkeep could not be planned", extra={"action": "start"})

    async def drop_old_rows(self) -> RunAgain:
        """Drop a piece of what is past its time."""
        now = self._clock.now()
        jobs = await self._commits.insist(
            None, lambda tx: drop_ended_jobs(tx, before=now - JOB_RETENTION, limit=JOB_PIECE)
        )
        streams = await self._commits.insist(
            None,
            lambda tx: drop_old_streams(tx, before=now - JOURNAL_RETENTION, limit=STREAM_PIECE),
        )
        more = jobs == JOB_PIECE or streams == STREAM_PIECE
        return RunAgain(0.0 if more else PAUSE)

    # As the runner sees it

    owes_hooks = False

    async def deliver_owed_hooks(self) -> None:
        """It has no turns."""

    @contextmanager
    def in_use(self) -> Generator[None]:
        """It never sleeps."""
        yield
