"""The desk behind `agent.jobs`: what the host's runner and its upkeep do with an agent's jobs.

Whatever is committed here is also announced, or told to the handler that runs: a caller that is
cancelled in between must not leave the one without the other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from thinkwell.core import json
from thinkwell.core.bus import EventBus
from thinkwell.core.clock import Clock
from thinkwell.core.errors import JobError
from thinkwell.core.ids import new_id
from thinkwell.core.signal import AbortController, Disposer
from thinkwell.core.tasks import run_to_the_end
from thinkwell.features.jobs.telling import tell_cancelled, tell_created, tell_ended_series
from thinkwell.hooks.jobs import JobContext, JobHandlers
from thinkwell.journal.crash_points import crash_here
from thinkwell.journal.job_ends import end_series, move_up
from thinkwell.journal.jobs import (
    Job,
    JobStatus,
    cancel_job,
    find_job,
    find_job_by_key,
    insert_job,
    revive_job,
    same_job,
    stash_job,
    what_it_does,
    withdraw_job,
)
from thinkwell.journal.joined_writes import Together, open_block
from thinkwell.store.base import Commit, Reader, Transaction

LARGEST = 1_000_000
"""Bytes of a payload or a stash as JSON: it is written while everybody waits."""
NewDue = Callable[[str, float], None]
"""Told, after the commit, whose job waits and when it is due. Contract: returns at once."""


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
        when_born: Callable[[Callable[[], None]], None] = lambda _call: None,
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
        self.when_born = when_born
        """Has something called when an agent that was only looked at gets its row."""
        self.handlers = JobHandlers(agent, built_in)
        """What can run; features add theirs."""
        self.write = write
        """Commits what is asked for now, or says that it cannot."""
        self.bus = bus
        self._new_due = new_due
        self._running: dict[str, AbortController] = {}
        self._kept: set[object] = set()

    # What may be asked for

    async def enqueue(self, job: Job, *, once: bool = False) -> Job:
        """Write a job's row, now or with the block of writes that is open.

        With `once`, a job that does the same for the same person and has not ended is given back
        instead, and nothing is written.
        """
        self.handlers.find(job.name)  # raises `JobError` if it could never run
        if (block := open_block(self.agent_id)) is not None:
            return await self._enqueue_with(block, job, once=once)
        return await run_to_the_end(self._enqueue_now(job, once=once))

    async def cancel(self, id: str, reason: str) -> bool:
        """Cancel a job. False if it has ended, is being cancelled already, or does not exist."""
        job = await find_job(self.reader, self.agent_id, id)
        if job is None:
            return False  # there is nothing to write down, and maybe no agent yet
        return await run_to_the_end(self._cancel(job, reason))

    async def revive(self, id: str) -> bool:
        """An operator wants a failed or cancelled job to be tried again. False if it is neither."""
        return await run_to_the_end(self._revive(id))

    async def end_series(self, id: str) -> bool:
        """A job comes no more: one that waits is cancelled, one that runs ends by itself.

        False if it has ended, is being cancelled already, or does not exist.
        """
        job = await find_job(self.reader, self.agent_id, id)
        if job is None:
            return False
        return await run_to_the_end(self._end_series(job))

    async def withdraw(self, jobs: Sequence[Job]) -> Sequence[Job]:
        """Cancel those of the jobs that have not begun; which they were."""
        return await run_to_the_end(self._withdraw(jobs)) if jobs else ()

    async def run_now(self, id: str) -> Job | None:
        """Have what a job does done now, once, beside its own times. None if there is no job."""
        job = await find_job(self.reader, self.agent_id, id)
        if job is None:
            return None
        now = self.clock.now()
        return await self.enqueue(
            Job(
                agent_id=self.agent_id,
                id=new_id(),
                name=job.name,
                payload=job.payload,
                due_at=now,
                scheduled_for=now,
                kind="delayed",
                max_attempts=job.max_attempts,
                base_delay=job.base_delay,
                max_delay=job.max_delay,
                created_at=now,
                principal=job.principal,
                read_only=job.read_only,
            )
        )

    async def _withdraw(self, jobs: Sequence[Job]) -> Sequence[Job]:
        now = self.clock.now()

        async def withdraw(tx: Transaction) -> tuple[list[Job], float | None]:
            gone = [job for job in jobs if await withdraw_job(tx, job, "withdrawn", now=now)]
            return gone, await move_up(tx, jobs[0], now=now)

        gone, next_in_line = await self.write(withdraw)
        crash_here("s4")
        for job in gone:
            tell_cancelled(self.bus, job)
        self.moved_up(next_in_line)
        return gone

    async def _enqueue_now(self, job: Job, *, once: bool) -> Job:
        written = await self.write(lambda tx: self._insert(tx, job, once=once))
        crash_here("j1")
        self._created(written, job)
        return written

    def _created(self, written: Job, asked: Job) -> None:
        if written.id == asked.id:
            tell_created(self.bus, written)
        self.announce(written)

    async def _enqueue_with(self, block: Together, job: Job, *, once: bool) -> Job:
        """The row is written when the block ends. One that stands for it is found already, be it
        stored or enqueued in the same block.
        """
        if job.key is not None:
            name = f"job:{job.key}"
            known = block.promised.get(name)
            known = known or await find_job_by_key(self.reader, self.agent_id, job.key)
            if known is not None:
                return _same_name(known, job)
            block.promised[name] = job
        if job.kind is not None:  # only what was planned can be asked for `once`
            name = f"same:{what_it_does(job)}"
            if once:
                known = block.promised.get(name) or await same_job(self.reader, job)
                if known is not None:
                    return known
            block.promised.setdefault(name, job)
        block.add(
            lambda tx: self._insert_promised(tx, job, once=once), lambda: self._created(job, job)
        )
        return job

    async def _insert_promised(self, tx: Transaction, job: Job, *, once: bool) -> None:
        """The block was given this very job: another one in its place would make that a lie."""
        if (await self._insert(tx, job, once=once)).id != job.id:
            taken = f"The key {job.key!r} was given to another job"
            if job.key is None:
                taken = f"The same schedule for {job.name!r} was made elsewhere"
            raise JobError(
                f"{taken} while the block was open, so nothing of the block is stored. Run it "
                "again: it then finds that job."
            )

    async def _insert(self, tx: Transaction, job: Job, *, once: bool) -> Job:
        if once and (known := await same_job(tx, job)) is not None:
            return known
        known = _same_name(await insert_job(tx, job), job)
        crash_here("j0")
        return known

    async def _cancel(self, job: Job, reason: str) -> bool:
        now = self.clock.now()
        moved_up: list[float | None] = []

        async def cancel(tx: Transaction) -> JobStatus | None:
            was = await cancel_job(tx, job.agent_id, job.id, reason, now=now)
            moved_up[:] = [await move_up(tx, job, now=now) if was == "waiting" else None]
            return was

        was = await self.write(cancel)
        crash_here("j7")
        if was == "waiting":
            tell_cancelled(self.bus, job)
            self.moved_up(moved_up[0])
        elif was == "running" and (controller := self._running.get(job.id)) is not None:
            controller.abort(reason)
        return was is not None

    async def _end_series(self, job: Job) -> bool:
        if await self.write(lambda tx: end_series(tx, job)):
            crash_here("s3")
            tell_ended_series(self.bus, job)
            return True
        return await self._cancel(job, "cancelled")

    async def _revive(self, id: str) -> bool:
        now = self.clock.now()
        revived = await self.write(lambda tx: revive_job(tx, self.agent_id, id, now=now))
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

    def moved_up(self, waits_since: float | None) -> None:
        """The next one of the queue may begin, if there is one: let the runner know."""
        if waits_since is not None:
            self._new_due(self.agent_id, waits_since)

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
