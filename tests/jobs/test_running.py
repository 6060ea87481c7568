"""A job is a durable call of a named method, outside the agent's slot (DESIGN §1)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tests.jobs.support import Hours, serving
from thinkwell import Think
from thinkwell.agent.agent import Agent
from thinkwell.core.principal import Principal
from thinkwell.core.serving import ServedFor
from thinkwell.core.serving import serving as calling
from thinkwell.hooks.contexts import TurnContext
from thinkwell.hooks.jobs import JobContext, RunAgain
from thinkwell.testing import ScriptedModel


class Diary(Agent):
    """Writes down what its jobs were called with."""

    called: list[Any]

    async def on_start(self) -> None:
        self.called = []

    async def note(self, payload: Any, ctx: JobContext) -> None:
        self.called.append((payload, ctx.attempt, ctx.key))


async def test_a_job_is_called_with_its_payload_and_ends_done():
    async with serving(Diary) as stage:
        agent = await stage.agent(Diary)
        job = await agent.jobs.enqueue("note", {"n": 1}, key="k")
        await stage.until("job:finished")
        assert agent.called == [({"n": 1}, 1, "k")]
        stored = await agent.jobs.get(job.id)
        assert (stored.status, stored.attempt, stored.finished_at) == ("done", 1, 1000.0)


async def test_a_due_job_wakes_an_agent_that_sleeps():
    async with serving(Diary, idle_timeout=1.0) as stage:
        agent = await stage.agent(Diary)
        await agent.jobs.enqueue("note", 1, delay=3600)
        stage.hours.move(10)
        await stage.host.put_to_sleep()
        assert stage.host.status()["awake"] == 0
        stage.hours.move(3600)
        await stage.until("job:finished")
        assert stage.host.status()["awake"] == 1
        again = await stage.agent(Diary)
        assert again is not agent
        assert again.called == [(1, 1, None)]


async def test_a_job_of_a_process_that_has_stopped_runs_in_the_next_one(tmp_path: Path):
    store, hours = tmp_path / "jobs.db", Hours()
    async with serving(Diary, store=store, hours=hours) as stage:
        agent = await stage.agent(Diary)
        job = await agent.jobs.enqueue("note", 1, delay=60)
    hours.move(60)
    async with serving(Diary, store=store, hours=hours) as stage:
        assert (await stage.until("job:finished"))[0]["job"] == job.id


async def test_one_timer_waits_for_the_next_due_job():
    async with serving(Diary) as stage:
        agent = await stage.agent(Diary)
        for delay in (50, 20, 30):
            await agent.jobs.enqueue("note", delay, delay=delay)
        while stage.hours.timers[:1] != [1020.0]:
            await asyncio.sleep(0)
        stage.hours.move(20)
        await stage.until("job:finished")
        assert [payload for payload, _, _ in agent.called] == [20]


class Chatty(Think):
    model = ScriptedModel(["Good morning."])

    async def greet(self, name: str) -> None:
        await self.run(f"I am {name}")


async def test_a_handler_may_run_a_turn():
    async with serving(Chatty) as stage:
        agent = await stage.agent(Chatty)
        await agent.jobs.enqueue("greet", "Ada")
        await stage.until("job:finished")
        assert [m["role"] for m in await agent.get_messages()] == ["user", "assistant"]


class Ticking(Diary):
    async def tick(self, ctx: JobContext) -> RunAgain | None:
        count = (ctx.stashed or 0) + 1
        await ctx.stash(count)
        self.called.append((count, ctx.attempt))
        return RunAgain(10) if count < 3 else None


async def test_a_handler_that_wants_to_run_again_keeps_its_row_and_its_stash():
    async with serving(Ticking) as stage:
        agent = await stage.agent(Ticking)
        job = await agent.jobs.enqueue("tick")
        for round in (1, 2):
            await stage.until("job:retried", round)
            stage.hours.move(10)
        await stage.until("job:finished")
        assert agent.called == [(1, 1), (2, 1), (3, 1)]
        assert [known.id for known in await agent.jobs.list()] == [job.id]


ANN = Principal(id="ann", claims={"role": "owner"})


class Loyal(Think):
    model = ScriptedModel(["One.", "Two.", "Three."])
    asked_by: list[Any]

    async def on_start(self) -> None:
        self.asked_by = []

    async def before_turn(self, ctx: TurnContext) -> None:
        self.asked_by.append(ctx.principal)

    async def first(self, ctx: JobContext) -> None:
        self.asked_by.append(ctx.principal)
        await self.run("hello")
        await self.jobs.enqueue("second")

    async def second(self) -> None:
        await self.run("hello again")


async def test_a_job_and_its_turns_belong_to_whoever_asked_for_it(tmp_path: Path):
    store, hours = tmp_path / "jobs.db", Hours()
    async with serving(Loyal, store=store, hours=hours) as stage:
        agent = await stage.agent(Loyal)
        with calling("loyal/x", ServedFor(ANN, readonly=True)):
            job = await agent.jobs.enqueue("first", delay=60)
        assert (job.principal, job.read_only) == (ANN, True)
    hours.move(60)
    async with serving(Loyal, store=store, hours=hours) as stage:  # they have left long ago
        agent = await stage.agent(Loyal)
        await stage.until("job:finished", 2)
        assert agent.asked_by == [ANN, ANN, ANN]
        assert [job.read_only for job in await agent.jobs.list()] == [True, True]


async def test_a_job_that_nobody_asked_for_belongs_to_nobody():
    async with serving(Loyal) as stage:
        agent = await stage.agent(Loyal)
        await agent.jobs.enqueue("second")
        await stage.until("job:finished")
        assert agent.asked_by == [None]
