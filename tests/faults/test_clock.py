"""A clock that is set while agents work (spec/04 §1.2): forward and back, by hours and by days."""

from __future__ import annotations

import asyncio

import pytest

from tests.approvals.support import Careful, desk
from tests.approvals.test_receipts import waits_on
from tests.jobs.support import Hours, serving
from thinkwell import Think
from thinkwell.jobs import JobContext
from thinkwell.testing import ScriptedModel, call, pause

HOUR, DAY = 3600.0, 86_400.0


class Watchmaker(Think, name="watchmaker"):
    async def chime(self, ctx: JobContext) -> None:
        """A job."""


@pytest.mark.parametrize("step", [DAY, -DAY], ids=["forward", "back"])
async def test_a_turn_that_runs_while_the_clock_is_set_ends_once_and_so_does_the_next(
    step: float, monkeypatch: pytest.MonkeyPatch
):
    gate, hours = pause(), Hours(now=10 * DAY)
    model = ScriptedModel([["before ", gate, "after"], "second"])
    monkeypatch.setattr(Watchmaker, "model", model)
    async with serving(Watchmaker, hours=hours) as stage:
        agent = await stage.agent(Watchmaker)
        asked = await agent.submit("hi")
        await gate.reached()
        hours.jump(step)
        gate.open()
        await stage.until("chat:turn:finish")
        turn = await agent.get_turn(asked.request_id)
        assert turn.status == "completed"
        assert (await agent.run("and now?")).text == "second"
        assert len(model.requests) == 2
        said = [m["role"] for m in await agent.get_messages()]
        assert said == ["user", "assistant"] * 2


async def test_a_job_is_run_once_although_the_clock_is_set_back_after_it_was_due():
    hours = Hours(now=10 * DAY)
    async with serving(Watchmaker, hours=hours) as stage:
        agent = await stage.agent(Watchmaker)
        job = await agent.jobs.enqueue("chime", delay=60)
        hours.move(61)
        await stage.until("job:finished")
        hours.jump(-DAY)
        hours.move(2 * DAY)
        assert (await agent.jobs.get(job.id)).status == "done"
        assert len(stage.told("job:finished")) == 1


async def test_a_job_that_waits_runs_as_soon_as_the_clock_is_set_past_its_time():
    hours = Hours(now=10 * DAY)
    async with serving(Watchmaker, hours=hours) as stage:
        agent = await stage.agent(Watchmaker)
        job = await agent.jobs.enqueue("chime", delay=DAY)
        hours.jump(2 * DAY)
        hours.move(0)
        await agent.jobs.enqueue("chime")
        await stage.until("job:finished", count=2)
        assert (await agent.jobs.get(job.id)).status == "done"


class Timetable(Watchmaker, name="timetable"):
    """Writes down what its later work does."""

    async def on_start(self) -> None:
        self.rung: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def ring(self, payload: str) -> None:
        """A schedule."""
        self.rung.append(payload)

    async def work(self, payload: str) -> None:
        """An item of the queue."""
        self.rung.append(payload)
        await self.gate.wait()


async def test_a_recurring_schedule_runs_once_when_the_clock_jumps_over_many_of_its_times():
    """Spec/04 §23.58: late is once, nothing is made up for."""
    hours = Hours(now=10 * DAY)
    async with serving(Timetable, hours=hours) as stage:
        agent = await stage.agent(Timetable)
        await agent.schedules.schedule("ring", "daily", cron="0 9 * * *")
        hours.jump(3 * DAY + 10 * HOUR)
        hours.move(60)  # the longest that a step of the clock goes unnoticed
        await stage.until("job:retried")  # it has its next time
        (planned,) = await agent.schedules.list()
        assert planned.time > hours.now()
        assert agent.rung == ["daily"]


async def test_a_recurring_schedule_repeats_nothing_when_the_clock_is_set_back():
    hours = Hours(now=10 * DAY)
    async with serving(Timetable, hours=hours) as stage:
        agent = await stage.agent(Timetable)
        await agent.schedules.schedule("ring", "daily", cron="0 9 * * *")
        hours.move(10 * HOUR)
        await stage.until("job:retried")  # it has its next time
        hours.jump(-5 * HOUR)
        for _ in range(10):
            hours.move(HOUR)
            await asyncio.sleep(0)
        assert agent.rung == ["daily"]
        hours.move(DAY)
        await stage.until("schedule:execute", 2)


@pytest.mark.parametrize("step", [5 * HOUR, -5 * HOUR], ids=["forward", "back"])
async def test_the_queue_goes_on_in_order_when_the_clock_is_set(step: float):
    hours = Hours(now=10 * DAY)
    async with serving(Timetable, hours=hours) as stage:
        agent = await stage.agent(Timetable)
        agent.gate.clear()
        for item in ("one", "two", "three"):
            await agent.schedules.queue("work", item)
        await stage.until_true(lambda: agent.rung == ["one"])
        hours.jump(step)
        agent.gate.set()
        await stage.until("job:finished", 3)
        await agent.schedules.queue("work", "four")
        await stage.until("job:finished", 4)
        assert agent.rung == ["one", "two", "three", "four"]


@pytest.fixture
def nothing_ran() -> None:
    Careful.ran.clear()


@pytest.mark.usefixtures("nothing_ran")
async def test_a_question_expires_once_when_the_clock_jumps_past_its_time():
    async with desk(Careful, [call("hurried", {"path": "tmp/a"})], "too late then") as each:
        await waits_on(each)
        each.hours.jump(5 * HOUR)
        each.hours.move(60)
        await each.stage.until("chat:turn:finish", 2)
        assert (await each.part())["state"] == "output-denied"
        assert [decision.expired for decision in await each.agent.approvals.decisions()] == [True]
        assert each.ran == []


@pytest.mark.usefixtures("nothing_ran")
async def test_a_question_waits_for_its_time_when_the_clock_is_set_back():
    async with desk(Careful, [call("hurried", {"path": "tmp/a"})], "gone") as each:
        await waits_on(each)
        each.hours.jump(-5 * HOUR)
        each.hours.move(2 * HOUR)
        await each.idle()
        assert (await each.part())["state"] == "approval-requested"
        assert await each.agent.respond_to_approval("call-1", approved=True)
        await each.idle()
        assert each.ran == ["tmp/a"]
