"""A clock that is set while agents work (spec/04 §1.2): forward by a day, back by a day."""

from __future__ import annotations

import pytest

from tests.jobs.support import Hours, serving
from thinkwell import Think
from thinkwell.jobs import JobContext
from thinkwell.testing import ScriptedModel, pause

DAY = 86_400.0


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
