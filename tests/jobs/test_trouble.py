"""Due jobs are not forgotten when a read fails, and never hold up the process (DESIGN §1)."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.jobs.support import Hours, Stage, serving
from tests.turns.support import Log, LoggingStore
from thinkwell.agent.agent import Agent
from thinkwell.core.errors import (
    AgentParkedError,
    ConfigurationError,
    OwnershipLostError,
    StoreError,
    StoreUnavailableError,
)
from thinkwell.host.client import AgentAddress
from thinkwell.host.due_agents import DueAgents
from thinkwell.host.starts import Starts
from thinkwell.store.base import Params, Row
from thinkwell.store.sqlite import SqliteStore


class Worker(Agent, name="worker"):
    gate: ClassVar[asyncio.Event]

    async def block(self) -> None:
        await self.gate.wait()

    async def work(self) -> None:
        """Nothing to do."""


class FailingReads(LoggingStore):
    """Fails the next so many reads of a query."""

    def __init__(self) -> None:
        super().__init__(SqliteStore(":memory:"), Log())
        self.failures: Counter[str] = Counter()
        self.error: Exception = StoreUnavailableError("input/output error")

    async def fetch_one(self, query: str, params: Params, /) -> Row | None:
        if self.failures[query] > 0:
            self.failures[query] -= 1
            raise self.error
        return await super().fetch_one(query, params)


async def pass_time_until(stage: Stage, name: str, count: int) -> None:
    """Let retries come, as long as an event has not come so often."""
    while len(stage.told(name)) < count:
        stage.hours.move(60)
        await asyncio.sleep(0)


async def test_more_jobs_for_agents_whose_jobs_wait_for_a_place_do_not_stop_the_process():
    Worker.gate = asyncio.Event()
    async with serving(Worker) as stage:
        agents = [await stage.agent(Worker, f"n{number}") for number in range(40)]
        for _ in range(2):
            for agent in agents:
                await agent.jobs.enqueue("block")
        await stage.until("job:started", 32)
        for agent in agents:
            await agent.jobs.enqueue("block")
        await (await stage.agent(Worker, "late")).jobs.enqueue("work", delay=1)
        for _ in range(100):
            await asyncio.sleep(0)  # it comes back
        stage.hours.move(1)
        Worker.gate.set()
        await stage.until("job:finished", 121)


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("next_due", StoreError("a damaged page")),
        ("due_job", StoreError("a damaged page")),
        ("due_job", StoreUnavailableError("input/output error")),
        ("due_job", OwnershipLostError("worker/x")),
        ("due_job", ConfigurationError("a start refuses")),
    ],
)
async def test_a_read_that_fails_once_forgets_no_due_job(query: str, error: Exception):
    store = FailingReads()
    store.error = error
    async with serving(Worker, store=store) as stage:
        agent = await stage.agent(Worker)
        await agent.jobs.enqueue("work", delay=10)
        store.failures[query] = 1
        stage.hours.move(10)
        await pass_time_until(stage, "job:finished", 1)
        assert store.failures[query] == 0


async def test_the_jobs_of_a_parked_agent_run_when_somebody_lets_it_start(
    monkeypatch: pytest.MonkeyPatch,
):
    refused: list[str] = []

    def refuse(_: Starts, agent_id: str) -> None:
        refused.append(agent_id)
        raise AgentParkedError(agent_id, "it killed the process")

    async with serving(Worker, idle_timeout=1.0) as stage:
        agent = await stage.agent(Worker)
        await agent.jobs.enqueue("work", delay=10)
        stage.hours.move(5)
        await stage.host.put_to_sleep()
        with monkeypatch.context() as parked:
            parked.setattr(Starts, "check", refuse)
            stage.hours.move(5)
            while not refused:
                await asyncio.sleep(0)
            for _ in range(20):
                await asyncio.sleep(0)
        await stage.host.agent(AgentAddress("worker", "x"))
        await stage.until("job:finished")  # although no time goes by


async def test_a_job_that_is_cancelled_while_it_would_be_held_is_not_told_as_held():
    store = FailingReads()
    async with serving(Worker, store=store, idle_timeout=1.0) as stage:
        agent = await stage.agent(Worker)
        job = await agent.jobs.enqueue("work", delay=10)
        fetch_one = store.fetch_one

        async def cancelled_meanwhile(query: str, params: Params, /) -> Row | None:
            row = await fetch_one(query, params)
            if query == "due_job" and row is not None and row["id"] == job.id:
                await agent.jobs.cancel(job.id)
                agent.work = None  # what is due cannot run any more
            return row

        store.fetch_one = cancelled_meanwhile
        stage.hours.move(10)
        await stage.until("job:cancelled")
        for _ in range(20):
            await asyncio.sleep(0)
        del agent.work
        await agent.jobs.enqueue("work")
        await stage.until("job:finished")
        assert stage.told("job:held") == []


async def test_a_damaged_job_is_told_as_failed(tmp_path: Path):
    import sqlite3
    from contextlib import closing

    store, hours = tmp_path / "jobs.db", Hours()
    async with serving(Worker, store=store, hours=hours) as stage:
        agent = await stage.agent(Worker)
        broken = [await agent.jobs.enqueue("work", delay=10) for _ in range(2)]
    with closing(sqlite3.connect(store)) as link, link:
        link.execute("UPDATE jobs SET payload = '{broken' WHERE agent = 'worker/x'")
        link.execute("UPDATE jobs SET status = 'running' WHERE id = ?", (broken[0].id,))
    hours.move(20)
    async with serving(Worker, store=store, hours=hours) as stage:
        told = await stage.until("job:failed", 2)
        assert {fields["job"] for fields in told} == {job.id for job in broken}
        assert all("damaged" in fields["error"] for fields in told)


async def test_an_agent_that_is_served_takes_no_second_place_in_the_line():
    store = SqliteStore(":memory:")
    await store.open()
    line = DueAgents(store, Hours(), most=2)
    line.add("a/1")
    assert await line.take() == ["a/1"]
    line.add("a/1")
    line.add("a/2")
    line.add("a/3")
    taken: list[Any] = [await line.take(), await line.next_at()]
    assert taken == [["a/2"], None]
    line.done("a/1")
    assert await line.take() == ["a/3"]
    line.done("a/2")
    assert await line.take() == ["a/1"]  # something of it became due while it was served
    await store.close()
