"""What can be enqueued, and what an error says about what cannot."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.jobs.support import serving
from thinkwell import App, Think
from thinkwell.agent.agent import Agent
from thinkwell.errors import JobError
from thinkwell.host.client import AgentAddress
from thinkwell.jobs import JobContext


class Shapes(Agent):
    seen: list[Any]

    async def on_start(self) -> None:
        self.seen = []

    async def nothing(self) -> None:
        self.seen.append(())

    async def payload(self, given: Any) -> None:
        self.seen.append(given)

    async def context(self, *, ctx: JobContext) -> None:
        self.seen.append(ctx.payload)

    async def both(self, given: Any, ctx: JobContext, more: int = 7) -> None:
        self.seen.append((given, ctx.agent is self, more))

    async def three(self, one: Any, two: Any) -> None:
        """Takes too much."""

    def plain(self, given: Any) -> None:
        """Is not async."""


@pytest.mark.parametrize(
    ("name", "seen"),
    [("nothing", ()), ("payload", 5), ("context", 5), ("both", (5, True, 7))],
)
async def test_a_method_is_called_with_what_it_takes(name: str, seen: Any):
    async with serving(Shapes) as stage:
        agent = await stage.agent(Shapes)
        await agent.jobs.enqueue(name, 5)
        await stage.until("job:finished")
        assert agent.seen == [seen]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("missing", "async def missing(self, payload, ctx)"),
        ("_hidden", "no public method '_hidden'"),
        ("_hidden", "must not begin with `_`"),
        ("plain", "it is no async method"),
        ("three", "it needs one, two"),
        ("mail.send", "No feature of Shapes has a job named 'mail.send'. Jobs of 'mail': none."),
        ("mail.send", "`kit.agent.jobs.enqueue('send')`"),
    ],
)
async def test_what_cannot_run_is_refused_and_says_what_to_write(name: str, said: str):
    async with serving(Shapes) as stage:
        agent = await stage.agent(Shapes)
        with pytest.raises(JobError) as refused:
            await agent.jobs.enqueue(name)
        assert said in str(refused.value)
        assert await agent.jobs.list() == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"payload": {1, 2}}, "which JSON cannot hold"),
        ({"payload": "x" * 1_000_001}, "it has 1,000,003 bytes"),
        ({"payload": {3: 4}}, "JSON keys are strings"),
        ({"due": datetime(2030, 1, 1)}, "has no time zone"),  # noqa: DTZ001
        ({"due": 5, "delay": 5}, "due= and delay="),
        ({"delay": -1}, "delay=-1"),
        ({"delay": float("inf")}, "delay=inf"),
        ({"due": float("nan")}, "due=nan"),
        ({"max_attempts": 0}, "max_attempts=0"),
        ({"base_delay": 0}, "base_delay=0"),
        ({"base_delay": 5, "max_delay": 1}, "base_delay=5"),
        ({"base_delay": "1"}, "base_delay='1'"),
        ({"max_delay": float("inf")}, "max_delay=inf"),
        ({"delay": "5"}, "delay='5'. Give seconds"),
        ({"delay": True}, "delay=True"),
        ({"delay": timedelta(seconds=-1)}, "delay=-1.0"),
        ({"due": "2026-12-01"}, "due='2026-12-01'. Give a datetime with a time zone"),
        ({"max_attempts": "3"}, "max_attempts='3'"),
        ({"max_attempts": 2.5}, "max_attempts=2.5"),
        ({"max_attempts": True}, "max_attempts=True"),
        ({"key": 5}, "key=5 is no text. Write `key='5'`"),
        ({"key": ""}, "key='' is no text"),
    ],
)
async def test_options_that_make_no_sense_are_refused(options: dict[str, Any], said: str):
    async with serving(Shapes) as stage:
        agent = await stage.agent(Shapes)
        with pytest.raises(JobError) as refused:
            await agent.jobs.enqueue("payload", **options)
        assert said in str(refused.value)


async def test_a_method_instead_of_its_name_is_refused():
    async with serving(Shapes) as stage:
        agent = await stage.agent(Shapes)
        with pytest.raises(JobError, match=r"`enqueue\('nothing'\)`"):
            await agent.jobs.enqueue(agent.nothing)
        with pytest.raises(JobError, match="Give the name of the method"):
            await agent.jobs.enqueue(5)


@pytest.mark.parametrize("name", ["on_start", "set_state", "on_request"])
async def test_hooks_and_verbs_of_every_agent_are_no_jobs(name: str):
    async with serving(Shapes) as stage:
        agent = await stage.agent(Shapes)
        with pytest.raises(JobError, match=f"Shapes.{name} cannot run as a job: every agent has"):
            await agent.jobs.enqueue(name)


async def test_an_agent_without_chat_may_name_its_job_as_chat_agents_name_a_verb():
    class Runner(Agent):
        async def run(self) -> None:
            """Is no verb here."""

    class Chatting(Think):
        pass

    async with serving(Runner, Chatting) as stage:
        await (await stage.agent(Runner)).jobs.enqueue("run")
        await stage.until("job:finished")
        with pytest.raises(JobError, match="every agent has it"):
            await (await stage.agent(Chatting)).jobs.enqueue("run")


async def test_a_job_that_is_enqueued_last_of_all_is_no_trouble(caplog: pytest.LogCaptureFixture):
    async with App(agents=[Shapes], store="sqlite://:memory:") as app:
        await app.agent(Shapes, "x").jobs.enqueue("nothing")
    assert [record.message for record in caplog.records if record.exc_info] == []


async def test_a_delay_may_be_a_timedelta():
    async with serving(Shapes) as stage:
        agent = await stage.agent(Shapes)
        job = await agent.jobs.enqueue("nothing", delay=timedelta(minutes=2))
        assert job.due_at == stage.hours.now() + 120.0


async def test_a_status_that_no_job_has_is_refused():
    async with serving(Shapes) as stage:
        agent = await stage.agent(Shapes)
        with pytest.raises(JobError, match=r"'finished'\. There are: waiting, running, done"):
            await agent.jobs.list(status="finished")


async def test_the_same_key_gives_the_first_job_also_after_its_end():
    async with serving(Shapes) as stage:
        agent = await stage.agent(Shapes)
        first = await agent.jobs.enqueue("payload", 1, key="k")
        await stage.until("job:finished")
        again = await agent.jobs.enqueue("payload", 2, key="k")
        assert (again.id, again.status, again.payload) == (first.id, "done", 1)
        with pytest.raises(JobError, match="belongs to a job named 'payload'"):
            await agent.jobs.enqueue("nothing", key="k")
        other = await stage.agent(Shapes, "other")
        assert (await other.jobs.enqueue("payload", 3, key="k")).id != first.id
        await stage.until("job:finished", 2)
        assert (agent.seen, other.seen) == ([1], [3])


async def test_a_due_time_may_be_a_datetime():
    async with serving(Shapes) as stage:
        agent = await stage.agent(Shapes)
        job = await agent.jobs.enqueue("nothing", due=datetime.fromtimestamp(1500, UTC))
        assert job.due_at == 1500.0


async def test_jobs_are_listed_by_status_and_name_the_newest_first():
    async with serving(Shapes) as stage:
        agent = await stage.agent(Shapes)
        done = await agent.jobs.enqueue("nothing")
        await stage.until("job:finished")
        waiting = await agent.jobs.enqueue("payload", delay=9)
        assert {job.id for job in await agent.jobs.list()} == {done.id, waiting.id}
        assert [job.id for job in await agent.jobs.list(status="done")] == [done.id]
        assert [job.id for job in await agent.jobs.list(name="payload")] == [waiting.id]
        assert len(await agent.jobs.list(limit=1)) == 1
        assert await agent.jobs.get("nobody") is None
        assert not await agent.jobs.cancel("nobody")


async def test_handlers_of_a_feature_are_named_after_it():
    async with serving(Shapes) as stage:
        awake = await stage.host.agent(AgentAddress(Shapes.agent_class, "x"))
        agent = await stage.agent(Shapes)

        async def send(payload: Any, ctx: JobContext) -> None:
            agent.seen.append((payload, ctx.name))

        awake.desk.handlers.add("mail", {"send": send})
        await agent.jobs.enqueue("mail.send", "hello")
        await stage.until("job:finished")
        assert agent.seen == [("hello", "mail.send")]


async def test_a_job_enqueued_while_the_clock_was_set_back_still_runs():
    async with serving(Shapes) as stage:
        agent = await stage.agent(Shapes)
        await agent.jobs.enqueue("payload", 1)
        await stage.until("job:finished")
        stage.hours.move(-500)
        await agent.jobs.enqueue("payload", 2, delay=10)
        stage.hours.move(10)
        await stage.until("job:finished", 2)


async def test_a_key_given_twice_in_one_block_is_one_job():
    async with serving(Shapes) as stage:
        agent = await stage.agent(Shapes)
        async with agent.storage.together():
            first = await agent.jobs.enqueue("payload", 1, key="k")
            async with agent.storage.together():
                again = await agent.jobs.enqueue("payload", 2, key="k")
            with pytest.raises(JobError, match="belongs to a job named 'payload'"):
                await agent.jobs.enqueue("nothing", key="k")
        assert again == first
        await stage.until("job:finished")
        assert agent.seen == [1]
        assert [job.id for job in await agent.jobs.list()] == [first.id]


async def test_a_block_whose_key_was_taken_meanwhile_stores_nothing_and_says_so():
    async with serving(Shapes) as stage:
        agent = await stage.agent(Shapes)

        async def block() -> Any:
            async with agent.storage.together():
                job = await agent.jobs.enqueue("payload", 1, key="k")
                await agent.storage.set("job", job.id)
                if not taken:
                    taken.append(await asyncio.create_task(other()))
            return job

        def other() -> Any:
            return agent.jobs.enqueue("payload", 2, key="k")

        taken: list[Any] = []
        with pytest.raises(JobError, match="nothing of the block is stored"):
            await block()
        assert await agent.storage.get("job") is None
        assert (await block()).id == taken[0].id == await agent.storage.get("job")


@pytest.mark.parametrize("steps", range(6))
async def test_a_caller_that_is_cut_off_leaves_no_job_that_nobody_runs(steps: int):
    async with serving(Shapes) as stage:
        agent = await stage.agent(Shapes)
        caller = asyncio.create_task(agent.jobs.enqueue("payload", 1, due=1))
        for _ in range(steps):
            await asyncio.sleep(0)
        caller.cancel()
        await asyncio.wait([caller])
        stored = await agent.jobs.list()
        await agent.jobs.enqueue("nothing")
        await stage.until("job:finished", 1 + len(stored))
