"""An idle agent costs no memory (DESIGN §9): it sleeps, and its next use wakes it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.turns.support import Client, Log
from thinkwell import Agent, HttpRequest, rpc
from thinkwell.core.clock import SystemClock
from thinkwell.host.client import AgentAddress
from thinkwell.host.host import Host
from thinkwell.store.sqlite import SqliteStore

ADDRESS = AgentAddress("counter", "x")


class Clock(SystemClock):
    """A clock the test moves on."""

    ahead = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead


class Counter(Agent):
    initial_state = 0
    woken = 0
    gate: asyncio.Event

    async def on_start(self) -> None:
        type(self).woken += 1

    @rpc
    async def count(self) -> int:
        await self.set_state(self.state + 1)
        return self.state

    async def wait(self) -> None:
        await type(self).gate.wait()


@pytest.fixture
async def host(tmp_path: Path) -> Any:
    Counter.woken, Counter.gate = 0, asyncio.Event()
    clock = Clock()
    made = Host([Counter], SqliteStore(tmp_path / "x.db"), clock=clock)
    await made.start()
    made.test_clock = clock  # pyright: ignore[reportAttributeAccessIssue]
    yield made
    await made.stop()


async def later(host: Any) -> None:
    """Ten minutes go by; the host looks twice, because what is busy is judged from then on."""
    for _ in range(2):
        host.test_clock.ahead += 300
        await host.put_to_sleep()


async def count(host: Host) -> int:
    return await host.client().call(ADDRESS, "count", (), {})


async def test_an_agent_nobody_uses_sleeps_and_wakes_with_its_state(host: Host):
    assert await count(host) == 1
    await later(host)
    assert await count(host) == 2
    assert Counter.woken == 2


async def test_an_agent_that_was_just_used_stays_awake(host: Host):
    await count(host)
    await host.put_to_sleep()
    await count(host)
    assert Counter.woken == 1


async def test_a_connected_client_keeps_its_agent_awake(host: Host):
    client = Client(Log())
    opening = HttpRequest(method="GET", path="")
    connection = await host.client().open_connection(ADDRESS, "tab", opening, client.sink)
    await later(host)
    await count(host)
    assert Counter.woken == 1
    await connection.close()
    await later(host)
    await count(host)
    assert Counter.woken == 2


async def test_a_call_that_runs_keeps_its_agent_awake(host: Host):
    call = asyncio.ensure_future(host.client().call(ADDRESS, "wait", (), {}))
    await count(host)
    await later(host)
    Counter.gate.set()
    await call
    assert Counter.woken == 1
