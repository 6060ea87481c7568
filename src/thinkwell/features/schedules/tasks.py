"""The declared tasks of one agent: kept as jobs, brought up to date, run (spec/04 §11.3, §11.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from msgspec.structs import replace

from thinkwell.core.errors import ScheduleError, SubmissionConflictError
from thinkwell.core.ids import new_id
from thinkwell.core.tasks import TaskOwner, run_to_the_end
from thinkwell.core.user_code import call_user
from thinkwell.features.jobs.desk import JobDesk
from thinkwell.features.jobs.telling import TASK_JOB, tell_cancelled, tell_created
from thinkwell.features.schedules.declared import Declared
from thinkwell.features.schedules.marks import declared_tasks
from thinkwell.features.schedules.occurrences import iso_time
from thinkwell.features.schedules.reconcile import Arm, Describe, Remove, Step, plan_reconcile
from thinkwell.features.schedules.rows import TaskState, task_of
from thinkwell.features.schedules.task_context import (
    ScheduledTaskContext,
    TaskRun,
    call_with,
    owner_key,
)
from thinkwell.hooks.feature import Kit
from thinkwell.hooks.jobs import JobContext
from thinkwell.journal.crash_points import crash_here
from thinkwell.journal.job_ends import end_series
from thinkwell.journal.jobs import (
    Job,
    describe_job,
    find_job_by_key,
    insert_job,
    jobs_of_kind,
    rearm_job,
    withdraw_job,
)
from thinkwell.store.base import Transaction

UNBORN: Final = 0
"""The epoch of an agent that somebody only looks at: nothing is stored for it."""


class DeclaredTasks:
    """What an agent declares, and the jobs that stand for it."""

    def __init__(self, kit: Kit, desk: JobDesk) -> None:
        self.kit = kit
        self._desk = desk
        self._tasks = TaskOwner("schedules")
        self._declared: dict[str, Declared] | None = None
        """What the class declares; None while that cannot be read."""

    async def close(self) -> None:
        """The agent goes to sleep."""
        await self._tasks.close()

    async def states(self) -> Sequence[TaskState]:
        """How they stand, by name."""
        states = [TaskState.of(job) for job in await self._stored()]
        return sorted(states, key=lambda state: state.name)

    async def run_now(self, name: str) -> str:
        """Have one run now; the id of the job that does it."""
        key = _key_of(name)
        job = await find_job_by_key(self._desk.reader, self._desk.agent_id, key)
        if job is None or job.ended:
            known = ", ".join(state.name for state in await self.states()) or "none"
            raise ScheduleError(f"There is no declared task {name!r}. There are: {known}.")
        run = await self._desk.run_now(job.id)
        return "" if run is None else run.id

    async def _stored(self) -> Sequence[Job]:
        return await jobs_of_kind(self._desk.reader, self._desk.agent_id, "task")

    async def reconcile(self) -> Sequence[str]:
        """Make the stored tasks those that are declared now; the names of what changed."""
        self._declared = None
        declared = await declared_tasks(self.kit.agent)
        self._check_prompts(declared)
        self._declared = declared
        if declared and self._desk.epoch() == UNBORN:
            # Whoever looks at agents by made-up names must not fill the file with their tasks.
            self._desk.when_born(lambda: self._born())
            return []
        stored = {task_of(job): job for job in await self._stored()}
        now = self._desk.clock.now()
        steps = plan_reconcile(declared, stored, now)
        if not steps:
            return []
        return await run_to_the_end(self._carry_out(steps, declared, now))

    def _born(self) -> None:
        self._tasks.spawn(self._reconcile_late(), name="reconcile")

    async def _reconcile_late(self) -> None:
        await self.reconcile()

    async def _carry_out(
        self, steps: Sequence[Step], declared: Mapping[str, Declared], now: float
    ) -> Sequence[str]:
        async def write(tx: Transaction) -> list[tuple[str, Job, bool]]:
            done = [await self._carry_out_one(tx, step, declared, now) for step in steps]
            crash_here("s0")
            return done

        done = await self._desk.write(write)
        crash_here("s1")
        for _, job, armed in done:
            if armed:
                tell_created(self._desk.bus, job)
                self._desk.announce(job)
            elif job.status == "cancelled":
                tell_cancelled(self._desk.bus, job)
        return [name for name, _, _ in done]

    async def _carry_out_one(
        self, tx: Transaction, step: Step, declared: Mapping[str, Declared], now: float
    ) -> tuple[str, Job, bool]:
        """One step: the task, its job, and whether it has a new time."""
        match step:
            case Remove(job):
                if not await end_series(tx, job):
                    await withdraw_job(tx, job, "not declared any more", now=now)
                return task_of(job), replace(job, status="cancelled"), False
            case Describe(name, job):
                task = declared[name]
                described = replace(job, recurs=task.recurs, **_attempts(task))
                await describe_job(tx, described)
                return name, described, False
            case Arm(name, at):
                return name, await self._arm(tx, name, declared[name], at, now=now), True

    async def _arm(
        self, tx: Transaction, name: str, task: Declared, at: float, *, now: float
    ) -> Job:
        job = self._task_job(name, task, at, now)
        known = await find_job_by_key(tx, job.agent_id, _key_of(name))
        if known is None:
            return await insert_job(tx, job)
        job = replace(job, id=known.id)  # also one that was declared once and is again
        await rearm_job(tx, job)
        return job

    def _task_job(self, name: str, task: Declared, at: float, now: float) -> Job:
        return Job(
            agent_id=self._desk.agent_id,
            id=new_id(),
            name=TASK_JOB,
            payload={"task": name},
            kind="task",
            key=_key_of(name),
            due_at=at,
            scheduled_for=at,
            recurs=task.recurs,
            created_at=now,
            **_attempts(task),
        )

    def _check_prompts(self, declared: Mapping[str, Declared]) -> None:
        chats = hasattr(self.kit.agent, "submit")
        for name, task in declared.items():
            if task.task.prompt is not None and not chats:
                raise ScheduleError(
                    f"The task {name!r} has a prompt, and {type(self.kit.agent).__name__} does not "
                    "chat. Give it handler=, or subclass Think."
                )

    async def run(self, payload: Any, ctx: JobContext) -> None:
        """A declared task is due: its handler is called, or its prompt becomes a turn."""
        name = str(payload["task"])
        if self._declared is None:
            raise ScheduleError("What the agent declares cannot be read: see the log.")
        declared = self._declared.get(name)
        if declared is None:
            return  # removed while this run was on its way
        meant = self._desk.clock.now() if ctx.scheduled_for is None else ctx.scheduled_for
        run = TaskRun(meant, ctx.attempt, ctx.signal)
        context = declared.context(name, self._desk.agent_id, run)
        task = declared.task
        if task.prompt is not None:
            await self._admit(declared, context)
        elif task.handler is not None:
            await call_user(f"task {name}", call_with, task.handler, context)

    async def _admit(self, declared: Declared, context: ScheduledTaskContext) -> None:
        prompt: Any = declared.task.prompt
        if callable(prompt):
            prompt = await call_user(f"prompt of {context.task_id}", call_with, prompt, context)
        if not isinstance(prompt, str) or not prompt:
            raise ScheduleError(
                f"The prompt of the task {context.task_id!r} gave {prompt!r}. Return a text."
            )
        metadata = {
            **(context.metadata or {}),
            "source": "scheduled-task",
            "owner_key": owner_key(self._desk.agent_id),
            "task_id": context.task_id,
            "scheduled_for": iso_time(context.scheduled_for),
            "schedule": context.schedule,
        }
        # A run that was cut off after this line finds its turn by the key, also if the prompt is
        # another one by now.
        with suppress(SubmissionConflictError):
            await self.kit.admit(prompt, idempotency_key=context.idempotency_key, metadata=metadata)


def _key_of(task: str) -> str:
    return f"{TASK_JOB}:{task}"


def _attempts(task: Declared) -> dict[str, Any]:
    """How often a run of it is tried, as its row says it."""
    retry = task.retry
    return {
        "max_attempts": retry.max_attempts,
        "base_delay": retry.base_delay,
        "max_delay": retry.max_delay,
    }
