"""The host: which agents are awake in this process.

Starting it opens the store and wakes every agent with unfinished work, so an accepted message is
answered without anybody asking again. Agents wake on first use, once, whoever asks at the same
time, and sleep again when nobody needs them: an idle agent costs no memory.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from thinkwell.agent.agent import Agent
from thinkwell.agent.wiring import Activation, Surroundings, wake
from thinkwell.core.bus import EventBus
from thinkwell.core.clock import Clock, SystemClock
from thinkwell.core.errors import ConfigurationError, HostClosedError, StoreError
from thinkwell.core.tasks import TaskOwner
from thinkwell.core.threads import MOST_PER_OWNER, MOST_THREADS, ThreadPool
from thinkwell.host.client import AgentAddress
from thinkwell.host.local import LocalHostClient
from thinkwell.journal.boots import (
    SOON,
    begin_boot,
    mark_steady,
    mark_stopped,
    suspects_of,
)
from thinkwell.journal.turns import agents_with_work
from thinkwell.store.base import Store
from thinkwell.turn.suspects import Suspects

log = logging.getLogger("thinkwell.host")

DRAIN_TIMEOUT = 5.0
"""Seconds running turns get to end when the host stops; then they are left for the next start."""
IDLE_TIMEOUT = 300.0
"""Seconds after its last use until an agent with no client and no work goes to sleep."""
FIRST_RETRY, LAST_RETRY = 1.0, 60.0
"""Seconds between tries to wake an agent whose start fails."""
JOURNAL_RETENTION = 7 * 24 * 3600.0
"""Seconds the streams of ended turns are kept."""


class Host:
    """Keeps agents awake on one store."""

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
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._classes = _by_name(agents)
        self._store = store
        self.bus = bus or EventBus()
        self.threads = ThreadPool(
            tool_threads, per_owner=tool_threads_per_agent, on_queued=self._tell_queued
        )
        """Where sync tools run."""
        self._around = Surroundings(store, clock or SystemClock(), self.bus, self.threads)
        self._drain_timeout = drain_timeout
        self._idle_timeout = idle_timeout
        self._sleep = sleep
        self._awake: dict[str, asyncio.Task[Activation]] = {}
        self._last_used: dict[str, float] = {}
        self._tasks = TaskOwner("host")
        self._running = False

    async def start(self) -> None:
        """Open the store and wake every agent with unfinished work."""
        await self._store.open()
        self._running = True
        await self._begin_boot()
        self._tasks.spawn(self._watch_idle(), name="idle")
        await self._drop_old_journals()
        for agent_id in await agents_with_work(self._store):
            class_name, _, name = agent_id.partition("/")
            if class_name in self._classes:
                address = AgentAddress(class_name, name)
                self._tasks.spawn(self._wake_until_awake(address), name=f"wake:{address.id}")
            else:
                log.warning(
                    "an agent has unfinished work, but its class is not served",
                    extra={"action": "start", "agent": agent_id},
                )

    async def stop(self) -> None:
        """Let running turns end for a while, then stop.

        What is unsettled goes on at the next start.
        """
        if not self._running:
            return
        self._running = False
        await self._plan_the_end()
        await self._drain(self._activations())
        await self._tasks.close()  # nobody wakes any more
        for activation in self._activations():
            await activation.stop()
        await self._around.commits.close()
        await self._around.models.aclose()
        await self._store.close()
        self._awake.clear()
        self._last_used.clear()

    def client(self) -> LocalHostClient:
        """The way in for an edge in the same process."""
        return LocalHostClient(self.agent, frozenset(self._classes), self._store)

    async def agent(self, address: AgentAddress) -> Activation:
        """The agent, awake."""
        if not self._running:
            raise HostClosedError(
                "The app is not running. Use `async with app:` or serve it before calling agents."
            )
        return await asyncio.shield(self._activate(address))

    async def _wake_until_awake(self, address: AgentAddress) -> None:
        """An agent with unfinished work whose start fails is tried again: its turns must end."""
        delay = FIRST_RETRY
        while self._running:
            try:
                await asyncio.shield(self._activate(address))
                return
            except Exception:
                log.exception("an agent could not be woken", extra={"agent": address.id})
            await self._sleep(delay)
            delay = min(delay * 2, LAST_RETRY)

    async def put_to_sleep(self) -> None:
        """Let agents sleep that nobody has used for a while; their next use wakes them."""
        now = self._around.clock.monotonic()
        for agent_id, task in list(self._awake.items()):
            if not _is_awake(task) or not (activation := task.result()).idle:
                self._last_used[agent_id] = now
            elif now - self._last_used[agent_id] >= self._idle_timeout:
                del self._awake[agent_id], self._last_used[agent_id]  # first: a call wakes it anew
                await activation.stop()

    async def _watch_idle(self) -> None:
        while True:
            await asyncio.sleep(self._idle_timeout / 2)
            await self.put_to_sleep()

    def _activate(self, address: AgentAddress) -> asyncio.Task[Activation]:
        self._last_used[address.id] = self._around.clock.monotonic()
        task = self._awake.get(address.id)
        if task is None or (task.done() and not _is_awake(task)):
            cls = self._classes.get(address.class_name)
            if cls is None:
                raise ConfigurationError(
                    f"No agent class is named {address.class_name!r}. Served: "
                    f"{', '.join(sorted(self._classes))}."
                )
            task = self._tasks.spawn(wake(cls, address.name, self._around), name=address.id)
            self._awake[address.id] = task
        return task

    def _tell_queued(self, agent_id: str, waiting: int) -> None:
        self.bus.emit("tool:queued", agent=agent_id, waiting=waiting)

    def _activations(self) -> list[Activation]:
        return [task.result() for task in self._awake.values() if _is_awake(task)]

    async def _drain(self, awake: Sequence[Activation]) -> None:
        idle = [self._tasks.spawn(a.wait_until_idle(), name="drain") for a in awake if a.busy]
        if idle:
            _, late = await asyncio.wait(idle, timeout=self._drain_timeout)
            for task in late:
                task.cancel()

    async def _begin_boot(self) -> None:
        """Write down that this life of the process begins, and what the last two tell."""
        around = self._around
        around.boot, before = await begin_boot(self._store, around.clock.now())
        keys = await suspects_of(self._store, before)
        if keys:
            log.warning(
                "the process died twice soon after its start; turns that ran at both run one after "
                "another now",
                extra={"action": "start", "turns": sorted(keys)},
            )
        until = around.clock.monotonic() + SOON
        around.suspects = Suspects(keys, until=until, monotonic=around.clock.monotonic)
        self._tasks.spawn(self._last(), name="steady")

    async def _last(self) -> None:
        await asyncio.sleep(SOON)
        await mark_steady(self._store, self._around.boot)

    async def _plan_the_end(self) -> None:
        try:
            await mark_stopped(self._store, self._around.boot, self._around.clock.now())
        except StoreError:  # a store that is gone keeps nothing: the stop goes on
            log.exception("the stop could not be written down", extra={"action": "stop"})

    async def _drop_old_journals(self) -> None:
        before = self._around.clock.now() - JOURNAL_RETENTION
        async with self._store.transaction() as tx:
            await tx.execute("drop_old_packed_journals", {"before": before})


def _is_awake(task: asyncio.Task[Activation]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is None


def _by_name(agents: Sequence[type]) -> dict[str, type[Agent]]:
    classes: dict[str, type[Agent]] = {}
    for cls in agents:
        if not issubclass(cls, Agent):
            raise ConfigurationError(
                f"{cls.__name__} is no agent class. Write `class {cls.__name__}(Think): ...`."
            )
        other = classes.setdefault(cls.agent_class, cls)
        if other is not cls:
            raise ConfigurationError(
                f"{other.__name__} and {cls.__name__} are both named {cls.agent_class!r}. "
                f'Give one another name: `class {cls.__name__}(Think, name="...")`.'
            )
    return classes
