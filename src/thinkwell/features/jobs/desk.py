"""The desk behind `agent.jobs`: what the host's runner and its upkeep do with an agent's jobs.

Whatever is committed here is also announced, or told to the handler that runs: a caller that is
cancelled in between must not leave the one without the other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from thinkwell.core import json
from thinkwell.core.bus import EventBus
from thinkwell.core.clock import Clock
from thinkwell.core.errors import JobError
from thinkwell.core.events import JobCancelled
from thinkwell.core.signal import AbortController, Disposer
from thinkwell.core.tasks import run_to_the_end
from thinkwell.hooks.jobs import JobContext, JobHandlers
from thinkwell.journal.crash_points import crash_here
from thinkwell.journal.jobs import (
    Job,
    cancel_job,
    find_job,
    find_job_by_key,
    insert_job,
    revive_job,
    stash_job,
)
from thinkwell.journal.joined_writes import Together, open_block
from thinkwell.store.base import Commit, Reader, Transaction

LARGEST = 1_000_000
"""Bytes of a payload or a stash as JSON: it is written while everybody waits."""
NewDue = Callable[[str, float], None]
"""Told, after the commit, whose job waits and when it is due. Contract: returns at once."""


def facts_of(job: Job) -> dict[str, Any]:
    """What every event of a job says."""
    return {"agent": job.agent_id, "job": job.id, "name": job.name, "attempt": job.attempt}


class JobDesk:
    """The jobs of one agent and what runs of them."""

    def __init__(
        self,
        agent_id: str,
        agent: Any,
        *,
        reader: Reader,
        write: Commit,
        insist: Commit,
        clock: Clock,
        bus: EventBus,
        new_due: NewDue,
        epoch: Callable[[], int] = lambda: 0,
        asking: Callable[[str], Any] = lambda _agent_id: None,
        built_in: Collection[str] = (),
    ) -> None:
        self.agent_id = agent_id
        self.asking = asking
        """For whom the agent's code works right now, if for anybody."""
        self.agent = agent
        """What the jobs run in."""
        self.reader = reader
        self.insist = insist
        """Commits what has begun: waits as long as the store does not write."""
        self.clock = clock
        self.epoch = epoch
        """The number its writes are made under: its leases."""
        self.handlers = JobHandlers(agent, built_in)
        """What can run; features add theirs."""
        self._write = write
        self._bus = bus
        self._new_due = new_due
        self._running: dict[str, AbortController] = {}
        self._kept: set[object] = set()

    # What may be asked for

    async def enqueue(self, job: Job) -> Job:
        """Write a job's row, now or with the block of writes that is open."""
        self.handlers.find(job.name)  # raises `JobError` if it could never run
        if (block := open_block(self.agent_id)) is not None:
            return await self._enqueue_with(block, job)
        return await run_to_the_end(self._enqueue_now(job))

    async def cancel(self, id: str, reason: str) -> bool:
        """Cancel a job. False if it has ended, is being cancelled already, or does not exist."""
        job = await find_job(self.reader, self.agent_id, id)
        if job is None:
            return False  # there is nothing to write down, and maybe no agent yet
        return await run_to_the_end(self._cancel(job, reason))

    async def revive(self, id: str) -> bool:
        """An operator wants a failed or cancelled job to be tried again. False if it is neither."""
        return await run_to_the_end(self._revive(id))

    async def _enqueue_now(self, job: Job) -> Job:
        job = await self._write(lambda tx: self._insert(tx, job))
        crash_here("j1")
        self.announce(job)
        return job

    async def _enqueue_with(self, block: Together, job: Job) -> Job:
        """The row is written when the block ends. One with the same key is found already, be it
        stored or enqueued in the same block.
        """
        if job.key is not None:
            name = f"job:{job.key}"
            known = block.promised.get(name)
            known = known or await find_job_by_key(self.reader, self.agent_id, job.key)
            if known is not None:
                return _same_name(known, job)
            block.promised[name] = job
        block.add(lambda tx: self._insert_promised(tx, job), lambda: self.announce(job))
        return job

    async def _insert_promised(self, tx: Transaction, job: Job) -> None:
        """The block was given this very job: another one in its place would make that a lie."""
        if (await self._insert(tx, job)).id != job.id:
            raise JobError(
                f"The key {job.key!r} was given to another job while the block was open, so "
                "nothing of the block is stored. Run it again: it then finds that job."
            )

    async def _insert(self, tx: Transaction, job: Job) -> Job:
        known = _same_name(await insert_job(tx, job), job)
        crash_here("j0")
        return known

    async def _cancel(self, job: Job, reason: str) -> bool:
        now = self.clock.now()
        was = await self._write(lambda tx: cancel_job(tx, job.agent_id, job.id, reason, now=now))
        crash_here("j7")
        if was == "waiting":
            self._bus.emit(JobCancelled, **facts_of(job))
        elif was == "running" and (controller := self._running.get(job.id)) is not None:
            controller.abort(reason)
        return was is not None

    async def _revive(self, id: str) -> bool:
        now = self.clock.now()
        revived = await self._write(lambda tx: revive_job(tx, self.agent_id, id, now=now))
        if revived:
            self._new_due(self.agent_id, now)
        return revived

    def keep_awake(self) -> Disposer:
        """The agent does not go to sleep until this is disposed of, which may be done twice."""
        token = object()
        self._kept.add(token)
        return lambda: self._kept.discard(token)

    @property
    def kept_awake(self) -> bool:
        """Whether somebody wants the agent to stay awake."""
        return bool(self._kept)

    # What the runner does

    def announce(self, job: Job) -> None:
        """A job's row is committed: let the runner know."""
        if job.status == "waiting":
            self._new_due(self.agent_id, job.due_at)

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
            if not await self.insist(lambda tx: stash_job(tx, job, stash)):
                raise JobError(f"The attempt of {job.name!r} that stashes this is over.")
            crash_here("j3")

        return JobContext(job, agent=self.agent, signal=controller.signal, keep=keep)


def _same_name(known: Job, job: Job) -> Job:
    """The job that a key stands for. Raises `JobError` if it is another method's."""
    if known.name != job.name:
        raise JobError(
            f"The key {job.key!r} belongs to a job named {known.name!r}. Give "
            f"{job.name!r} another key."
        )
    return known


def checked_json(value: Any) -> Any:
    """As JSON data. Raises `ValueError` for what a row cannot hold."""
    plain = json.to_storable(value)
    size = len(json.dump_bytes(plain))
    if size > LARGEST:
        raise ValueError(f"it has {size:,} bytes, and a row of a job holds {LARGEST:,}")
    return plain


def _stash(name: str, value: Any) -> Any:
    try:
        return checked_json(value)
    except ValueError as error:
        raise JobError(f"What {name!r} stashes cannot be stored: {error}.") from error
