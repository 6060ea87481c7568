"""`agent.schedules`: calls of the agent's methods for later, in line, or again and again.

A schedule, an item of the queue and a declared task are each one job row; the host's one runner
runs them. What is here writes those rows and reads them. An agent that sleeps costs nothing: its
rows wait in the wake index of all jobs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from thinkwell.core import json
from thinkwell.core.errors import JobError, ScheduleError
from thinkwell.core.ids import new_id
from thinkwell.core.schedule_events import ScheduleDuplicated, SchedulesUnreconciled
from thinkwell.features.jobs.desk import JobDesk
from thinkwell.features.jobs.telling import TASK_JOB
from thinkwell.features.schedules.declared import Retrying
from thinkwell.features.schedules.planning import When, read_payload, read_when
from thinkwell.features.schedules.retries import check_retry
from thinkwell.features.schedules.rows import (
    SCHEDULES,
    QueueItem,
    Schedule,
    ScheduleType,
    TaskState,
    is_schedule,
)
from thinkwell.features.schedules.starting import warn_in_start
from thinkwell.features.schedules.tasks import DeclaredTasks
from thinkwell.hooks.feature import Feature, Kit
from thinkwell.hooks.jobs import JobContext, JobHandler
from thinkwell.journal.jobs import (
    Job,
    JobKind,
    count_same_jobs,
    find_job,
    jobs_of_agent,
    jobs_of_kind,
)

log = logging.getLogger("thinkwell.schedules")

SUSPICIOUS: Final = 10
"""So many equal schedules that run once are no intention."""
Callback = str | Callable[..., Any]


class Schedules(Feature):
    """Work for later. Every agent has it."""

    name = "schedules"

    _tasks: DeclaredTasks

    async def on_boot(self, kit: Kit) -> None:
        """Bring the stored tasks up to date. An agent that cannot still serves (spec/04 §18)."""
        self._tasks = DeclaredTasks(kit, self._desk)
        try:
            await self.reconcile()
        except Exception as error:
            log.exception("the declared tasks cannot be read", extra={"agent": self._desk.agent_id})
            text = f"{type(error).__name__}: {json.error_text(error)}"
            kit.events.emit(SchedulesUnreconciled, agent=self._desk.agent_id, error=text)

    async def on_close(self) -> None:
        """The agent goes to sleep."""
        await self._tasks.close()

    def jobs(self) -> Mapping[str, JobHandler]:
        """What runs declared tasks."""
        return {TASK_JOB.partition(".")[2]: self._run_task}

    # Schedules

    async def schedule(
        self,
        callback: Callback,
        payload: Any = None,
        *,
        at: datetime | None = None,
        delay: timedelta | float | None = None,
        cron: str | None = None,
        every: timedelta | float | None = None,
        tz: str | None = None,
        retry: Retrying = None,
        idempotent: bool | None = None,
    ) -> Schedule:
        """Have a method called `at` a time, after a `delay`, or again and again.

        `cron` has five fields and is read in `tz` (UTC if none is given); `every` counts from the
        end of a run to the next. `callback` is the method or its name. What comes again is stored
        once: the same call again, for the same person, gives the schedule that is there.
        `idempotent=True` does that for `at` and `delay` too, whatever the time. Raises
        `ScheduleError` or `JobError`, and stores nothing then.
        """
        now = self._desk.clock.now()
        when = read_when(now, at=at, delay=delay, cron=cron, every=every, tz=tz)
        job = self._planned(callback, payload, when, retry=retry)
        once = when.recurs is None
        if once and idempotent is None:
            warn_in_start(job.name, self._desk.agent_id)
        dedupe = (not once) if idempotent is None else idempotent
        written = await self._desk.enqueue(job, once=dedupe)
        if once and not dedupe:
            await self._warn_of_many(written)
        return Schedule.of(written)

    async def get(self, id: str) -> Schedule | None:
        """The schedule with that id; None if it has ended or never was."""
        job = await find_job(self._desk.reader, self._desk.agent_id, id)
        wanted = job is not None and is_schedule(job.kind) and not job.ended
        return Schedule.of(job) if job is not None and wanted else None

    async def list(
        self,
        *,
        type: ScheduleType | None = None,
        start: datetime | None = None,
        end: datetime | None = None,
    ) -> Sequence[Schedule]:
        """The schedules that have not ended, the next one first; those between two times."""
        if type is not None and type not in SCHEDULES:
            raise ScheduleError(f"type={type!r}: there are {', '.join(SCHEDULES)}.")
        kinds = SCHEDULES if type is None else (type,)
        jobs = [job for kind in kinds for job in await self._of_kind(kind)]
        first = float("-inf") if start is None else start.timestamp()
        last = float("inf") if end is None else end.timestamp()
        jobs = [job for job in jobs if first <= job.due_at <= last]
        return [Schedule.of(job) for job in sorted(jobs, key=lambda job: (job.due_at, job.id))]

    async def cancel(self, id: str) -> bool:
        """Have a schedule come no more. False if there is none.

        A run of one that comes again ends by itself, so a callback may cancel its own schedule; one
        that runs once is stopped, like any job.
        """
        job = await find_job(self._desk.reader, self._desk.agent_id, id)
        if job is None or not is_schedule(job.kind):
            return False
        return await self._desk.end_series(id)

    # The queue

    async def queue(
        self,
        callback: Callback,
        payload: Any = None,
        *,
        retry: Retrying = None,
        key: str | None = None,
    ) -> QueueItem:
        """Put a call into the agent's queue: one at a time, in order, also after a crash.

        An item that fails is tried again before the next one begins; one that is given up is kept
        as a dead letter. The same `key` again gives the first item.
        """
        now = self._desk.clock.now()
        job = self._planned(callback, payload, When("queue", now), retry=retry, key=key)
        return QueueItem.of(await self._desk.enqueue(job))

    async def items(self) -> Sequence[QueueItem]:
        """What stands in the queue, the first one first."""
        return [QueueItem.of(job) for job in await self._of_kind("queue")]

    async def dequeue(self, *ids: str) -> int:
        """Take items out of the queue before they begin; how many that were."""
        return await self._withdraw(lambda job: job.id in ids)

    async def clear_queue(self, callback: Callback | None = None) -> int:
        """Take out all items that have not begun, or those for one method; how many they were."""
        name = None if callback is None else self._name_of(callback)
        return await self._withdraw(lambda job: name is None or job.name == name)

    async def dead_letters(self, limit: int = 100) -> Sequence[QueueItem]:
        """Items of the queue that were given up, the newest first.

        They are kept for 23 days longer than other ended jobs: thirty days, if `Retention(jobs=)`
        was not changed.
        """
        desk = self._desk
        failed = await jobs_of_agent(
            desk.reader, desk.agent_id, status="failed", name=None, limit=10 * limit
        )
        return [QueueItem.of(job) for job in failed if job.kind == "queue"][:limit]

    async def requeue(self, id: str) -> bool:
        """Try a dead letter again, in its old place. False if there is none with that id."""
        job = await find_job(self._desk.reader, self._desk.agent_id, id)
        known = job is not None and job.kind == "queue" and job.status == "failed"
        return known and await self._desk.revive(id)

    # Declared tasks

    async def tasks(self) -> Sequence[TaskState]:
        """How the declared tasks stand, by name."""
        return await self._tasks.states()

    async def run_task(self, name: str) -> str:
        """Have a declared task run now, beside its own times; the id of the job that does it."""
        return await self._tasks.run_now(name)

    async def reconcile(self) -> Sequence[str]:
        """Make the stored tasks those that the agent declares now; the names of what changed.

        At every start it is done by itself. Raises `ScheduleError`, and changes nothing then, if a
        task cannot be read.
        """
        return await self._tasks.reconcile()

    async def _run_task(self, payload: Any, ctx: JobContext) -> None:
        await self._tasks.run(payload, ctx)

    # What they have in common

    @property
    def _desk(self) -> JobDesk:
        return self.kit.agent.jobs.desk

    async def _of_kind(self, kind: JobKind) -> Sequence[Job]:
        return await jobs_of_kind(self._desk.reader, self._desk.agent_id, kind)

    async def _withdraw(self, wanted: Callable[[Job], bool]) -> int:
        jobs = [job for job in await self._of_kind("queue") if wanted(job)]
        return len(await self._desk.withdraw(jobs))

    def _planned(
        self,
        callback: Callback,
        payload: Any,
        when: When,
        *,
        retry: Retrying,
        key: str | None = None,
    ) -> Job:
        """The row of a schedule or a queue item. Raises for whatever could never run."""
        name = self._name_of(callback)
        options = check_retry(retry, getattr(self.kit.agent, "retry_options", None))
        asker = self._desk.asking(self._desk.agent_id)
        if key is not None and not (isinstance(key, str) and key):  # pyright: ignore[reportUnnecessaryIsInstance] - a user's
            raise ScheduleError(f"key={key!r} is no text. Write `key='receipt-7'`.")
        return Job(
            agent_id=self._desk.agent_id,
            id=new_id(),
            name=name,
            payload=read_payload(name, payload),
            kind=when.kind,
            key=key,
            due_at=when.due_at,
            scheduled_for=when.due_at,
            recurs=when.recurs,
            max_attempts=options.max_attempts,
            base_delay=options.base_delay,
            max_delay=options.max_delay,
            created_at=self._desk.clock.now(),
            principal=None if asker is None else asker.principal,
            read_only=asker is not None and asker.read_only,
        )

    def _name_of(self, callback: Any) -> str:
        """The method that is meant. Raises `JobError` if there is none that can run."""
        agent = self.kit.agent
        name = callback
        if not isinstance(callback, str):
            name = getattr(callback, "__name__", None)
            if getattr(callback, "__self__", None) is not agent or not isinstance(name, str):
                raise JobError(
                    f"{callback!r} cannot be called later: only methods of the agent itself can, "
                    f'because a row holds their name. Write `self.send_mail` or `"send_mail"`.'
                )
        if "." in name:
            raise JobError(f"{name!r} is a job of a feature, not a method of the agent.")
        self._desk.handlers.find(name)
        return name

    async def _warn_of_many(self, job: Job) -> None:
        count = await count_same_jobs(self._desk.reader, job, SUSPICIOUS + 1)
        if count == SUSPICIOUS:
            self._desk.bus.emit(
                ScheduleDuplicated, agent=job.agent_id, callback=job.name, count=count
            )
