"""`agent.jobs`: durable calls of the agent's own methods, outside its turns.

Enqueueing writes a row; the host's one runner (`host/job_runner.py`) calls the handler when the job
is due, in the agent but beside its turns, and wakes the agent for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar

from thinkwell.core import json
from thinkwell.core.bus import EventBus
from thinkwell.core.clock import Clock
from thinkwell.core.errors import JobError
from thinkwell.core.ids import new_id
from thinkwell.core.signal import AbortController
from thinkwell.hooks.jobs import JobContext, JobHandlers
from thinkwell.journal.crash_points import crash_here
from thinkwell.journal.jobs import (
    BASE_DELAY,
    MAX_ATTEMPTS,
    MAX_DELAY,
    Job,
    JobStatus,
    cancel_job,
    find_job,
    find_job_by_key,
    insert_job,
    jobs_of_agent,
    revive_job,
    stash_job,
)
from thinkwell.journal.joined_writes import Together, open_block
from thinkwell.session.session import Write
from thinkwell.store.base import Reader, Transaction

T = TypeVar("T")
LARGEST = 1_000_000
"""Bytes of a payload or a stash as JSON: it is written while everybody waits."""
NewDue = Callable[[str, float], None]
"""Told, after the commit, whose job waits and when it is due. Contract: returns at once."""


def facts_of(job: Job) -> dict[str, Any]:
    """What every event of a job says."""
    return {"agent": job.agent_id, "job": job.id, "name": job.name, "attempt": job.attempt}


class Jobs:
    """The jobs of one agent."""

    def __init__(
        self,
        agent_id: str,
        agent: Any,
        *,
        reader: Reader,
        write: Write,
        insist: Write,
        clock: Clock,
        bus: EventBus,
        new_due: NewDue,
        epoch: int = 0,
    ) -> None:
        self._agent_id = agent_id
        self._agent = agent
        self._reader = reader
        self._write = write
        self._insist = insist
        self._clock = clock
        self._bus = bus
        self._new_due = new_due
        self._epoch = epoch
        self._handlers = JobHandlers(agent)
        self._running: dict[str, AbortController] = {}

    async def enqueue(
        self,
        name: str,
        payload: Any = None,
        *,
        due: datetime | float | None = None,
        delay: float | None = None,
        key: str | None = None,
        max_attempts: int = MAX_ATTEMPTS,
        base_delay: float = BASE_DELAY,
        max_delay: float = MAX_DELAY,
    ) -> Job:
        """Have the method `name` called with `payload`, at least once, also after a crash.

        At once, `delay` seconds from now, or when it is `due` (a datetime with a time zone, or
        seconds since the epoch). The same `key` again gives the first job. A handler that raises is
        called again up to `max_attempts` times, with pauses that grow from `base_delay` seconds to
        `max_delay`. Raises `JobError` for what cannot run.

        Inside `async with storage.together():` it is enqueued with what the block writes.
        """
        now = self._clock.now()
        job = Job(
            agent_id=self._agent_id,
            id=new_id(),
            name=name,
            payload=_payload(name, payload),
            due_at=_due_at(now, due, delay),
            key=key,
            max_attempts=max_attempts,
            base_delay=base_delay,
            max_delay=max_delay,
            created_at=now,
        )
        self.check(job)
        if (block := open_block(self._agent_id)) is not None:
            return await self._enqueue_with(block, job)
        job = await self._write(lambda tx: self.enqueue_in(tx, job))
        crash_here("j1")
        self.announce(job)
        return job

    async def _enqueue_with(self, block: Together, job: Job) -> Job:
        """The row is written when the block ends; one with the same key is found already."""
        key = job.key
        known = None if key is None else await find_job_by_key(self._reader, self._agent_id, key)
        if known is not None and known.name == job.name:
            return known
        block.add(lambda tx: self.enqueue_in(tx, job), lambda: self.announce(job))
        return job

    async def get(self, id: str) -> Job | None:
        """The job with that id, or None."""
        return await find_job(self._reader, self._agent_id, id)

    async def list(
        self, status: JobStatus | None = None, name: str | None = None, limit: int = 100
    ) -> Sequence[Job]:
        """The jobs of this agent, the newest first. Ended ones are kept for a week."""
        return await jobs_of_agent(
            self._reader, self._agent_id, status=status, name=name, limit=limit
        )

    async def cancel(self, id: str, reason: str = "cancelled") -> bool:
        """Cancel a job: one that waits never runs, of one that runs `ctx.signal` aborts.

        False if it has ended, is being cancelled already, or does not exist.
        """
        job = await self.get(id)
        if job is None:
            return False  # there is nothing to write down, and maybe no agent yet
        now = self._clock.now()
        was = await self._write(lambda tx: cancel_job(tx, self._agent_id, id, reason, now=now))
        crash_here("j7")
        if was == "waiting":
            self._bus.emit("job:cancelled", **facts_of(job))
        elif was == "running" and (controller := self._running.get(id)) is not None:
            controller.abort(reason)
        return was is not None

    # For our own code

    @property
    def handlers(self) -> JobHandlers:
        """What can run; features add theirs."""
        return self._handlers

    @property
    def agent(self) -> Any:
        """The agent the jobs run in."""
        return self._agent

    @property
    def epoch(self) -> int:
        """The number its writes are made under: its leases."""
        return self._epoch

    @property
    def insist(self) -> Write:
        """Commits what has begun: waits as long as the store does not write."""
        return self._insist

    def check(self, job: Job) -> None:
        """Raises `JobError` if the job could never run."""
        self._handlers.find(job.name)
        if job.max_attempts < 1:
            raise JobError(
                f"max_attempts={job.max_attempts!r} would never run {job.name!r}. Give 1 or more."
            )
        if not 0 < job.base_delay <= job.max_delay < math.inf:
            raise JobError(
                f"base_delay={job.base_delay!r} and max_delay={job.max_delay!r} are no pauses. "
                "Give seconds above 0, base_delay the smaller one."
            )

    async def enqueue_in(self, tx: Transaction, job: Job) -> Job:
        """Write the row in a transaction that is open already; `announce` it after the commit."""
        known = await insert_job(tx, job)
        if known.name != job.name:
            raise JobError(
                f"The key {job.key!r} belongs to a job named {known.name!r}. Give "
                f"{job.name!r} another key."
            )
        crash_here("j0")
        return known

    def announce(self, job: Job) -> None:
        """A job's row is committed: let the runner know."""
        if job.status == "waiting":
            self._new_due(self._agent_id, job.due_at)

    async def revive(self, id: str) -> bool:
        """An operator wants a failed or cancelled job to be tried again. False if it is neither."""
        now = self._clock.now()
        revived = await self._write(lambda tx: revive_job(tx, self._agent_id, id, now=now))
        if revived:
            self._new_due(self._agent_id, now)
        return revived

    def begin(self, job: Job) -> AbortController:
        """An attempt is about to begin: from now on a cancel reaches it."""
        controller = self._running[job.id] = AbortController()
        return controller

    def end(self, job: Job) -> None:
        """The attempt is over."""
        self._running.pop(job.id, None)

    def context(self, job: Job, controller: AbortController) -> JobContext:
        """What the handler gets."""

        async def keep(value: Any) -> None:
            stash = _stash(job.name, value)
            if not await self._insist(lambda tx: stash_job(tx, job, stash)):
                raise JobError(f"The attempt of {job.name!r} that stashes this is over.")
            crash_here("j3")

        return JobContext(job, agent=self._agent, signal=controller.signal, keep=keep)


def _payload(name: str, payload: Any) -> Any:
    try:
        return _checked(payload)
    except ValueError as error:
        raise JobError(
            f"The payload of {name!r} cannot be stored: {error}. Enqueue what JSON can hold, for "
            f"example an id: `enqueue({name!r}, {{'id': 7}})`."
        ) from error


def _stash(name: str, value: Any) -> Any:
    try:
        return _checked(value)
    except ValueError as error:
        raise JobError(f"What {name!r} stashes cannot be stored: {error}.") from error


def _checked(value: Any) -> Any:
    plain = json.to_jsonable(value)
    size = len(json.dump_bytes(plain))
    if size > LARGEST:
        raise ValueError(f"it has {size:,} bytes, and a row of a job holds {LARGEST:,}")
    return plain


def _due_at(now: float, due: datetime | float | None, delay: float | None) -> float:
    if due is not None and delay is not None:
        raise JobError("enqueue() was given due= and delay=. Give one of them.")
    if isinstance(due, datetime):
        if due.tzinfo is None:
            raise JobError(
                f"due={due!r} has no time zone. Write `datetime.now(UTC) + timedelta(...)`, or "
                "give delay= in seconds."
            )
        return due.timestamp()
    at = now + (delay or 0.0) if due is None else due
    if not math.isfinite(at) or (delay is not None and delay < 0):
        raise JobError(
            f"enqueue() was given {'delay' if due is None else 'due'}="
            f"{delay if due is None else due!r}. Give seconds, 0 or more."
        )
    return at
