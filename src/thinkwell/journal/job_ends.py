"""What becomes of a job's row when a run of it is over, and after a start.

A job that runs once ends. One that comes again waits for its next time, whatever became of this
one: outcome and next time are one write, so no crash can lose or double a run. When a job of a
queue is out of the way, the next one may begin, in the same transaction.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import msgspec

from thinkwell.core import json
from thinkwell.journal.boots import was_unplanned
from thinkwell.journal.jobs import (
    BEHIND,
    GiveUp,
    Job,
    JobStatus,
    ProcessDied,
    Random,
    Retry,
    fail_unreadable,
    find_job,
    finish_job,
    named,
    next_try,
    readable_job,
    retry_job,
)
from thinkwell.store.base import Reader, Transaction

log = logging.getLogger("thinkwell.jobs")

NextTime: TypeAlias = Callable[[Job, float], float]
"""When a job that comes again does so, given its row and the time. Raises if it cannot be said."""


class RunEnd(NamedTuple):
    """How a run of a job ended, and who may begin because of it."""

    status: JobStatus
    """Of the run: a job that comes again is `waiting` by now."""
    again_at: float | None = None
    """When the job comes again."""
    next_in_line: float | None = None
    """Since when the next one of its queue waits."""


async def end_run(
    tx: Transaction,
    job: Job,
    status: JobStatus,
    *,
    now: float,
    next_time: NextTime,
    error: str | None = None,
    deaths: int = 0,
) -> RunEnd | None:
    """A run of a job is over. None if this attempt was over already."""
    if job.recurs is not None and status != "cancelled":
        try:
            at = await _recur(tx, job, Run(status, error, deaths), now=now, next_time=next_time)
        except ValueError as problem:  # nobody can say when: that must not look like success
            status, error = "failed", f"It cannot come again: {json.error_text(problem)}"
            log.error("job %s comes no more: %s", job.name, problem, extra={"job": job.id})
        else:
            if at is not None:
                return RunEnd(status, again_at=at)
    ended = await finish_job(tx, job, status, now=now, error=error, deaths=deaths)
    if ended is None:
        return None
    return RunEnd(ended, next_in_line=await move_up(tx, job, now=now))


class Run(NamedTuple):
    """How a run of a job that comes again has ended."""

    outcome: JobStatus
    error: str | None
    deaths: int
    """How often the process died of it, in a row: that is remembered until a run ends by itself, so
    that the next one does not get three more processes.
    """


async def _recur(
    tx: Transaction, job: Job, run: Run, *, now: float, next_time: NextTime
) -> float | None:
    """Let the job wait for its next time; None if it comes no more.

    Its row is read again: the schedule may have been changed or ended while it ran.
    """
    current = await find_job(tx, job.agent_id, job.id)
    if current is None or current.recurs is None:
        return None
    at = next_time(current, now)
    written = {**named(job), **run._asdict(), "attempt": job.attempt, "due_at": at}
    moved = await tx.execute("recur_job", written)
    return at if moved == 1 else None


async def move_up(tx: Transaction, job: Job, *, now: float) -> float | None:
    """A job is out of the way: the next one of its queue may begin. Since when that one waits."""
    return await move_queue_up(tx, job.agent_id, now=now) if job.kind == "queue" else None


async def move_queue_up(
    tx: Transaction, agent_id: str, *, now: float | None = None
) -> float | None:
    """Let the next one of an agent's queue begin, unless one is in front. Since when it waits.

    It came before `now`, whatever its row says: the clock may have been set back since.
    """
    asked = {"agent": agent_id, "behind": BEHIND, "now": now}
    row = await tx.fetch_one("move_queue_up", asked)
    return None if row is None else row["due_at"]


async def end_series(tx: Transaction, job: Job) -> bool:
    """A job that runs comes no more after this run. False if it does not run, or would not."""
    return await tx.execute("end_series", named(job)) == 1


# After a start


async def has_leases(reader: Reader) -> bool:
    """Whether a process that is gone has left jobs running or held."""
    return await reader.fetch_one("any_lease", {}) is not None


async def take_up_leases(
    tx: Transaction, boot: int, *, now: float, random: Random, next_time: NextTime
) -> Sequence[Job]:
    """The process that ran these jobs is gone: what becomes of each, in one transaction.

    One cut off by a stop that somebody asked for gets its attempt back. Gives those whose run
    ended, with how it did.
    """
    await tx.execute("release_held_jobs", {"behind": BEHIND})
    ended: list[Job | None] = []
    for row in await tx.fetch_all("leased_jobs", {}):
        job = readable_job(row)
        if job is None:
            ended.append(await fail_unreadable(tx, row, now=now))
        elif job.boot != boot:
            ended.append(await _take_up(tx, job, now, random, next_time=next_time))
    for row in await tx.fetch_all("stopped_queues", {"behind": BEHIND}):
        await move_queue_up(tx, row["agent"], now=now)
    return [job for job in ended if job is not None]


async def _take_up(
    tx: Transaction, job: Job, now: float, random: Random, *, next_time: NextTime
) -> Job | None:
    """Let the job wait again, or end its run: then as that ended."""
    if job.boot is not None and not await was_unplanned(tx, job.boot):
        given_back, deaths = job.attempt - 1, job.deaths
        if await retry_job(tx, job, at=now, error=job.error, left=given_back, deaths=deaths):
            return None
    deaths = job.deaths + 1
    died = f"The process died {f'{deaths} times ' if deaths > 1 else ''}while it ran."
    match next_try(job, ProcessDied(), now, random):
        case Retry(at):
            if await retry_job(tx, job, at=at, error=died, deaths=deaths):
                return None
        case GiveUp():
            pass
    ended = await end_run(
        tx, job, "failed", now=now, next_time=next_time, error=died, deaths=deaths
    )
    if ended is None:
        return None
    return msgspec.structs.replace(job, status=ended.status, error=died)
