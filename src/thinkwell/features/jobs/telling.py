"""What the bus hears of jobs: what was stored, once it is."""

from __future__ import annotations

from typing import Any, cast

from thinkwell.core.bus import EventBus
from thinkwell.core.events import (
    JobCancelled,
    JobFailed,
    JobFinished,
    JobRetried,
    JobStarted,
)
from thinkwell.core.schedule_events import (
    QueueCreated,
    QueueDeadLetter,
    QueueFailed,
    QueueRetried,
    ScheduleCancelled,
    ScheduleCreated,
    ScheduleExecuted,
    ScheduleFailed,
    ScheduleRetried,
)
from thinkwell.journal.jobs import Job, JobStatus

TASK_JOB = "schedules.task"
"""The name of every job that runs a declared task; its payload says which."""


def facts_of(job: Job) -> dict[str, Any]:
    """What every event of a job says."""
    return {"agent": job.agent_id, "job": job.id, "name": job.name, "attempt": job.attempt}


def callback_of(job: Job) -> str:
    """What a planned job calls: a method, or a declared task."""
    payload = job.payload  # of a row that cannot be read it is not known
    named = job.name == TASK_JOB and isinstance(payload, dict)
    return str(cast("dict[str, Any]", payload).get("task")) if named else job.name


def _planned(job: Job) -> dict[str, Any]:
    return {"agent": job.agent_id, "id": job.id, "callback": callback_of(job)}


def tell_created(bus: EventBus, job: Job) -> None:
    """A job is enqueued."""
    if job.kind == "queue":
        bus.emit(QueueCreated, **_planned(job))
    elif job.kind is not None:
        bus.emit(ScheduleCreated, **_planned(job))


def tell_started(bus: EventBus, job: Job) -> None:
    """An attempt has begun."""
    bus.emit(JobStarted, **facts_of(job))
    if job.kind is not None and job.kind != "queue":
        bus.emit(ScheduleExecuted, **_planned(job))


def tell_retried(bus: EventBus, job: Job, error: str | None, due_at: float) -> None:
    """A job waits for its next attempt."""
    bus.emit(JobRetried, **facts_of(job), error=error, due_at=due_at)
    if job.kind is None or error is None:
        return
    tries = {"attempt": job.attempt, "max_attempts": job.max_attempts}
    facts: dict[str, Any] = {**_planned(job), **tries}
    if job.kind == "queue":
        bus.emit(QueueRetried, **facts)
    else:
        bus.emit(ScheduleRetried, **facts)


def tell_ended(bus: EventBus, job: Job, status: JobStatus, error: str | None) -> None:
    """A job has ended, or a run of one that comes again, and that is stored."""
    match status:
        case "failed":
            bus.emit(JobFailed, **facts_of(job), error=error)
            _tell_given_up(bus, job, error)
        case "cancelled":
            tell_cancelled(bus, job)
        case _:
            bus.emit(JobFinished, **facts_of(job))


def tell_cancelled(bus: EventBus, job: Job) -> None:
    """A job is cancelled."""
    bus.emit(JobCancelled, **facts_of(job))
    tell_ended_series(bus, job)


def tell_ended_series(bus: EventBus, job: Job) -> None:
    """A schedule comes no more."""
    if job.kind is not None and job.kind != "queue":
        bus.emit(ScheduleCancelled, **_planned(job))


def _tell_given_up(bus: EventBus, job: Job, error: str | None) -> None:
    if job.kind == "queue":
        bus.emit(QueueFailed, **_planned(job), error=error, attempts=job.attempt)
        bus.emit(QueueDeadLetter, **_planned(job))
    elif job.kind is not None:
        bus.emit(ScheduleFailed, **_planned(job), error=error, attempts=job.attempt)
