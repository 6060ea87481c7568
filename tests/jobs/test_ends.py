"""How a job ends: retries with back-off, cancels, handlers that are gone, damaged rows."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest

from tests.jobs.support import Hours, serving
from thinkwell import AbortTurn
from thinkwell.agent.agent import Agent
from thinkwell.jobs import JobContext, RunAgain


class Worker(Agent, name="worker"):
    raising: ClassVar[BaseException | None] = None
    gate: ClassVar[asyncio.Event]
    seen: ClassVar[list[Any]] = []

    async def fail(self, ctx: JobContext) -> None:
        self.seen.append(ctx.attempt)
        if self.raising is not None:
            raise self.raising

    async def wait(self, ctx: JobContext) -> None:
        reason = await ctx.signal.wait()
        self.seen.append(reason)

    async def hang(self) -> None:
        await self.gate.wait()

    async def ignore(self, ctx: JobContext) -> None:
        while not self.gate.is_set():
            try:
                await self.gate.wait()
            except asyncio.CancelledError:
                self.seen.append("ignored")


@pytest.fixture(autouse=True)
def fresh() -> None:
    Worker.raising, Worker.seen, Worker.gate = None, [], asyncio.Event()


async def test_a_handler_that_raises_is_tried_again_with_growing_pauses():
    Worker.raising = ConnectionError("gone")
    async with serving(Worker) as stage:
        agent = await stage.agent(Worker)
        job = await agent.jobs.enqueue("fail", max_attempts=3, base_delay=8, max_delay=20)
        for round, longest in ((1, 16), (2, 20)):
            told = (await stage.until("job:retried", round))[-1]
            assert stage.hours.now() <= told["due_at"] <= stage.hours.now() + longest
            assert told["error"] == "ConnectionError: gone"
            stage.hours.move(longest)
        failed = (await stage.until("job:failed"))[0]
        assert (failed["attempt"], failed["error"]) == (3, "ConnectionError: gone")
        stored = await agent.jobs.get(job.id)
        assert (stored.status, stored.attempt, stored.error) == (
            "failed",
            3,
            "ConnectionError: gone",
        )


async def test_the_line_about_an_attempt_that_failed_names_the_job_as_code(
    caplog: pytest.LogCaptureFixture,
):
    Worker.raising = ConnectionError("gone")
    async with serving(Worker) as stage:
        job = await (await stage.agent(Worker)).jobs.enqueue("fail", max_attempts=1)
        await stage.until("job:failed")
    (said,) = [vars(r) for r in caplog.records if "failed at attempt" in r.getMessage()]
    assert (said["job"], said["code"]) == (job.id, "fail")
    assert "hook" not in said  # it is none


@pytest.mark.parametrize(
    "error", [SystemExit(1), KeyboardInterrupt(), asyncio.CancelledError(), AbortTurn("no")]
)
async def test_a_handler_may_raise_anything_and_only_its_job_fails(error: BaseException):
    Worker.raising = error
    async with serving(Worker) as stage:
        agent = await stage.agent(Worker)
        await agent.jobs.enqueue("fail", max_attempts=1)
        await stage.until("job:failed")
        Worker.raising = None
        await agent.jobs.enqueue("fail")
        await stage.until("job:finished")


async def test_a_waiting_job_is_cancelled_at_once_and_never_runs():
    async with serving(Worker) as stage:
        agent = await stage.agent(Worker)
        job = await agent.jobs.enqueue("fail", delay=10)
        assert await agent.jobs.cancel(job.id)
        assert not await agent.jobs.cancel(job.id)
        stored = await agent.jobs.get(job.id)
        assert (stored.status, stored.finished_at) == ("cancelled", 1000.0)
        assert [told["job"] for told in stage.told("job:cancelled")] == [job.id]
        stage.hours.move(10)
        await agent.jobs.enqueue("fail")
        await stage.until("job:finished")
        assert Worker.seen == [1]


async def test_the_signal_of_a_running_job_aborts_and_it_ends_cancelled():
    async with serving(Worker) as stage:
        agent = await stage.agent(Worker)
        job = await agent.jobs.enqueue("wait")
        await stage.until("job:started")
        assert await agent.jobs.cancel(job.id, "no longer needed")
        await stage.until("job:cancelled")
        assert Worker.seen == ["no longer needed"]
        assert (await agent.jobs.get(job.id)).status == "cancelled"


class Stubborn(Worker, name="stubborn"):
    time_limits: ClassVar[dict[str, float]] = {"grace": 0.01}


async def test_a_handler_that_ignores_its_cancel_is_left_behind():
    async with serving(Stubborn) as stage:
        agent = await stage.agent(Stubborn)
        job = await agent.jobs.enqueue("ignore")
        await stage.until("job:started")
        await agent.jobs.cancel(job.id)
        await stage.until("job:cancelled")
        assert Worker.seen == ["ignored"]
        Worker.gate.set()  # what it still does changes nothing
        await agent.jobs.enqueue("fail")
        await stage.until("job:finished")
        assert (await agent.jobs.get(job.id)).status == "cancelled"


@pytest.mark.parametrize("steps", range(6))
async def test_a_cancel_whose_caller_is_cut_off_reaches_the_handler_all_the_same(steps: int):
    async with serving(Worker) as stage:
        agent = await stage.agent(Worker)
        job = await agent.jobs.enqueue("wait")
        await stage.until("job:started")
        caller = asyncio.create_task(agent.jobs.cancel(job.id, "cut off"))
        for _ in range(steps):
            await asyncio.sleep(0)
        caller.cancel()
        await asyncio.wait([caller])
        if (await agent.jobs.get(job.id)).cancel_requested is None:
            assert await agent.jobs.cancel(job.id, "cut off")
        await stage.until("job:cancelled")
        assert Worker.seen == ["cut off"]


class Again(Worker, name="again"):
    delay: ClassVar[Any] = 0.0

    async def again(self) -> RunAgain:
        return RunAgain(self.delay)

    async def bare(self) -> Any:
        return RunAgain

    async def forged(self) -> RunAgain:
        result = RunAgain(1.0)
        msgspec.structs.force_setattr(result, "delay", "soon")
        return result


@pytest.mark.parametrize("delay", ["soon", float("nan"), float("inf"), -1, True, None])
async def test_a_handler_that_wants_to_run_again_at_no_time_has_failed(delay: Any):
    Again.delay = delay
    async with serving(Again) as stage:
        agent = await stage.agent(Again)
        job = await agent.jobs.enqueue("again", max_attempts=1)
        failed = (await stage.until("job:failed"))[0]
        assert (failed["job"], "give seconds, 0 or more" in failed["error"]) == (job.id, True)


async def test_a_handler_that_returns_the_class_run_again_has_failed():
    async with serving(Again) as stage:
        agent = await stage.agent(Again)
        await agent.jobs.enqueue("bare", max_attempts=1)
        failed = (await stage.until("job:failed"))[0]
        assert failed["error"] == (
            "JobError: bare returned the class RunAgain. Return RunAgain(seconds)."
        )


async def test_an_end_that_cannot_be_stored_is_a_failed_attempt():
    async with serving(Again) as stage:
        agent = await stage.agent(Again)
        job = await agent.jobs.enqueue("forged", max_attempts=1)
        await stage.until("job:failed")
        assert (await agent.jobs.get(job.id)).status == "failed"


class Hurried(Worker, name="hurried"):
    time_limits: ClassVar[dict[str, float]] = {"job": 0.01, "grace": 0.01}


@pytest.mark.parametrize("name", ["wait", "ignore", "hang"])
async def test_an_attempt_over_its_time_is_stopped_and_tried_again(name: str):
    async with serving(Hurried) as stage:
        agent = await stage.agent(Hurried)
        job = await agent.jobs.enqueue(name, max_attempts=2)
        retried = (await stage.until("job:retried"))[0]
        assert retried["error"].startswith("TimeoutError: It ran longer than 0.01 s")
        stage.hours.move(300)
        await stage.until("job:failed")
        assert (await agent.jobs.get(job.id)).attempt == 2
        Worker.gate.set()


async def test_without_a_limit_an_attempt_takes_as_long_as_it_likes():
    class Patient(Worker, name="patient"):
        time_limits: ClassVar[dict[str, float | None]] = {"job": None}

    async with serving(Patient) as stage:
        agent = await stage.agent(Patient)
        await agent.jobs.enqueue("hang")
        await stage.until("job:started")
        Worker.gate.set()
        await stage.until("job:finished")


class Smaller(Agent, name="worker"):
    """The class as it is after a change: `fail` is gone."""

    async def other(self) -> None:
        """Something else."""


async def test_a_job_whose_method_is_gone_waits_for_one_that_has_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    store, hours = tmp_path / "jobs.db", Hours()
    async with serving(Worker, store=store, hours=hours) as stage:
        agent = await stage.agent(Worker)
        jobs = [await agent.jobs.enqueue("fail", delay=10) for _ in range(3)]
    hours.move(10)
    with caplog.at_level(logging.WARNING):
        async with serving(Smaller, store=store, hours=hours) as stage:
            await stage.until("job:held", 3)
            smaller = await stage.agent(Smaller)
            await smaller.jobs.enqueue("other")
            await stage.until("job:finished")
            listed = await smaller.jobs.list(status="waiting")
            assert {job.id for job in listed} == {job.id for job in jobs}
            assert "has no public method 'fail'" in (listed[0].held or "")
    assert len([r for r in caplog.records if "a job is held" in r.getMessage()]) == 1
    async with serving(Worker, store=store, hours=hours) as stage:
        await stage.until("job:finished", 3)


class Another(Agent, name="another"):
    """Has no jobs."""


async def test_jobs_of_a_class_that_is_not_served_wait(tmp_path: Path):
    store, hours = tmp_path / "jobs.db", Hours()
    async with serving(Worker, store=store, hours=hours) as stage:
        await (await stage.agent(Worker)).jobs.enqueue("fail", delay=10)
    hours.move(10)
    async with serving(Another, Smaller, store=store, hours=hours) as stage:
        await stage.until("job:held")
    async with serving(Another, store=store, hours=hours) as stage:
        await stage.agent(Another)
    async with serving(Worker, store=store, hours=hours) as stage:
        await stage.until("job:finished")


async def test_an_agent_whose_start_fails_is_tried_again_and_keeps_nobody_waiting():
    fails = True

    class Failing(Worker, name="failing"):
        async def on_start(self) -> None:
            if fails:
                raise ConnectionError("not yet")

    async with serving(Failing, Worker, idle_timeout=1.0) as stage:
        fails = False
        await (await stage.agent(Failing)).jobs.enqueue("fail", delay=10)
        await (await stage.agent(Worker)).jobs.enqueue("fail", delay=10)
        stage.hours.move(5)
        await stage.host.put_to_sleep()
        fails = True
        stage.hours.move(5)
        assert (await stage.until("job:finished"))[0]["agent"] == "worker/x"
        fails = False
        while len(stage.told("job:finished")) < 2:
            stage.hours.move(1)
            await asyncio.sleep(0)


async def test_a_damaged_row_ends_and_the_others_run(tmp_path: Path):
    import sqlite3
    from contextlib import closing

    store, hours = tmp_path / "jobs.db", Hours()
    async with serving(Worker, store=store, hours=hours) as stage:
        agent = await stage.agent(Worker)
        broken = await agent.jobs.enqueue("fail", delay=10)
        await agent.jobs.enqueue("fail", delay=11)
    with closing(sqlite3.connect(store)) as link, link:
        link.execute("UPDATE jobs SET payload = '{broken' WHERE id = ?", (broken.id,))
    link.close()
    hours.move(20)
    async with serving(Worker, store=store, hours=hours) as stage:
        await stage.until("job:finished")
        agent = await stage.agent(Worker)
        assert [job.status for job in await agent.jobs.list()] == ["done"]
    with closing(sqlite3.connect(store)) as link, link:
        rows = link.execute("SELECT status FROM jobs WHERE id = ?", (broken.id,)).fetchall()
    link.close()
    assert rows == [("failed",)]
