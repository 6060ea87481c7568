"""Job rows: the durable record of a call of a named method, and the statements that move it on.

A job runs outside the agent's slot, at least once. Every change is conditional on the state it
expects and says whether it moved the row, so that a late end can never overwrite a cancel. An
attempt is counted when it begins, not when it ends: one that takes the process down has been tried.
Stored format: change only with a migration.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from thinkwell.core import json
from thinkwell.core.back_off import pause_after
from thinkwell.core.principal import Principal, load_principal
from thinkwell.journal.budget import DEATHS
from thinkwell.store.base import Reader, Row, Transaction

log = logging.getLogger("thinkwell.jobs")

JobStatus: TypeAlias = Literal["waiting", "running", "done", "failed", "cancelled"]
JobKind: TypeAlias = Literal["delayed", "scheduled", "cron", "interval", "task", "queue"]
Random: TypeAlias = Callable[[], float]
"""Gives numbers from 0 up to, but not including, 1."""

MAX_ATTEMPTS = 5
BASE_DELAY, MAX_DELAY = 1.0, 300.0
"""Seconds of the back-off: what the first one grows from, what none is longer than."""
DEAD_LETTERS = 23 * 24 * 3600.0
"""Seconds by which failed jobs of a queue outlive other jobs. With the default `Retention` they
are kept for thirty days.
"""
BEHIND = "Others of its queue are in front of it."
"""What holds a job of a queue until it is its turn. Stored: the SQL compares it."""
UNREADABLE = "What is stored of this job is damaged, so it could not be run."


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One durable call of a named method, as it is stored."""

    agent_id: str
    id: str
    name: str
    """The method, or `feature.name` for a handler of a feature."""
    payload: Any = None
    """What the handler is given: JSON data."""
    status: JobStatus = "waiting"
    due_at: float = 0.0
    """When it may begin, in seconds since the epoch."""
    key: str | None = None
    """Idempotency key: the same one again gives this job."""
    attempt: int = 0
    """How many attempts have begun."""
    max_attempts: int = MAX_ATTEMPTS
    base_delay: float = BASE_DELAY
    max_delay: float = MAX_DELAY
    deaths: int = 0
    """How often in a row the process died while it ran."""
    stash: Any = None
    """What the handler remembered last."""
    held: str | None = None
    """Why nothing can run it at the moment, although it may be due."""
    cancel_requested: str | None = None
    """Why somebody wants it to stop."""
    error: str | None = None
    """What the last attempt failed with."""
    boot: int | None = None
    """The life of the process that runs it."""
    created_at: float = 0.0
    started_at: float | None = None
    """When the last attempt began."""
    resumed: bool = False
    """Whether an earlier attempt had begun when this one was leased. Said by `begin_job`, which
    overwrites the `started_at` that tells; a planned stop gives `attempt` back, so that cannot.
    """
    finished_at: float | None = None
    principal: Principal | None = None
    """Who it works for: whoever asked for the turn or the call that enqueued it."""
    read_only: bool = False
    """Whether that client was read-only."""
    kind: JobKind | None = None
    """What planned it: a schedule, a declared task, the queue; None for a plain job."""
    recurs: dict[str, Any] | None = None
    """What says when it comes again; None for a job that runs once."""
    scheduled_for: float | None = None
    """The time this run is meant for, however late it is and however often it is tried."""
    outcome: JobStatus | None = None
    """How the last run of a job that comes again has ended."""

    @property
    def ended(self) -> bool:
        """Whether it will not run any more."""
        return self.status not in ("waiting", "running")

    @classmethod
    def from_row(cls, row: Row) -> Job:
        """Read a row of `jobs`."""
        return cls(
            agent_id=row["agent"],
            id=row["id"],
            name=row["name"],
            payload=_load(row["payload"]),
            status=row["status"],
            due_at=row["due_at"],
            key=row["idempotency_key"],
            attempt=row["attempt"],
            max_attempts=row["max_attempts"],
            base_delay=row["base_delay"],
            max_delay=row["max_delay"],
            deaths=row["deaths"],
            stash=_load(row["stash"]),
            held=row["held"],
            cancel_requested=row["cancel_requested"],
            error=row["error"],
            boot=row["boot"],
            created_at=row["created_at"],
            started_at=row["started_at"],
            finished_at=row["finished_at"],
            principal=load_principal(row["principal"]),
            read_only=bool(row["read_only"]),
            kind=row["kind"],
            recurs=_load(row["recurs"]),
            scheduled_for=row["scheduled_for"],
            outcome=row["outcome"],
        )


class Place(NamedTuple):
    """A place in the wake index: all that was due up to here has been seen."""

    due_at: float
    seq: int


START = Place(float("-inf"), 0)


# Decisions


class ProcessDied(Exception):  # noqa: N818 - what happened to an attempt, never raised
    """The process died during an attempt."""


class Retry(msgspec.Struct, frozen=True):
    """Another attempt, not before then."""

    at: float


class GiveUp(msgspec.Struct, frozen=True):
    """No more attempts."""


def next_try(job: Job, error: Exception, now: float, random: Random) -> Retry | GiveUp:
    """What becomes of a job whose last attempt failed.

    A job that died is not kept waiting: the process has been away already, and a handler that kills
    it each time is given up soon.
    """
    if job.attempt >= job.max_attempts:
        return GiveUp()
    if isinstance(error, ProcessDied):
        return GiveUp() if job.deaths + 1 >= DEATHS else Retry(now)
    delays = {"base_delay": job.base_delay, "max_delay": job.max_delay}
    return Retry(now + pause_after(job.attempt, **delays, random=random))


# Statements


async def insert_job(tx: Transaction, job: Job) -> Job:
    """Enqueue: write the row. A job with the same key is given back instead."""
    if job.key is not None and (known := await find_job_by_key(tx, job.agent_id, job.key)):
        return known
    await tx.execute(
        "insert_job",
        {
            **named(job),
            "name": job.name,
            "due_at": job.due_at,
            "key": job.key,
            "max_attempts": job.max_attempts,
            "base_delay": job.base_delay,
            "max_delay": job.max_delay,
            "created_at": job.created_at,
            "payload": dump(job.payload),
            "principal": None if job.principal is None else json.dumps(job.principal),
            "read_only": int(job.read_only),
            "kind": job.kind,
            "recurs": dump(job.recurs),
            "scheduled_for": job.scheduled_for,
            "behind": BEHIND,
        },
    )
    return job


async def find_job(reader: Reader, agent_id: str, job_id: str) -> Job | None:
    """The job with that id."""
    row = await reader.fetch_one("job_by_id", {"agent": agent_id, "id": job_id})
    return None if row is None else Job.from_row(row)


async def find_job_by_key(reader: Reader, agent_id: str, key: str) -> Job | None:
    """The job with that idempotency key."""
    row = await reader.fetch_one("job_by_key", {"agent": agent_id, "key": key})
    return None if row is None else Job.from_row(row)


async def jobs_of_agent(
    reader: Reader, agent_id: str, *, status: str | None, name: str | None, limit: int
) -> list[Job]:
    """The jobs of one agent, the newest first. Unreadable rows are left out."""
    asked = {"agent": agent_id, "status": status, "name": name, "limit": limit}
    rows = await reader.fetch_all("jobs_of_agent", asked)
    return [job for row in rows if (job := readable_job(row)) is not None]


async def jobs_of_kind(reader: Reader, agent_id: str, kind: JobKind) -> list[Job]:
    """Those of an agent that were planned so and have not ended, in the order they were."""
    rows = await reader.fetch_all("jobs_of_kind", {"agent": agent_id, "kind": kind})
    return [job for row in rows if (job := readable_job(row)) is not None]


async def same_job(reader: Reader, job: Job) -> Job | None:
    """A job that has not ended and does the same for the same person, at whatever time."""
    row = await reader.fetch_one("same_job", _described(job))
    return None if row is None else Job.from_row(row)


async def count_same_jobs(reader: Reader, job: Job, limit: int) -> int:
    """How many such jobs there are, at most `limit`."""
    row = await reader.fetch_one("count_same_jobs", {**_described(job), "limit": limit})
    return 0 if row is None else row["same"]


async def rearm_job(tx: Transaction, job: Job) -> bool:
    """Give a job that comes again other times, whatever has become of it. False if there is none.

    One that runs has its run first.
    """
    written = {
        **named(job),
        "recurs": dump(job.recurs),
        "payload": dump(job.payload),
        "due_at": job.due_at,
        "max_attempts": job.max_attempts,
        "base_delay": job.base_delay,
        "max_delay": job.max_delay,
    }
    return await tx.execute("rearm_job", written) == 1


async def describe_job(tx: Transaction, job: Job) -> bool:
    """What a job that comes again says of itself has changed, and its times have not."""
    written = {
        **named(job),
        "recurs": dump(job.recurs),
        "max_attempts": job.max_attempts,
        "base_delay": job.base_delay,
        "max_delay": job.max_delay,
    }
    return await tx.execute("describe_job", written) == 1


async def due_agents(
    reader: Reader, after: Place, *, now: float, limit: int
) -> tuple[list[str], Place]:
    """Whose jobs have become due, and how far the wake index has been read."""
    asked = {**after._asdict(), "now": now, "limit": limit}
    rows = await reader.fetch_all("due_agents", asked)
    seen = Place(rows[-1]["due_at"], rows[-1]["seq"]) if rows else after
    return list(dict.fromkeys(row["agent"] for row in rows)), seen


async def next_due(reader: Reader, after: Place) -> float | None:
    """When the next job is due; None if none waits."""
    row = await reader.fetch_one("next_due", after._asdict())
    return None if row is None else row["due_at"]


async def due_row(
    reader: Reader, agent_id: str, now: float, *, innocent: bool = False
) -> Row | None:
    """The row of an agent's job that has been due for the longest time.

    `innocent`: only jobs during which no process has died.
    """
    params = {"agent": agent_id, "now": now, "innocent": innocent}
    return await reader.fetch_one("due_job", params)


async def begin_job(tx: Transaction, job: Job, *, epoch: int, boot: int, now: float) -> Job | None:
    """One more attempt begins. None if the job does not wait any more."""
    attempt = job.attempt + 1
    lease = {"attempt": attempt, "epoch": epoch, "boot": boot, "now": now}
    if await tx.execute("begin_job", {**named(job), **lease}) == 0:
        return None
    return msgspec.structs.replace(
        job,
        status="running",
        attempt=attempt,
        boot=boot,
        started_at=now,
        resumed=job.started_at is not None,
    )


async def stash_job(tx: Transaction, job: Job, stash: Any) -> bool:
    """Remember something for the next attempt. False if this attempt is over."""
    fields = {"attempt": job.attempt, "stash": dump(stash)}
    return await tx.execute("stash_job", {**named(job), **fields}) == 1


async def finish_job(
    tx: Transaction,
    job: Job,
    status: JobStatus,
    *,
    now: float,
    error: str | None = None,
    deaths: int = 0,
) -> JobStatus | None:
    """A job ends. How it ended, which a cancel decides; None if this attempt was over."""
    fields = {"attempt": job.attempt, "status": status, "error": error}
    row = await tx.fetch_one("finish_job", {**named(job), **fields, "deaths": deaths, "now": now})
    return None if row is None else row["status"]


async def retry_job(
    tx: Transaction,
    job: Job,
    *,
    at: float,
    error: str | None,
    left: int | None = None,
    deaths: int = 0,
) -> bool:
    """The job waits for its next attempt. False if it was cancelled, or this attempt was over.

    `left` is what the row says of attempts so far: fewer than there were if this one is given back.
    """
    fields = {"attempt": job.attempt, "left": job.attempt if left is None else left}
    ending = {"due_at": at, "error": error, "deaths": deaths}
    return await tx.execute("retry_job", {**named(job), **fields, **ending}) == 1


async def hold_job(tx: Transaction, job: Job, reason: str) -> bool:
    """Nothing can run it in this life of the process. False if it does not wait any more."""
    return await tx.execute("hold_job", {**named(job), "held": reason}) == 1


async def cancel_job(
    tx: Transaction, agent_id: str, job_id: str, reason: str, *, now: float
) -> JobStatus | None:
    """Cancel a job: what it was doing, "waiting" or "running"; None if there is none to cancel."""
    asked = {"agent": agent_id, "id": job_id, "reason": reason}
    if await tx.execute("cancel_waiting_job", {**asked, "now": now}) == 1:
        return "waiting"
    return "running" if await tx.execute("cancel_running_job", asked) == 1 else None


async def withdraw_job(tx: Transaction, job: Job, reason: str, *, now: float) -> bool:
    """Cancel a job that has not begun. False if it has."""
    asked = {**named(job), "reason": reason, "now": now}
    return await tx.execute("cancel_waiting_job", asked) == 1


async def revive_job(tx: Transaction, agent_id: str, job_id: str, *, now: float) -> bool:
    """Try a job again that failed or was cancelled. False if it did not."""
    asked = {"agent": agent_id, "id": job_id, "now": now, "behind": BEHIND}
    return await tx.execute("revive_job", asked) == 1


async def fail_unreadable(tx: Transaction, row: Row, *, now: float) -> Job | None:
    """End a job whose row cannot be decoded: what can be said of it; None if it had ended."""
    failed = {"agent": row["agent"], "id": row["id"], "error": UNREADABLE, "now": now}
    if await tx.execute("fail_unreadable_job", failed) == 0:
        return None
    return Job(
        agent_id=row["agent"],
        id=row["id"],
        name=str(row["name"]),
        attempt=row["attempt"],
        status="failed",
        error=UNREADABLE,
        kind=row["kind"],
    )


async def drop_ended_jobs(tx: Transaction, *, before: float, limit: int) -> int:
    """Drop jobs that ended before then, at most so many; how many there were.

    What failed in a queue is a letter that nobody could deliver: it is kept for longer.
    """
    asked = {"before": before, "dead_before": before - DEAD_LETTERS, "limit": limit}
    return await tx.execute("drop_ended_jobs", asked)


def readable_job(row: Row) -> Job | None:
    """The job, or None if its row is damaged: one bad row must not take the others along."""
    try:
        return Job.from_row(row)
    except (ValueError, TypeError):
        log.critical("a job cannot be read", exc_info=True, extra={"job": row["id"]})
        return None


def named(job: Job) -> dict[str, Any]:
    """What names the row of a job in every statement."""
    return {"agent": job.agent_id, "id": job.id}


def what_it_does(job: Job) -> str:
    """Equal for two jobs that do the same for the same person, at whatever times."""
    return json.dumps(_described(job))


def _described(job: Job) -> dict[str, Any]:
    return {
        "agent": job.agent_id,
        "kind": job.kind,
        "name": job.name,
        "payload": dump(job.payload),
        "recurs": dump(job.recurs),
        # By their id: whoever signs in again has other claims and is the same person.
        "person": None if job.principal is None else job.principal.id,
        "read_only": int(job.read_only),
    }


def _load(text: str | None) -> Any:
    return None if text is None else json.loads(text)


def dump(value: Any) -> str | None:
    """A value as a column holds it."""
    return None if value is None else json.dumps(value)
