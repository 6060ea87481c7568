"""The one runner of jobs: wakes agents whose jobs are due and calls the handlers.

It sleeps until the wake index says that something is due; one timer serves all agents. What is due
is read from the index in order, once, a piece at a time: the runner only remembers *whose* jobs are
due. Each such agent is woken and served by one task, which takes its due jobs one after another.
At most so many attempts run at once, over all agents and in one agent, and those that wait for
their place get it in turn: thousands of due jobs neither stop each other nor a live turn.

Hooks that a turn owes since a crash are delivered here too: the turn's row says how often they may
still be tried, so a turn needs no job row.

A job is leased by the life of the process that runs it. Whatever a dead process has left running is
taken up at the next start (`journal/job_ends.py`): there is no other recovery.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractContextManager
from contextvars import Context
from typing import Any, Protocol

from thinkwell.agent.wiring import Shared
from thinkwell.core.errors import (
    AgentParkedError,
    ConfigurationError,
    HostClosedError,
    JobError,
    OwnershipLostError,
    StoreError,
)
from thinkwell.core.events import JobHeld
from thinkwell.core.limits import NO_LIMIT, Limits
from thinkwell.core.tasks import TaskOwner
from thinkwell.features.jobs.desk import JobDesk
from thinkwell.features.jobs.telling import facts_of, tell_ended
from thinkwell.features.schedules.recurring import next_time
from thinkwell.hooks.jobs import JobHandler
from thinkwell.host.due_agents import DueAgents
from thinkwell.host.job_attempt import Attempt, Tools, lease
from thinkwell.host.right_of_way import RightOfWay
from thinkwell.host.suspect_jobs import SuspectJobs
from thinkwell.journal.job_ends import has_leases, move_up, take_up_leases
from thinkwell.journal.jobs import (
    UNREADABLE,
    Job,
    Random,
    due_row,
    fail_unreadable,
    hold_job,
    readable_job,
)
from thinkwell.journal.store_health import Sleep
from thinkwell.journal.turns import agents_owing_hooks
from thinkwell.store.base import Row, Transaction

log = logging.getLogger("thinkwell.jobs")

MOST_SERVED = 64
"""Agents whose due jobs are taken at the same time, if there are fewer places; the others wait in
the index."""
LONGEST_SLEEP = 60.0
"""Seconds: a wall clock that is set, or a machine that was suspended, is noticed after that."""
FIRST_RETRY, LAST_RETRY = 1.0, 60.0
"""Seconds between tries to run the jobs of an agent that cannot run them."""

_ABOUT = {"action": "jobs"}


class Awake(Protocol):
    """An agent that can run jobs."""

    @property
    def desk(self) -> JobDesk:
        """Its jobs."""
        ...

    @property
    def owes_hooks(self) -> bool:
        """Whether turns of an earlier life owe the hooks of their end."""
        ...

    def deliver_owed_hooks(self) -> Coroutine[Any, Any, None]:
        """Run those hooks, turn by turn."""
        ...

    def in_use(self) -> AbstractContextManager[Any]:
        """Keeps it awake."""
        ...


Wake = Callable[[str], Awaitable[Awake | None]]
"""Wakes an agent by its id. None if it is gone, and its jobs with it."""


class JobRunner:
    """Runs the due jobs of all agents of a host."""

    def __init__(
        self,
        shared: Shared,
        *,
        wake: Wake,
        limits: Limits,
        alarm: Sleep = asyncio.sleep,
        random: Random = random.random,
    ) -> None:
        self._store = shared.store
        self._commits = shared.commits
        self._clock = shared.clock
        self._bus = shared.bus
        self._sleep = shared.sleep
        self._alarm = alarm
        self._wake = wake
        self._per_agent = limits.jobs_per_agent or NO_LIMIT
        places = limits.jobs or NO_LIMIT
        self._places = asyncio.Semaphore(places)
        self._agents = DueAgents(shared.store, shared.clock, max(MOST_SERVED, places))
        self._tasks = TaskOwner("jobs")
        self._tools = Tools(
            clock=shared.clock,
            bus=shared.bus,
            random=random,
            next_time=next_time,
            tasks=self._tasks,
        )
        self._boot = 0
        self._running: dict[str, set[asyncio.Task[None]]] = {}
        self._failing: dict[str, float] = {}  # agents that cannot run jobs, and the next pause
        self._warned: set[str] = set()
        self._suspects = SuspectJobs(
            shared.clock, sleep=shared.sleep, tasks=self._tasks, call=self._serve_soon
        )
        self._right_of_way = RightOfWay(shared.crowd, shared.clock)
        self._news = asyncio.Event()
        self._paused = shared.paused
        self._stopping = False

    def start(self, boot: int) -> None:
        """Take up what a process that is gone has left running; then run what is due."""
        self._boot = boot
        self._suspects.start()
        self._tasks.spawn(self._run(), name="runner", context=Context())

    async def drain(self, within: float) -> None:
        """Begin nothing more; let what runs end for a while."""
        self._stopping = True
        running = [task for tasks in self._running.values() for task in tasks]
        if running:
            await asyncio.wait(running, timeout=within)

    async def ended(self, agent_id: str, within: float) -> None:
        """Until no handler of an agent runs any more, or so many seconds."""
        if running := self._running.get(agent_id):
            await asyncio.wait(running, timeout=within)

    async def close(self, within: float) -> None:
        """Cut off what still runs: its rows stay leased to this life of the process."""
        self._stopping = True
        await self._tasks.close(within)

    @property
    def busy(self) -> bool:
        """Whether an attempt runs."""
        return any(self._running.values())

    def new_due(self, agent_id: str, due_at: float) -> None:
        """A job of this agent waits until then. Called after the commit that says so."""
        self._agents.add_at(agent_id, due_at)
        self._news.set()

    def woken(self, agent_id: str) -> None:
        """An agent is awake. One whose jobs could not be run is tried at once."""
        if agent_id in self._failing:
            self._serve_soon(agent_id)

    def _serve_soon(self, agent_id: str) -> None:
        self._agents.add(agent_id)
        self._news.set()

    # Whose jobs are due

    async def _run(self) -> None:
        try:
            await self._take_up()
            for agent_id in await agents_owing_hooks(self._store):
                self._agents.add(agent_id)
        except StoreError:  # damage: what was left running stays so, the others run
            log.critical("what was left cannot be read", exc_info=True, extra=_ABOUT)
        while not self._stopping:
            # A store may answer without suspending: whatever happens, others have their go.
            await asyncio.sleep(0)
            self._news.clear()
            try:
                at = await self._look()
            except StoreError:
                log.exception("due jobs cannot be read", extra=_ABOUT)
                at = self._clock.now() + LAST_RETRY
            if at is None or at > self._clock.now():
                await self._wait(at)

    async def _take_up(self) -> None:
        """Decide about the jobs that a process which is gone has begun."""
        if not await has_leases(self._store):
            return
        boot, now, random = self._boot, self._clock.now(), self._tools.random
        ended = await self._commits.insist(
            None,
            lambda tx: take_up_leases(tx, boot, now=now, random=random, next_time=next_time),
        )
        for job in ended:
            about = {"agent": job.agent_id, "job": job.id}
            log.error("job %s ended %s: %s", job.name, job.status, job.error, extra=about)
            tell_ended(self._bus, job, job.status, job.error)

    async def _look(self) -> float | None:
        """Serve the agents whose jobs are due. When the next one is; None if none is."""
        for agent_id in await self._agents.take():
            self._tasks.spawn(self._serve(agent_id), name=agent_id)
        return await self._agents.next_at()

    async def _wait(self, at: float | None) -> None:
        """Until there is news, or it is that time."""
        timer = None if at is None else self._tasks.spawn(self._ring(at), name="timer")
        await self._news.wait()
        if timer is not None:
            timer.cancel()

    async def _ring(self, at: float) -> None:
        seconds = at - self._clock.now()  # now: it may have become due before this task began
        if seconds > 0:
            await self._alarm(min(seconds, LONGEST_SLEEP))
        self._news.set()

    # One agent

    async def _serve(self, agent_id: str) -> None:
        """Wake an agent and take its due jobs, until none is left.

        The index has been read past them: however this fails, the agent is tried again.
        """
        try:
            # A paused agent is looked for again when it is resumed.
            awake = None if agent_id in self._paused else await self._wake(agent_id)
            if awake is not None:
                await self._take_all(agent_id, awake)
            self._failing.pop(agent_id, None)
        except HostClosedError:
            pass  # the app stops: the next start finds them due
        except (ConfigurationError, AgentParkedError) as error:
            self._warn_once(agent_id, f"due jobs wait: {error}")
            self._try_later(agent_id, LAST_RETRY)  # it needs somebody who does something about it
        except OwnershipLostError:
            log.warning("another host runs the jobs of an agent", extra={"agent": agent_id})
            self._try_later(agent_id)
        except Exception:
            log.exception("the jobs of an agent cannot be run", extra={"agent": agent_id})
            self._try_later(agent_id)
        finally:
            self._agents.done(agent_id)
            self._forget_if_idle(agent_id)
            self._suspects.call_next()
            self._news.set()

    async def _take_all(self, agent_id: str, awake: Awake) -> None:
        with awake.in_use():
            if awake.owes_hooks:
                await self._places.acquire()
                self._run_apart(agent_id, awake, awake.deliver_owed_hooks())
            while not self._stopping and agent_id not in self._paused:
                if not await self._take(agent_id, awake):
                    break

    def _try_later(self, agent_id: str, first: float = FIRST_RETRY) -> None:
        """Meanwhile it gives up its place: it must not keep the others waiting."""
        delay = self._failing.get(agent_id, first)
        self._failing[agent_id] = min(delay * 2, LAST_RETRY)
        self._tasks.spawn(self._try_again(agent_id, delay), name="again")

    async def _try_again(self, agent_id: str, delay: float) -> None:
        await self._sleep(delay)
        self._serve_soon(agent_id)

    async def _take(self, agent_id: str, awake: Awake) -> bool:
        """Begin the next due job of an agent when there is a place for it. False if none is due."""
        running = self._running.setdefault(agent_id, set())
        while len(running) >= self._per_agent:
            await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        row = await self._next_row(agent_id)
        if row is None:
            return False
        ready = await self._ready(row, awake.desk)
        # Another agent's suspect may have begun meanwhile: then the next look leaves this one out.
        if ready is not None and not (ready[0].deaths and self._suspects.must_wait):
            await self._begin(awake, *ready)
        return True

    async def _next_row(self, agent_id: str) -> Row | None:
        """What an agent may begin now. A suspect that has to wait holds up nothing else of it."""
        now = self._clock.now()
        if not self._suspects.must_wait:
            return await due_row(self._store, agent_id, now)
        row = await due_row(self._store, agent_id, now, innocent=True)
        if row is None and await due_row(self._store, agent_id, now) is not None:
            self._suspects.set_aside(agent_id)
        return row

    async def _ready(self, row: Row, desk: JobDesk) -> tuple[Job, JobHandler] | None:
        """The job and its handler; None if it cannot run, which is stored then."""
        job = readable_job(row)
        if job is None:
            await self._fail_unreadable(row, desk)
            return None
        try:
            return job, desk.handlers.find(job.name)
        except JobError as error:
            await self._hold(job, desk, str(error))
            return None

    async def _fail_unreadable(self, row: Row, desk: JobDesk) -> None:
        now = self._clock.now()

        async def fail(tx: Transaction) -> tuple[Job, float | None] | None:
            failed = await fail_unreadable(tx, row, now=now)
            return None if failed is None else (failed, await move_up(tx, failed, now=now))

        if (failed := await desk.insist(fail)) is not None:
            tell_ended(self._bus, failed[0], "failed", UNREADABLE)
            desk.moved_up(failed[1])

    async def _begin(self, awake: Awake, job: Job, handler: JobHandler) -> None:
        """Lease a job and run it beside the others."""
        alone = self._suspects.take_place(job)
        await self._places.acquire()  # first come, first served: agents take turns here
        leased = None
        try:
            await self._right_of_way.give_way()
            if not self._stopping:
                now = self._clock.now()
                leased = await lease(awake.desk, job, boot=self._boot, now=now)
        finally:
            if leased is None:
                self._leave(alone=alone)  # it was cancelled, or the host stops
        if leased is not None:
            attempt = Attempt(leased, awake.desk, handler, tools=self._tools)
            self._run_apart(job.agent_id, awake, attempt.run(), alone=alone)

    def _run_apart(
        self, agent_id: str, awake: Awake, work: Coroutine[Any, Any, None], *, alone: bool = False
    ) -> None:
        """Run something in an agent, awake until it ends, on a place that is free again then."""
        running = self._running.setdefault(agent_id, set())

        async def in_use() -> None:
            with awake.in_use():
                await work

        # In a context of its own: it does not belong to whatever enqueued it.
        task = self._tasks.spawn(in_use(), name=agent_id, context=Context())
        running.add(task)

        def ended(_: asyncio.Task[None]) -> None:
            work.close()  # if it was cancelled before it began
            running.discard(task)
            self._forget_if_idle(agent_id)
            self._leave(alone=alone)

        task.add_done_callback(ended)

    def _leave(self, *, alone: bool) -> None:
        self._places.release()
        if alone:
            self._suspects.leave()

    def _forget_if_idle(self, agent_id: str) -> None:
        """Nothing is remembered of an agent that neither runs nor has due jobs."""
        if not self._agents.is_served(agent_id) and not self._running.get(agent_id):
            self._running.pop(agent_id, None)

    async def _hold(self, job: Job, desk: JobDesk, reason: str) -> None:
        """No handler has its name: it waits for a process that has one."""
        self._warn_once(f"{job.agent_id.partition('/')[0]}:{job.name}", f"a job is held: {reason}")

        async def hold(tx: Transaction) -> tuple[bool, float | None]:
            held = await hold_job(tx, job, reason)
            # It must not stop its whole queue.
            return held, await move_up(tx, job, now=self._clock.now())

        held, next_in_line = await desk.insist(hold)
        if held:  # else it was cancelled
            self._bus.emit(JobHeld, **facts_of(job), reason=reason)
        desk.moved_up(next_in_line)

    def _warn_once(self, about: str, text: str) -> None:
        if about not in self._warned:
            self._warned.add(about)
            log.warning(text, extra=_ABOUT)
