"""The host: which agents are awake in this process.

Starting it opens the store and wakes every agent with unfinished work, so an accepted message is
answered without anybody asking again. Agents wake on first use, once, whoever asks at the same
time, and sleep again when nobody needs them: an idle agent costs no memory.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from thinkwell.agent.definition import check_served
from thinkwell.agent.instance import Instance
from thinkwell.agent.wiring import Activation, Shared, wake
from thinkwell.core.budgets import Budget
from thinkwell.core.bus import EventBus
from thinkwell.core.clock import Clock, SystemClock
from thinkwell.core.errors import (
    ConfigurationError,
    HostClosedError,
    StoreError,
    StoreUnavailableError,
)
from thinkwell.core.events import (
    AgentActivated,
    AgentDamaged,
    AgentParked,
    AgentPassivated,
    HostBooted,
    HostDraining,
    ToolQueued,
)
from thinkwell.core.limits import Limits
from thinkwell.core.retention import Retention
from thinkwell.core.tasks import TaskOwner, report_failure
from thinkwell.core.threads import MOST_PER_OWNER, MOST_THREADS, ThreadPool
from thinkwell.hooks.feature import Feature
from thinkwell.hooks.seats import features_of
from thinkwell.host.client import AgentAddress
from thinkwell.host.deletions import Deletions
from thinkwell.host.erasure import HOST, Erasure, digest_of
from thinkwell.host.figures import figures_of
from thinkwell.host.forking import Forks
from thinkwell.host.imports import import_agent
from thinkwell.host.job_runner import Awake as JobsAwake
from thinkwell.host.job_runner import JobRunner
from thinkwell.host.lives import agents_to_wake, begin_life
from thinkwell.host.local import LocalHostClient
from thinkwell.host.operators import Operators
from thinkwell.host.priced import check_priced
from thinkwell.host.served_classes import classes_by_name
from thinkwell.host.starts import Starts
from thinkwell.host.stub import AgentStub
from thinkwell.host.upkeep import Upkeep
from thinkwell.journal.boots import (
    SOON,
    mark_steady,
    mark_stopped,
)
from thinkwell.journal.store_health import Sleep
from thinkwell.journal.turns import has_work
from thinkwell.models.gate import ModelGate
from thinkwell.models.limits import ModelLimits
from thinkwell.models.prices import Price, PriceBook
from thinkwell.store.base import Store
from thinkwell.store.deleting import has_rows
from thinkwell.store.ownership import claim_if_there
from thinkwell.store.transfer import stage_file
from thinkwell.turn.ask.policy import Crowd

log = logging.getLogger("thinkwell.host")

DRAIN_TIMEOUT = 10.0
"""Seconds a stop may take: turns get most of them, the rest is for what ignores a cancel."""
CLOSING_SHARE, MOST_CLOSING = 0.3, 3.0
"""How much of a stop is kept for closing once turns had their time: a share, at most so much."""
IDLE_TIMEOUT = 300.0
"""Seconds after its last use until an agent with no client and no work goes to sleep."""
FIRST_RETRY, LAST_RETRY = 1.0, 60.0
"""Seconds between tries to wake an agent whose start fails."""
STARTS_AT_ONCE = 8
"""Agents with unfinished work that are woken at the same time after a start: each reads the store
and runs code of the app. Whoever asks for an agent now does not wait for them."""
LONGEST_START = 5.0
"""Seconds after which the next agent is woken although one has not started yet."""
LONGEST_REST = 10.0
"""Seconds an erasure waits at a time for the turn that runs in an agent."""
STORE_LOOK = 2.0
"""Seconds between two looks whether the database file is still the one that was opened."""

_START = {"action": "start"}


class Host(Forks):
    """Keeps agents awake on one store.

    With an `instance`, an agent that was made before, that one and no other: another agent of its
    class may have been made with other tools, hooks and scopes, and its work is not ours to do.
    """

    _running = False
    draining = False
    """Whether a stop has begun: nobody should send work here any more."""

    def __init__(
        self,
        agents: Sequence[type],
        store: Store,
        *,
        clock: Clock | None = None,
        bus: EventBus | None = None,
        drain_timeout: float = DRAIN_TIMEOUT,
        idle_timeout: float = IDLE_TIMEOUT,
        tool_threads: int = MOST_THREADS,
        tool_threads_per_agent: int = MOST_PER_OWNER,
        limits: Limits | None = None,
        model_limits: Mapping[str, ModelLimits] | None = None,
        retention: Retention | None = None,
        features: Sequence[Feature] = (),
        version: str | None = None,
        prices: Mapping[str, Price] | None = None,
        budgets: Sequence[Budget] = (),
        instance: Instance | None = None,
        sleep: Sleep = asyncio.sleep,  # before it tries something again
        alarm: Sleep = asyncio.sleep,  # until the next job is due
        lasted: Sleep = asyncio.sleep,  # until this life of the process counts as steady
    ) -> None:
        self._instance, self._store, self._starts = instance, store, Starts(store)
        self._classes, self.bus = classes_by_name(agents), bus or EventBus()
        self.threads = ThreadPool(
            tool_threads, per_owner=tool_threads_per_agent, on_queued=self._report_queued
        )
        """Where sync tools run."""
        shared = Shared(store, clock or SystemClock(), self.bus, threads=self.threads, sleep=sleep)
        self._shared, shared.gate = shared, ModelGate.of(model_limits, shared.clock)
        shared.models.prices, shared.budgets = PriceBook(prices), tuple(budgets)
        shared.crowd, limits = Crowd(limits), limits or Limits()
        self._jobs = JobRunner(shared, wake=self._with_due_jobs, limits=limits, alarm=alarm)
        self._shared.new_due_job = self._jobs.new_due
        shared.features, shared.app_version, shared.agents = tuple(features), version, self._stub
        for cls in self._classes.values():
            check_served(cls, features_of(cls, features))  # not when the first agent wakes
            check_priced(cls, budgets, prices or {})
        self._upkeep = Upkeep(shared, retention, self._new_erasure(), served=self._classes)
        self.operators = Operators(self._shared, self._go_on)
        """What operators do to it."""
        self._drain_timeout, self._idle_timeout = drain_timeout, idle_timeout
        self._sleep, self._lasted, self._waking = sleep, lasted, asyncio.Semaphore(STARTS_AT_ONCE)
        self._awake: dict[str, asyncio.Task[Activation]] = {}
        self._last_used: dict[str, float] = {}
        self._tasks = TaskOwner("host")
        self.figures = partial(figures_of, self._shared, self._activations)
        self._deleting: dict[str, asyncio.Task[None]] = {}
        self._deletions = Deletions(self._shared, self._tasks, self._forget)

    async def start(self) -> None:
        """Open the store and wake every agent with unfinished work.

        A start that fails leaves nothing behind: neither the lock of the file nor a task.
        """
        await self._store.open()
        self._running = True
        try:
            await self._start()
        except BaseException:
            await self.stop(0.0)
            raise

    async def _start(self) -> None:
        await self._begin_boot()
        await self.operators.start()
        self._tasks.spawn(self._watch_idle(), name="idle")
        self._tasks.spawn(self._watch_store(), name="store")
        await self._upkeep.ensure()
        await self._deletions.take_up()
        busy = self._starts.in_order(await agents_to_wake(self._store, self.bus))
        for agent_id in busy:
            self._take_up_work(agent_id)
        boot, clean = self._shared.boot, self._starts.clean
        self.bus.emit(HostBooted, boot_id=boot, clean=clean, agents_woken=len(busy))
        self._jobs.start(boot)

    def _go_on(self, agent_id: str) -> None:
        """An agent is not paused any more: its turns and jobs are looked for."""
        self._jobs.new_due(agent_id, self._shared.clock.now())
        self._take_up_work(agent_id)

    def _take_up_work(self, agent_id: str) -> None:
        if agent_id in self._deletions or agent_id in self._shared.paused:
            return  # a paused one wakes when somebody asks for it, or when it is resumed
        class_name, _, name = agent_id.partition("/")
        about = {"action": "start", "agent": agent_id}
        parked = self._starts.parked(agent_id)
        if not self._serves(AgentAddress(class_name, name)):
            log.warning("an agent has unfinished work, but is not served here", extra=about)
        elif parked is not None:
            log.error("an agent stays asleep, its turns are parked: %s", parked, extra=about)
            self.bus.emit(AgentParked, agent=agent_id, reason=parked)
        else:
            address = AgentAddress(class_name, name)
            self._tasks.spawn(self._wake_until_awake(address), name=f"wake:{address.id}")

    async def stop(self, within: float | None = None) -> None:
        """Let running turns end for a while, then stop, all of it in `within` seconds.

        What is unsettled goes on at the next start; what ignores its cancel is left behind.
        """
        if not self._running:
            return
        self._running = False
        within = self._drain_timeout if within is None else max(within, 0.0)
        closing = min(CLOSING_SHARE * within, MOST_CLOSING)
        self._close_gate()
        await self.plan_the_end()
        await asyncio.gather(
            self._drain(self._activations(), within - closing),
            self._jobs.drain(within - closing),
        )
        awake = self._activations()
        await asyncio.gather(self._tasks.close(closing / 3), self._jobs.close(closing / 3))
        stops = [self._tasks.spawn(a.stop(closing / 3), name="stop") for a in awake]
        if stops:
            await asyncio.wait(stops, timeout=closing / 2)
        await self._shared.commits.close()
        await self._shared.models.aclose()
        await self._store.close()
        self._awake.clear()
        self._last_used.clear()

    async def drain(self, within: float) -> None:
        """Begin nothing more and let what runs end, for so many seconds. Clients stay connected.

        What they ask meanwhile is accepted, and begins at the next start.
        """
        self.draining = self._shared.draining = True
        self._close_gate()
        self.bus.emit(HostDraining)
        await self.plan_the_end()  # first: whoever loses patience and kills us has planned it too
        for turns in list(self._shared.turns.values()):  # also of agents that are just starting
            turns.line.held_by.add("draining")
        await asyncio.gather(
            self._drain(self._activations(), within),
            self._jobs.drain(within),
        )

    def _close_gate(self) -> None:
        """A model call that has waited until now begins after the restart: it would only be cut."""
        if self._shared.gate is not None:
            self._shared.gate.close()

    def status(self) -> dict[str, Any]:
        """What is awake here."""
        awake = self._activations()
        return {"awake": len(awake), "busy": sum(activation.busy for activation in awake)}

    def client(self) -> LocalHostClient:
        """The way in for an edge in the same process."""
        return LocalHostClient(self, frozenset(self._classes), self._store)

    async def delete(self, address: AgentAddress) -> bool:
        """Delete an agent with all it has stored. False if there is nothing of it.

        It goes on whatever happens to the caller, and after a crash at the next start.
        """
        self._check_served(address)
        if address.id not in self._deleting:
            if not await has_rows(self._store, address.id):
                return False
            if address.id not in self._deleting:  # nobody came meanwhile
                task = self._tasks.spawn(self._delete(address), name=f"delete:{address.id}")
                self._deleting[address.id] = task
        await asyncio.shield(self._deleting[address.id])
        return True

    async def _delete(self, address: AgentAddress) -> None:
        try:
            if address.id not in self._deletions:  # nor did a process that died delete it
                await self._close_for_good(address)
            await self._deletions.remove(address.id)
        finally:
            del self._deleting[address.id]

    async def _close_for_good(self, address: AgentAddress) -> None:
        """Let an agent that is deleted end what it does. One that cannot start has nothing to."""
        try:
            activation = await self.agent(address, create=False)
        except (HostClosedError, StoreUnavailableError):
            raise
        except Exception as error:  # noqa: BLE001 - it is deleted because of that, as likely as not
            about = {"action": "delete", "agent": address.id}
            log.warning("deleted without being started: %s", error, extra=about)
        else:
            with activation.in_use():
                await activation.delete(partial(self._jobs.ended, address.id))
        # From here on a call finds `_deletions` and waits there, then wakes a new one.
        self._awake.pop(address.id, None)
        self._last_used.pop(address.id, None)

    async def erase(self, principal_id: str) -> None:
        """Erase a person from every agent. It goes on whatever happens to the caller."""
        await self._upkeep.erase(digest_of(principal_id))

    def _new_erasure(self) -> Erasure:
        self._held: dict[str, asyncio.Future[None]] = {}
        commits = self._shared.commits
        return Erasure(
            self._store,
            partial(commits.insist, None),
            asleep=self._asleep,
            delete=self._delete_whole,
            forget_blobs=commits.forget_blobs,
            index=self._shared.search,
        )

    async def _delete_whole(self, agent_id: str) -> None:
        address = AgentAddress.of(agent_id)
        if self._serves(address):
            await self.delete(address)
        else:  # nobody runs it here
            await self._deletions.remove(agent_id)

    @asynccontextmanager
    async def _asleep(self, agent_id: str, principal_id: str) -> AsyncGenerator[bool]:
        """Nobody runs the agent while the block does; whoever asks for it waits. False if it has
        work of somebody else, or is held already: another person is being erased from it.
        """
        waking = self._awake.get(agent_id)
        activation = await self._if_awake(agent_id)
        if activation is not None and not await self._rests(activation, principal_id):
            yield False
            return
        if agent_id in self._held or self._awake.get(agent_id) is not waking:
            if activation is not None:
                activation.release_turns()
            yield False  # it was put to sleep or woken meanwhile: what we know of it is old
            return
        async with self._hold(agent_id):
            if activation is not None:
                await activation.restart()
            address, now = AgentAddress.of(agent_id), self._shared.clock.now()
            # Whoever was left behind and still writes for it is refused from here on.
            named = {"cls": address.class_name, "name": address.name}
            await claim_if_there(self._store, agent_id, **named, now=now)
            yield True
        self._jobs.new_due(agent_id, self._shared.clock.now())  # the next one of its queue
        if await has_work(self._store, agent_id):
            self._take_up_work(agent_id)

    async def _rests(self, activation: Activation, principal_id: str) -> bool:
        """Have an agent come to rest for an erasure: no other turn begins, and the one that runs
        has a while to end. If it does not, turns begin again until the next try.
        """
        activation.hold_turns()
        rests = False
        try:
            await activation.end_work_of(principal_id, self._store)
            with suppress(TimeoutError):
                async with asyncio.timeout(LONGEST_REST):
                    await activation.wait_until_still()
            rests = activation.at_rest
        finally:
            if not rests:
                activation.release_turns()
        return rests

    async def _if_awake(self, agent_id: str) -> Activation | None:
        task = self._awake.get(agent_id)
        try:
            return None if task is None else await asyncio.shield(task)
        except Exception:  # noqa: BLE001 - told to whoever asked for it
            return None

    @asynccontextmanager
    async def _hold(self, agent_id: str) -> AsyncGenerator[None]:
        """Keep an agent from being woken. Only for one that nobody holds."""
        self._awake.pop(agent_id, None)
        self._last_used.pop(agent_id, None)
        free = self._held[agent_id] = asyncio.get_running_loop().create_future()
        try:
            yield
        finally:
            self._held.pop(agent_id, None)
            free.set_result(None)  # whatever happened: who waits for it must not wait for ever

    async def import_agent(self, source: Path, agent_id: str | None) -> tuple[str, int]:
        """Take in an agent from an export: its id and how many rows it has."""
        staged = await asyncio.to_thread(stage_file, source)
        try:
            address = AgentAddress.of(agent_id or staged.about)
            self._check_served(address)
            if address.id in self._held or address.id in self._deletions:
                raise StoreError(f"The agent {address.id} is just being deleted or imported.")
            async with self._hold(address.id):
                commit = partial(self._shared.commits.insist, None)
                now = self._shared.clock.now()
                remove = self._deletions.remove_marked
                count = await import_agent(commit, staged, address.id, now=now, remove=remove)
        finally:
            staged.close()
        if await has_work(self._store, address.id):
            self._take_up_work(address.id)
        self._jobs.new_due(address.id, self._shared.clock.now())
        return address.id, count

    def _forget(self, agent_id: str) -> None:
        """The next agent of that name has a start of its own, and nobody has paused it."""
        self._starts.forget(agent_id)
        self._shared.paused.pop(agent_id, None)

    def _stub(self, cls: type | str, name: str) -> AgentStub:
        """Another agent of this host, for a feature."""
        class_name: str = cls if isinstance(cls, str) else getattr(cls, "agent_class", cls.__name__)
        address = AgentAddress(class_name, name)
        self._check_served(address)
        served = self._classes[class_name]
        names = [feature.name for feature in features_of(served, self._shared.features)]
        return AgentStub(served, address, self.client, features=names)

    def not_ready(self) -> str | None:
        """Why no work is accepted now, in a word that strangers may read; None if it is."""
        if not self._running:
            return "stopping"
        if self.draining:
            return "draining"
        self._look_at_store()
        return None if self._shared.commits.health.problem is None else "store"

    async def agent(self, address: AgentAddress, *, create: bool = True) -> Activation:
        """The agent, awake. Unless `create`, one that has no row gets it with its first write."""
        if not self._running:
            raise HostClosedError(
                "The app is not running. Use `async with app:` or serve it before calling agents."
            )
        return await self._woken(self._activate(address, create=create))

    async def _woken(self, waking: asyncio.Task[Activation]) -> Activation:
        """Whoever waits hears how a start failed, and says so; it is logged if they have left."""
        try:
            return await asyncio.shield(waking)
        except asyncio.CancelledError:
            waking.add_done_callback(report_failure)
            raise

    async def _wake_until_awake(self, address: AgentAddress) -> None:
        """An agent with unfinished work whose start fails is tried again: its turns must end."""
        delay = FIRST_RETRY
        while self._running:
            try:
                if not await self._is_there(address):
                    return  # it was deleted instead
                async with self._waking:  # for the start itself, and not for one that hangs
                    waking = self._activate(address, create=False)
                    await asyncio.wait([waking], timeout=LONGEST_START)
                await self._woken(waking)
                return
            except Exception as error:
                log.exception("an agent could not be woken", extra={"agent": address.id})
                if delay == FIRST_RETRY and _is_damage(error):
                    self.bus.emit(AgentDamaged, agent=address.id, error=error)
            await self._sleep(delay)
            delay = min(delay * 2, LAST_RETRY)

    async def put_to_sleep(self) -> None:
        """Let agents sleep that nobody has used for a while; their next use wakes them."""
        now = self._shared.clock.monotonic()
        for agent_id, task in list(self._awake.items()):
            if not _is_awake(task) or not (activation := task.result()).idle:
                self._last_used[agent_id] = now
            elif now - self._last_used[agent_id] >= self._idle_timeout:
                del self._awake[agent_id], self._last_used[agent_id]  # first: a call wakes it anew
                await activation.stop()
                self.bus.emit(AgentPassivated, agent=agent_id)

    async def _watch_idle(self) -> None:
        while True:
            await asyncio.sleep(self._idle_timeout / 2)
            await self.put_to_sleep()

    async def _watch_store(self) -> None:
        """A database that was deleted or replaced is noticed although nobody writes."""
        while True:
            await asyncio.sleep(STORE_LOOK)
            self._look_at_store()

    def _look_at_store(self) -> None:
        try:
            self._store.check()
        except StoreUnavailableError as error:
            self._shared.commits.health.failed(error)

    def _activate(self, address: AgentAddress, *, create: bool = True) -> asyncio.Task[Activation]:
        self._last_used[address.id] = self._shared.clock.monotonic()
        task = self._awake.get(address.id)
        if task is None or (task.done() and not _is_awake(task)):
            self._check_served(address)
            self._starts.check(address.id)
            waking = self._wake(address, create=create)
            task = self._tasks.spawn(waking, name=address.id, awaited=True)
            self._awake[address.id] = task
        return task

    def _check_served(self, address: AgentAddress) -> None:
        if not self._serves(address):
            raise ConfigurationError(
                f"No agent class is named {address.class_name!r}. Served: "
                f"{', '.join(sorted(self._classes))}."
            )

    def _serves(self, address: AgentAddress) -> bool:
        only = self._instance
        return address.class_name in self._classes and (
            only is None or address.name == only.agent.name
        )

    async def _wake(self, address: AgentAddress, *, create: bool) -> Activation:
        cls = self._classes[address.class_name]
        while (held := self._held.get(address.id)) is not None:
            await asyncio.shield(held)
        if address.id in self._deletions:
            await self._deletions.remove(address.id)  # what was there before is no part of it
        async with self._starts.watched(address.id):
            awake = await wake(cls, address.name, self._shared, self._instance, create=create)
        self._jobs.woken(address.id)
        self.bus.emit(AgentActivated, agent=address.id)
        return awake

    async def with_jobs(self, agent_id: str) -> JobsAwake:
        """An agent by its id, awake, or the host itself, whose upkeep is a job too."""
        if agent_id == HOST:
            return self._upkeep
        # One that has jobs has a row; one that was deleted meanwhile must not get one.
        return await self.agent(AgentAddress.of(agent_id), create=False)

    async def _with_due_jobs(self, agent_id: str) -> JobsAwake | None:
        """The same; None if the agent was deleted: its start may fail, and it has no jobs now."""
        if agent_id != HOST and not await self._is_there(AgentAddress.of(agent_id)):
            return None
        return await self.with_jobs(agent_id)

    async def _is_there(self, address: AgentAddress) -> bool:
        return await self._store.fetch_one("agent_epoch", {"id": address.id}) is not None

    def start_again(self, address: AgentAddress) -> bool:
        """Somebody has mended the start that killed the process. False if it is not parked."""
        return self._starts.allow(address.id)

    def _report_queued(self, agent_id: str, waiting: int) -> None:
        self.bus.emit(ToolQueued, agent=agent_id, waiting=waiting)

    def _activations(self) -> list[Activation]:
        return [task.result() for task in self._awake.values() if _is_awake(task)]

    async def _drain(self, awake: Sequence[Activation], seconds: float) -> None:
        idle = [
            self._tasks.spawn(a.wait_until_still(), name="drain")
            for a in awake
            if a.busy and not a.stands_still
        ]
        if idle:
            _, late = await asyncio.wait(idle, timeout=seconds)
            for task in late:
                task.cancel()

    async def _begin_boot(self) -> None:
        self._starts = await begin_life(self._store, self._shared)
        self._tasks.spawn(self._last(), name="steady")

    async def _last(self) -> None:
        await self._lasted(SOON)
        # However long the store takes: a life that is not marked counts as one that died soon.
        await self._shared.commits.insist(None, lambda tx: mark_steady(tx, self._shared.boot))

    async def plan_the_end(self) -> None:
        """Write down that the end of this process is asked for: it is no death then."""
        try:
            await mark_stopped(self._store, self._shared.boot, self._shared.clock.now())
        except StoreError:  # a store that is gone keeps nothing: the stop goes on
            log.exception("the stop could not be written down", extra={"action": "stop"})


def _is_damage(error: Exception) -> bool:
    """Whether it says that what is stored cannot be read, not that the store does not work."""
    return isinstance(error, StoreError) and not isinstance(error, StoreUnavailableError)


def _is_awake(task: asyncio.Task[Activation]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is None
