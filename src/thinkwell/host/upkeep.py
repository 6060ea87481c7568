"""What the host does for itself: rows past their time are dropped, by a job like any other.

The job belongs to a reserved id that no agent can have. It drops one piece and runs again: at once
while there is more, else after a while. So a file with a hundred thousand old streams holds up
neither a start nor a turn.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TypeAlias

from thinkwell.agent.wiring import Shared
from thinkwell.core.errors import StoreError, StoreUnavailableError
from thinkwell.core.limits import NO_LIMIT
from thinkwell.core.retention import Retention
from thinkwell.features.jobs.desk import JobDesk
from thinkwell.features.jobs.jobs import Jobs
from thinkwell.features.search.search import Search
from thinkwell.hooks.feature import Feature
from thinkwell.hooks.jobs import RunAgain
from thinkwell.hooks.seats import features_of
from thinkwell.host.erasure import HOST, Erasure
from thinkwell.host.erasure import JOB as ERASE
from thinkwell.journal.aging import (
    Walk,
    age_turns,
    drop_old_approvals,
    drop_old_decisions,
    drop_old_rules,
    next_walk,
)
from thinkwell.journal.blobs import drop_unused_blobs
from thinkwell.journal.jobs import drop_ended_jobs, find_job
from thinkwell.journal.spending import close_orphans, drop_old_spending
from thinkwell.journal.trimming import drop_old_streams, trim_journal
from thinkwell.session.versions import drop_old_versions

log = logging.getLogger("thinkwell.host")

JOB_PIECE, STREAM_PIECE, BLOB_PIECE, TURN_PIECE = 500, 50, 100, 200
"""Rows that one transaction drops: a few milliseconds."""
SHRINKS = 16
"""How often one run of the job cuts a few pages off the file."""
LOOK, BUSY_PAUSE = 0.05, 0.5
"""Seconds between two looks whether an erasure has ended, and whether a busy agent is free."""
INDEX, INDEXED = "index_messages", 4
"""The job that indexes messages, and how many slices of them it takes at once."""
INDEX_PAUSE = 30.0
"""Seconds between two looks at what was said since. A search looks by itself."""
PAUSE = 600.0
"""Seconds after which it looks again when nothing is left to drop."""


Drop: TypeAlias = Callable[..., Awaitable[int]]
"""`(tx, before=, limit=)`: drops what is older, at most so many rows; how many there were."""


def searched_classes(classes: Mapping[str, type], features: Sequence[Feature]) -> list[str]:
    """The names of those classes whose messages are indexed: they have `Search`."""
    return [
        name
        for name, cls in classes.items()
        if any(isinstance(each, Search) for each in features_of(cls, features))
    ]


class Upkeep:
    """The host, as far as its jobs are concerned. Every public async method can be a job."""

    def __init__(
        self,
        shared: Shared,
        retention: Retention | None = None,
        erasure: Erasure | None = None,
        *,
        served: Mapping[str, type] | None = None,
    ) -> None:
        """`served` are the classes by name: messages of those with `Search` are indexed."""
        self._index = shared.search
        self._searched = searched_classes(served or {}, shared.features)
        self._retention = retention or Retention()
        self._walk = Walk()
        self._erasure = erasure
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

    async def erase(self, digest: str) -> None:
        """Have a person erased, and wait until they are. Leaving stops nothing."""
        job = await Jobs(self.desk).enqueue(
            ERASE, {"digest": digest}, max_attempts=NO_LIMIT, max_delay=PAUSE
        )
        while not job.ended:
            await asyncio.sleep(LOOK)
            job = await find_job(self._store, HOST, job.id) or job
        if job.status != "done":
            raise StoreError(f"The erasure has not come to its end: {job.error or job.status}.")

    async def erase_principal(self, payload: dict[str, str]) -> RunAgain | None:
        """Erase whoever has that digest. Agents with work of others are tried again soon."""
        if self._erasure is None or await self._erasure.run(payload["digest"]):
            return None
        return RunAgain(BUSY_PAUSE)

    async def ensure(self) -> None:
        """Have the row of the one job there is, from the first start of a database on."""
        try:
            # Nothing is old in a new database; in another one the row says when it is due.
            job = await Jobs(self.desk).enqueue("drop_old_rows", key="drop_old_rows", delay=PAUSE)
            if job.ended:  # it failed too often in an earlier life
                await self.desk.revive(job.id)
            if self._searched:
                await self._ensure_index()
            for left in await Jobs(self.desk).list(status="failed", name=ERASE):
                await self.desk.revive(left.id)  # whatever kept it from its end, a person is to go
        except StoreUnavailableError:
            pass  # the store's health has heard of it; the next start plans it
        except (StoreError, ValueError):  # one damaged row must not keep the others from starting
            log.exception("the upkeep could not be planned", extra={"action": "start"})

    async def _ensure_index(self) -> None:
        job = await Jobs(self.desk).enqueue(INDEX, key=INDEX, max_attempts=NO_LIMIT)
        if job.ended:
            await self.desk.revive(job.id)

    async def index_messages(self) -> RunAgain:
        """Take what was said since into the index, and out of it what has gone; a piece of it.

        Also where no class is searched any more: what was indexed goes with its messages.
        """
        whole = await self._index.catch_up(self._searched, INDEXED)
        if not whole:
            return RunAgain(0.0)
        return RunAgain(INDEX_PAUSE if self._searched else PAUSE)

    async def drop_old_rows(self) -> RunAgain:
        """Drop a piece of what is past its age (`Retention`): ended jobs, packed journals with the
        texts and versions they refer to, decisions, questions, revoked rules, ledger rows, turns.
        """
        more = False
        for piece in (
            partial(self._drop, drop_ended_jobs, "jobs", JOB_PIECE),
            partial(self._drop, drop_old_streams, "journals", STREAM_PIECE),
            partial(self._drop, drop_unused_blobs, "journals", BLOB_PIECE),
            partial(self._drop, drop_old_versions, "message_versions", STREAM_PIECE),
            partial(self._drop, drop_old_decisions, "decisions", JOB_PIECE),
            partial(self._drop, drop_old_approvals, "decisions", JOB_PIECE),
            partial(self._drop, drop_old_rules, "decisions", JOB_PIECE),
            partial(self._drop, drop_old_spending, "turns", JOB_PIECE),
            self._close_orphans,
            self._age_turns,
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

    async def _drop(self, drop: Drop, what: str, limit: int) -> bool:
        """Drop a piece of what has that age. Whether there may be more."""
        before = self._past(what)
        if before is None:
            return False
        work = partial(drop, before=before, limit=limit)
        return await self._commits.insist(None, work) == limit

    async def _close_orphans(self) -> bool:
        """What no turn will settle any more is spent. Whether there may be more of it."""
        work = partial(close_orphans, limit=JOB_PIECE, now=self._clock.now())
        return await self._commits.insist(None, work) == JOB_PIECE

    async def _age_turns(self) -> bool:
        """Look at the next turns. Whether there may be more old ones behind them."""
        calls, turns = self._past("tool_calls"), self._past("turns")
        if calls is None and turns is None:
            return False
        walk = self._walk = next_walk(self._walk, self._clock.now())
        work = partial(age_turns, walk=walk, calls=calls, turns=turns, limit=TURN_PIECE)
        reached = await self._commits.insist(None, work)
        if reached is None:
            return False
        walk.after = reached
        return True

    def _past(self, what: str) -> float | None:
        """The time before which something is past its age; None if it is kept for ever."""
        age = self._retention.seconds(what)
        return None if age is None else self._clock.now() - age

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
