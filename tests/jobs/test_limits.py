"""Thousands of due jobs start within their limits, and live turns go on beside them."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

import pytest

from tests.jobs.support import Stage, serving
from thinkwell import Think
from thinkwell.agent.agent import Agent
from thinkwell.core.limits import Limits
from thinkwell.jobs import JobContext
from thinkwell.testing import ScriptedModel, pause, text


class Counting(Agent):
    """Counts how many of its jobs run at once."""

    at_once: ClassVar[int] = 0
    most: ClassVar[int] = 0
    order: ClassVar[list[str]] = []
    gate: ClassVar[asyncio.Event]
    own: int = 0
    most_own: int = 0

    async def step(self) -> None:
        cls = type(self)
        cls.at_once, self.own = cls.at_once + 1, self.own + 1
        cls.most, self.most_own = max(cls.most, cls.at_once), max(self.most_own, self.own)
        cls.order.append(self.name)
        await self.gate.wait()
        cls.at_once, self.own = cls.at_once - 1, self.own - 1


def open_gate() -> asyncio.Event:
    gate = asyncio.Event()
    gate.set()
    return gate


async def enqueue_later(agent: Any, count: int, name: str = "step") -> None:
    for _ in range(count):
        await agent.jobs.enqueue(name, delay=10)


@pytest.mark.parametrize("suspends", [False, True])
async def test_no_more_run_at_once_than_the_limits_allow(suspends: bool):
    Counting.most = Counting.at_once = 0
    Counting.gate = asyncio.Event()
    limits = Limits(jobs=5, jobs_per_agent=2)
    async with serving(Counting, limits=limits, suspends=suspends) as stage:
        agents = [await stage.agent(Counting, name) for name in "abcd"]
        for agent in agents:
            await enqueue_later(agent, 20)
        stage.hours.move(10)
        await stage.until("job:started", 5)
        Counting.gate.set()
        await stage.until("job:finished", 80)
        assert Counting.most == 5
        assert max(agent.most_own for agent in agents) == 2


async def test_an_agent_with_many_due_jobs_does_not_keep_another_waiting():
    Counting.order.clear()
    Counting.gate = open_gate()
    async with serving(Counting, limits=Limits(jobs=4, jobs_per_agent=4)) as stage:
        many, few = await stage.agent(Counting, "many"), await stage.agent(Counting, "few")
        await enqueue_later(many, 500)
        await enqueue_later(few, 3)
        stage.hours.move(10)
        await stage.until("job:finished", 503)
        last = max(i for i, name in enumerate(Counting.order) if name == "few")
        assert last < 50


@pytest.mark.parametrize("suspends", [False, True])
async def test_more_agents_than_are_served_at_once_all_get_their_turn(suspends: bool):
    Counting.gate = open_gate()
    async with serving(Counting, suspends=suspends) as stage:
        for number in range(300):
            await enqueue_later(await stage.agent(Counting, f"n{number}"), 1)
        stage.hours.move(10)
        await stage.until("job:finished", 300)


class Chatty(Think):
    model = ScriptedModel([f"Answer {n}." for n in range(3)])

    async def step(self) -> None:
        await asyncio.sleep(0)


def finished(stage: Stage) -> int:
    return len(stage.told("job:finished"))


async def test_a_turn_gets_through_while_two_thousand_jobs_are_due():
    async with serving(Chatty) as stage:
        agent, other = await stage.agent(Chatty), await stage.agent(Chatty, "other")
        await enqueue_later(agent, 2000)
        stage.hours.move(10)
        await stage.until("job:finished", 10)
        before = finished(stage)
        assert (await agent.run("hello")).status == "completed"
        during = finished(stage) - before
        assert during < 40  # jobs that had begun end beside it, few more begin
        assert (await other.run("hello")).status == "completed"
        assert finished(stage) < 1000  # both turns ended long before the jobs did
        assert during > 0  # and the jobs went on beside it
        await stage.until("job:finished", 2000)


async def test_jobs_go_on_while_a_turn_waits_for_its_model():
    gate = pause()

    class Thoughtful(Chatty, name="thoughtful"):
        model = ScriptedModel([[text("Well,"), gate]])

    async with serving(Thoughtful) as stage:
        agent = await stage.agent(Thoughtful)
        turn = asyncio.create_task(agent.run("hello"))
        await gate.reached()
        await enqueue_later(agent, 50)
        stage.hours.move(10)
        await stage.until("job:finished", 50)
        assert not turn.done()
        gate.open()
        assert (await turn).status == "completed"


class Slow(Chatty):
    gate: ClassVar[asyncio.Event]

    async def hold(self, ctx: JobContext) -> None:
        await self.gate.wait()


async def test_jobs_that_take_every_place_do_not_take_the_slot():
    Slow.gate = asyncio.Event()
    async with serving(Slow, limits=Limits(jobs=2)) as stage:
        agent = await stage.agent(Slow)
        for _ in range(4):
            await agent.jobs.enqueue("hold")
        await stage.until("job:started", 2)
        assert (await agent.run("hello")).status == "completed"
        assert len(stage.told("job:started")) == 2
        Slow.gate.set()
        await stage.until("job:finished", 4)


async def test_an_agent_does_not_sleep_while_a_job_runs():
    Slow.gate = asyncio.Event()
    async with serving(Slow, idle_timeout=1.0) as stage:
        agent = await stage.agent(Slow)
        await agent.jobs.enqueue("hold")
        await stage.until("job:started")
        stage.hours.move(10)
        await stage.host.put_to_sleep()
        assert stage.host.status()["awake"] == 1
        Slow.gate.set()
        await stage.until("job:finished")
