"""Schedules, queue items and declared tasks as their users see them: views of job rows."""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias, cast

import msgspec

from thinkwell.features.schedules.retries import RetryOptions
from thinkwell.journal.jobs import Job, JobKind, JobStatus

ScheduleType: TypeAlias = Literal["delayed", "scheduled", "cron", "interval"]
SCHEDULES: Final[tuple[ScheduleType, ...]] = ("delayed", "scheduled", "cron", "interval")


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """A call of a method that was planned and has not ended."""

    id: str
    callback: str
    payload: Any
    type: ScheduleType
    time: float
    """When it comes next, in seconds since the epoch."""
    retry: RetryOptions
    delay: float | None = None
    """Of a delayed one: how many seconds it was to wait."""
    cron: str | None = None
    timezone: str | None = None
    """In which the cron expression is read."""
    every: float | None = None
    """Of an interval: the seconds from the end of a run to the next one."""
    running: bool = False
    """Whether it runs right now."""
    outcome: JobStatus | None = None
    """How its last run ended, if there was one."""
    error: str | None = None
    """What its last attempt failed with."""

    @classmethod
    def of(cls, job: Job) -> Schedule:
        """What a job says of it."""
        recurs = job.recurs or {}
        kind = cast("ScheduleType", job.kind)
        meant = job.due_at if job.scheduled_for is None else job.scheduled_for
        return cls(
            id=job.id,
            callback=job.name,
            payload=job.payload,
            type=kind,
            time=job.due_at,
            retry=_retry(job),
            delay=meant - job.created_at if kind == "delayed" else None,
            cron=recurs.get("cron"),
            timezone=recurs.get("tz"),
            every=recurs.get("every"),
            running=job.status == "running",
            outcome=job.outcome,
            error=job.error,
        )


class QueueItem(msgspec.Struct, frozen=True, kw_only=True):
    """A call of a method that stands in the agent's queue, or could not be delivered."""

    id: str
    callback: str
    payload: Any
    retry: RetryOptions
    created_at: float
    running: bool = False
    error: str | None = None
    """What its last attempt failed with."""

    @classmethod
    def of(cls, job: Job) -> QueueItem:
        """What a job says of it."""
        return cls(
            id=job.id,
            callback=job.name,
            payload=job.payload,
            retry=_retry(job),
            created_at=job.created_at,
            running=job.status == "running",
            error=job.error,
        )


class TaskState(msgspec.Struct, frozen=True, kw_only=True):
    """How a declared task stands."""

    name: str
    schedule: str
    next_run: float
    """When it comes next, or is tried again, in seconds since the epoch."""
    last_run: float | None
    """When its last attempt began."""
    outcome: JobStatus | None
    """How its last run ended, if there was one."""
    error: str | None
    running: bool

    @classmethod
    def of(cls, job: Job) -> TaskState:
        """What a job says of it."""
        return cls(
            name=task_of(job),
            schedule=str((job.recurs or {}).get("schedule", "")),
            next_run=job.due_at,
            last_run=job.started_at,
            outcome=job.outcome,
            error=job.error,
            running=job.status == "running",
        )


def task_of(job: Job) -> str:
    """Which declared task a job is."""
    return str(job.payload["task"])


def holds(payload: Any, key: str, value: Any) -> bool:
    """Whether a payload has this value under this key."""
    return isinstance(payload, dict) and cast("dict[str, Any]", payload).get(key) == value


def is_schedule(kind: JobKind | None) -> bool:
    """Whether a job is a schedule, as opposed to a declared task, a queue item or a plain job."""
    return kind in SCHEDULES


def _retry(job: Job) -> RetryOptions:
    return RetryOptions(
        max_attempts=job.max_attempts, base_delay=job.base_delay, max_delay=job.max_delay
    )
