"""One attempt of a job: its lease, its handler, and what is stored of its end."""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from typing import Any, NamedTuple

import msgspec

from thinkwell.core import json
from thinkwell.core.bus import EventBus
from thinkwell.core.clock import Clock
from thinkwell.core.errors import OwnershipLostError, UserCodeError
from thinkwell.core.signal import AbortController
from thinkwell.core.tasks import LeftBehindError, StoppedError, TaskOwner, is_cancelled, run_apart
from thinkwell.core.user_code import call_user, log_fields
from thinkwell.features.jobs import Jobs, facts_of
from thinkwell.hooks.jobs import JobHandler, RunAgain
from thinkwell.journal.crash_points import crash_here
from thinkwell.journal.jobs import (
    Job,
    JobStatus,
    Random,
    Retry,
    begin_job,
    finish_job,
    next_try,
    retry_job,
)
from thinkwell.store.base import Transaction
from thinkwell.turn.run.settings import limits_of

log = logging.getLogger("thinkwell.jobs")


class Tools(msgspec.Struct, frozen=True, kw_only=True):
    """What every attempt needs."""

    clock: Clock
    bus: EventBus
    random: Random
    tasks: TaskOwner
    """Keeps handlers that ignore their cancel."""


async def lease(jobs: Jobs, job: Job, *, boot: int, now: float) -> Lease | None:
    """Begin an attempt: from this commit on it counts. None if the job does not wait any more."""
    epoch = jobs.epoch
    controller = jobs.begin(job)  # first: a cancel that follows the commit must reach it
    leased = None
    try:
        leased = await jobs.insist(lambda tx: begin_job(tx, job, epoch=epoch, boot=boot, now=now))
    finally:
        if leased is None:
            jobs.end(job)
    return None if leased is None else Lease(leased, controller)


class Lease(NamedTuple):
    """A job that this process runs, and what stops it."""

    job: Job
    controller: AbortController


class Cancelled(Exception):  # noqa: N818 - how an attempt ended, never raised
    """Somebody cancelled the job, and its handler has stopped or is left behind."""


class Attempt:
    """One attempt of a job that is leased."""

    def __init__(self, lease: Lease, jobs: Jobs, handler: JobHandler, *, tools: Tools) -> None:
        self._job, self._controller = lease
        self._jobs = jobs
        self._handler = handler
        self._tools = tools

    async def run(self) -> None:
        """Call the handler, then store what became of it."""
        job = self._job
        log_fields.set({"agent": job.agent_id, "job": job.id})
        self._tools.bus.emit("job:started", **facts_of(job))
        crash_here("j2")
        try:
            value = await self._call()
        finally:
            self._jobs.end(job)
        crash_here("j4")
        try:
            await self._store(value)
        except OwnershipLostError:  # whoever owns the agent now runs the job again
            log.warning("the end of a job could not be stored", extra={"job": job.id})

    async def _call(self) -> Any:
        """What the handler gave, or the error it raised."""
        job, jobs, controller = self._job, self._jobs, self._controller
        limits = limits_of(getattr(jobs.agent, "time_limits", {}))
        context = jobs.context(job, controller)
        try:
            with controller.signal.future() as stop:
                return await run_apart(
                    call_user(f"job {job.name}", self._handler, job.payload, context),
                    name=f"{job.agent_id}:{job.name}",
                    stop=stop,
                    grace=limits.grace,
                    owner=self._tools.tasks,
                )
        except LeftBehindError as error:
            self._tools.tasks.keep(error.task)
            return Cancelled()
        except StoppedError as error:
            return Cancelled() if controller.signal.aborted else UserCodeError(job.name, error)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the handler's
            return error
        except BaseException as error:
            if is_cancelled():  # the host stops: the next start takes the job up
                raise
            return UserCodeError(job.name, error)

    async def _store(self, value: Any) -> None:
        """Store what became of the attempt, then report it."""
        if isinstance(value, Cancelled):
            await self._finish("cancelled")
        elif isinstance(value, Exception):
            await self._fail(value)
        elif isinstance(value, RunAgain):
            at = self._tools.clock.now() + value.delay
            await self._wait_again(at, attempts=0)
        else:
            await self._finish("done")

    async def _fail(self, error: Exception) -> None:
        job = self._job
        decision = next_try(job, error, self._tools.clock.now(), self._tools.random)
        log.error(
            "job %s failed at attempt %d of %d",
            job.name,
            job.attempt,
            job.max_attempts,
            exc_info=error,
            extra={"agent": job.agent_id, "job": job.id},
        )
        text = f"{type(error).__name__}: {json.error_text(error)}"
        if isinstance(decision, Retry):
            await self._wait_again(decision.at, attempts=job.attempt, error=text)
        else:
            await self._finish("failed", text)

    async def _finish(self, status: JobStatus, error: str | None = None) -> None:
        job, now = self._job, self._tools.clock.now()

        def end(tx: Transaction) -> Awaitable[JobStatus | None]:
            return finish_job(tx, job, status, now=now, error=error)

        ended = await self._jobs.insist(end)
        crash_here("j5")
        if ended is not None:
            report_end(self._tools.bus, job, ended, error)

    async def _wait_again(self, at: float, *, attempts: int, error: str | None = None) -> None:
        """The job waits for its next attempt, unless it was cancelled meanwhile."""
        job, now = self._job, self._tools.clock.now()

        async def wait(tx: Transaction) -> JobStatus | None:
            if await retry_job(tx, job, at=at, error=error, left=attempts):
                return "waiting"
            return await finish_job(tx, job, "cancelled", now=now, error=error)

        status = await self._jobs.insist(wait)
        crash_here("j6")
        if status == "waiting":
            self._tools.bus.emit("job:retried", **facts_of(job), error=error, due_at=at)
            self._jobs.announce(msgspec.structs.replace(job, status="waiting", due_at=at))
        elif status is not None:
            report_end(self._tools.bus, job, status, error)


def report_end(bus: EventBus, job: Job, status: JobStatus, error: str | None) -> None:
    """A job has ended, and that is stored."""
    match status:
        case "failed":
            bus.emit("job:failed", **facts_of(job), error=error)
        case "cancelled":
            bus.emit("job:cancelled", **facts_of(job))
        case _:
            bus.emit("job:finished", **facts_of(job))
