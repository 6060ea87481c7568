"""A host with its own clock, for the tests of jobs.

Time stands still until a test moves it: `Hours.move` lets every timer ring that is due then.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from tests.turns.support import Log, LoggingStore
from thinkwell.core.events import Event
from thinkwell.core.limits import Limits
from thinkwell.core.retention import Retention
from thinkwell.host.client import AgentAddress
from thinkwell.host.host import Host
from thinkwell.journal.jobs import Job
from thinkwell.store.base import Store
from thinkwell.store.sqlite import SqliteStore


class Hours:
    """A clock that stands, and the sleeps that wait for it."""

    def __init__(self, now: float = 1000.0) -> None:
        self._now = now
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        """Until the clock has moved on so far."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self._now + seconds, future))
        await future

    def move(self, seconds: float) -> None:
        """Time goes by."""
        self._now += seconds
        due = [sleeper for sleeper in self._sleepers if sleeper[0] <= self._now]
        self._sleepers = [sleeper for sleeper in self._sleepers if sleeper[0] > self._now]
        for _, future in due:
            if not future.done():
                future.set_result(None)

    def jump(self, seconds: float) -> None:
        """The clock is set, or the machine slept: no timer has rung yet."""
        self._now += seconds

    @property
    def timers(self) -> list[float]:
        """When somebody wants to be woken."""
        return sorted(at for at, future in self._sleepers if not future.done())


class Stage:
    """A running host and what it told."""

    def __init__(self, host: Host, hours: Hours) -> None:
        self.host = host
        self.hours = hours
        self.events: list[Event] = []
        self._news = asyncio.Event()
        host.bus.subscribe(self._hear)

    def _hear(self, event: Event) -> None:
        self.events.append(event)
        self._news.set()

    async def agent(self, cls: type, name: str = "x") -> Any:
        """An agent, awake."""
        address = AgentAddress(getattr(cls, "agent_class"), name)  # noqa: B009 - of any class
        return (await self.host.agent(address)).agent

    def told(self, name: str) -> list[Any]:
        """The fields of every event of that name."""
        said = [msgspec.structs.asdict(event) for event in self.events if event.type == name]
        return [{key: value for key, value in each.items() if key != "type"} for each in said]

    async def until(self, name: str, count: int = 1) -> list[Any]:
        """Wait until an event of that name has come so often."""
        await self.until_true(lambda: len(self.told(name)) >= count)
        return self.told(name)

    async def until_true(self, condition: Callable[[], bool]) -> None:
        """Wait for a state that comes with some event."""
        while not condition():
            self._news.clear()
            await self._news.wait()


@asynccontextmanager
async def serving(
    *classes: type,
    store: Store | Path | None = None,
    hours: Hours | None = None,
    limits: Limits | None = None,
    retention: Retention | None = None,
    idle_timeout: float = 300.0,
    suspends: bool = False,
) -> AsyncIterator[Stage]:
    """A host that serves these classes.

    With `suspends` the store gives way to other tasks wherever a store may.
    """
    hours = hours or Hours()
    inner = SqliteStore(store or ":memory:") if store is None or isinstance(store, Path) else store
    host = Host(
        classes,
        LoggingStore(inner, Log(), suspends=True) if suspends else inner,
        clock=hours,
        sleep=hours.sleep,
        alarm=hours.sleep,
        limits=limits,
        retention=retention,
        idle_timeout=idle_timeout,
        drain_timeout=1.0,
    )
    stage = Stage(host, hours)
    await host.start()
    try:
        yield stage
    finally:
        await host.stop()


def ids(jobs: Sequence[Job]) -> list[str]:
    """The ids of jobs."""
    return [job.id for job in jobs]
