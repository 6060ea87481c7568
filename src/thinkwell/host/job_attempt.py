"""One attempt of a job: its lease, its handler, and what is stored of its end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Generator
from contextlib import contextmanager
from typing import Any, NamedTuple

import msgspec

from thinkwell.core import json
from thinkwell.core.bus import EventBus
from thinkwell.core.clock import Clock
from thinkwell.core.errors import AgentDeletedError, JobError, OwnershipLostError, UserCodeError
from thinkwell.core.serving import ServedFor, serving
from thinkwell.core.signal import AbortController
from thinkwell.core.tasks import LeftBehindError, StoppedError, TaskOwner, is_cancelled, run_apart
from thinkwell.core.user_code import call_hook, call_user, log_failure, log_fields
from thinkwell.features.jobs.desk import JobDesk
from thinkwell.features.jobs.telling import tell_ended, tell_retried, tell_started
from thinkwell.hooks.jobs import JobHandler, RunAgain
from thinkwell.hooks.time_limits import limits_of
from thinkwell.journal.crash_points import crash_here
from thinkwell.journal.job_ends import NextTime, RunEnd, end_run
from thinkwell.journal.jobs import (
    Job,
    JobStatus,
    Random,
    Retry,
    begin_job,
    next_try,
    retry_job,
)
from thinkwell.store.base import Transaction

log = logging.getLogger("thinkwell.jobs")


class Tools(msgspec.Struct, frozen=True, kw_only=True):
    """What every attempt needs."""

    clock: Clock
    bus: EventBus
    random: Random
    next_time: NextTime
    tasks: TaskOwner
    """Keeps handlers that ignore their cancel."""


async def lease(desk: JobDesk, job: Job, *, boot: int, now: float) -> Lease | None:
    """Begin an attempt: from this commit on it counts. None if the job does not wait any more."""
    epoch = desk.epoch()
    controller = desk.begin(job)  # first: a cancel that follows the commit must reach it
    leased = None
    try:
        leased = await desk.insist(lambda tx: begin_job(tx, job, epoch=epoch, boot=boot, now=now))
    finally:
        if leased is None:
            desk.end(job)
    return None if leased is None else Lease(leased, controller)


class Lease(NamedTuple):
    """A job that this process runs, and what stops it."""

    job: Job
    controller: AbortController


class Cancelled(Exception):  # noqa: N818 - how an attempt ended, never raised
    """Somebody cancelled the job, and its handler has stopped or is left behind."""


class Attempt:
    """One attempt of a job that is leased."""

    def __init__(self, lease: Lease, desk: JobDesk, handler: JobHandler, *, tools: Tools) -> None:
        self._job, self._controller = lease
        self._desk = desk
        self._handler = handler
        self._tools = tools
        self._late: TimeoutError | None = None

    async def run(self) -> None:
        """Call the handler, then store what became of it."""
        job = self._job
        log_fields.set({"agent": job.agent_id, "job": job.id})
        tell_started(self._tools.bus, job)
        crash_here("j2")
        try:
            value = await self._call()
        finally:
            self._desk.end(job)
        crash_here("j4")
        try:
            await self._store_or_fail(value)
        except OwnershipLostError:  # whoever owns the agent now runs the job again
            log.warning("the end of a job could not be stored", extra={"job": job.id})

    async def _store_or_fail(self, value: Any) -> None:
        """A row must not stay leased to a process that has nothing more to do for it."""
        try:
            await self._store(value)
        except OwnershipLostError:
            raise
        except Exception as error:  # noqa: BLE001 - logged with the attempt that fails by it
            await self._fail(error)

    async def _call(self) -> Any:
        """What the handler gave, or the error it raised."""
        job, desk, controller = self._job, self._desk, self._controller
        context = desk.context(job, controller)
        try:
            limits = limits_of(getattr(desk.agent, "time_limits", {}))
            with (
                controller.signal.future() as stop,
                self._at_most(limits.job),
                serving(job.agent_id, ServedFor(job.principal, job.read_only)),
            ):
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

    @contextmanager
    def _at_most(self, seconds: float | None) -> Generator[None]:
        """After so long the handler is stopped as by a cancel, and the attempt has failed."""
        if seconds is None:
            yield
            return
        timer = asyncio.get_running_loop().call_later(seconds, self._too_late, seconds)
        try:
            yield
        finally:
            timer.cancel()

    def _too_late(self, seconds: float) -> None:
        if not self._controller.signal.aborted:
            self._late = TimeoutError(f"It ran longer than {seconds:g} s (time_limits['job']).")
            self._controller.abort(str(self._late))

    async def _store(self, value: Any) -> None:
        """Store what became of the attempt, then report it."""
        if self._late is not None:  # whatever it gave then: it may have stopped half-way
            await self._fail(self._late)
        elif isinstance(value, Cancelled):
            await self._finish("cancelled")
        elif isinstance(value, Exception):
            await self._fail(value)
        elif isinstance(value, RunAgain):
            at = self._tools.clock.now() + value.delay
            await self._wait_again(at, attempts=0)
        elif value is RunAgain:  # "done" would end for good what was meant to go on
            await self._fail(
                JobError(f"{self._job.name} returned the class RunAgain. Return RunAgain(seconds).")
            )
        else:
            await self._finish("done")

    async def _fail(self, error: Exception) -> None:
        job = self._job
        decision = next_try(job, error, self._tools.clock.now(), self._tools.random)
        # Deleted under its feet: that is what somebody wanted. Of another agent it is a failure.
        gone = isinstance(error, AgentDeletedError) and error.agent_id == job.agent_id
        log.log(
            logging.INFO if gone else logging.ERROR,
            "job %s failed at attempt %d of %d",
            job.name,
            job.attempt,
            job.max_attempts,
            exc_info=None if gone else error,
            extra={"agent": job.agent_id, "job": job.id, "code": job.name},
        )
        text = f"{type(error).__name__}: {json.error_text(error)}"
        if isinstance(decision, Retry):
            await self._wait_again(decision.at, attempts=job.attempt, error=text)
            return
        await self._finish("failed", text)
        if job.kind is not None:  # nobody waits for it: its agent hears of it
            await self._tell_agent(error)

    async def _tell_agent(self, error: Exception) -> None:
        agent, job = self._desk.agent, self._job
        try:
            await call_hook("on_error", agent.on_error, error, None)
        except Exception as failure:  # noqa: BLE001 - logged there
            about = {"agent": job.agent_id, "job": job.id, "hook": "on_error"}
            log_failure(log, "on_error", failure, about)

    async def _finish(self, status: JobStatus, error: str | None = None) -> None:
        job, now, next_time = self._job, self._tools.clock.now(), self._tools.next_time

        def end(tx: Transaction) -> Awaitable[RunEnd | None]:
            return end_run(tx, job, status, now=now, next_time=next_time, error=error)

        ended = await self._desk.insist(end)
        crash_here("j5" if ended is None or ended.again_at is None else "s2")
        if ended is not None:
            self._report(ended, error)

    def _report(self, ended: RunEnd, error: str | None) -> None:
        job, desk = self._job, self._desk
        tell_ended(self._tools.bus, job, ended.status, error)
        if ended.again_at is not None:
            desk.announce(msgspec.structs.replace(job, status="waiting", due_at=ended.again_at))
        desk.moved_up(ended.next_in_line)

    async def _wait_again(self, at: float, *, attempts: int, error: str | None = None) -> None:
        """The job waits for its next attempt, unless it was cancelled meanwhile."""
        job, now, next_time = self._job, self._tools.clock.now(), self._tools.next_time

        async def wait(tx: Transaction) -> RunEnd | None:
            if await retry_job(tx, job, at=at, error=error, left=attempts):
                return RunEnd("waiting")
            return await end_run(tx, job, "cancelled", now=now, next_time=next_time, error=error)

        ended = await self._desk.insist(wait)
        crash_here("j6")
        if ended is not None and ended.status == "waiting":
            tell_retried(self._tools.bus, job, error, at)
            self._desk.announce(msgspec.structs.replace(job, status="waiting", due_at=at))
        elif ended is not None:
            self._report(ended, error)
