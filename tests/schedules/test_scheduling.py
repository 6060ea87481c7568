"""`schedule`, `schedule_every` and their kin: one job row each (spec/04 §12)."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.jobs.support import Hours, Stage, serving
from thinkwell import Think
from thinkwell.agent.agent import Agent
from thinkwell.core.errors import JobError, ScheduleError
from thinkwell.core.limits import Limits
from thinkwell.core.principal import Principal
from thinkwell.core.serving import ServedFor
from thinkwell.core.serving import serving as served
from thinkwell.hooks.jobs import JobContext
from thinkwell.schedules import RetryOptions
from thinkwell.testing import ScriptedModel

START = datetime(2026, 3, 28, 12, 0, tzinfo=UTC)


def hours() -> Hours:
    return Hours(START.timestamp())


class Clerk(Agent):
    called: list[Any]
    errors: list[str]
    failing = 0

    async def on_start(self) -> None:
        self.called, self.errors = [], []

    async def note(self, payload: Any, ctx: JobContext) -> None:
        self.called.append((payload, ctx.attempt))
        if self.failing > 0:
            self.failing -= 1
            raise ConnectionError("nobody answers")

    async def other(self) -> None: ...

    def on_error(self, error: Exception, connection: Any) -> None:
        self.errors.append(str(error))


class Chatting(Think):
    model = ScriptedModel([])
    called: list[Any]

    async def on_start(self) -> None:
        self.called = []

    async def note(self, payload: Any) -> None:
        self.called.append(payload)


async def move_until(stage: Stage, step: float, event: str, count: int) -> None:
    """Let time go by until an event has come so often."""
    while len(stage.told(event)) < count:
        stage.hours.move(step)
        await asyncio.sleep(0.001)


async def test_a_delay_a_moment_a_cron_expression_and_an_interval():
    async with serving(Clerk, hours=hours()) as stage:
        agent = await stage.agent(Clerk)
        now = stage.hours.now()
        delayed = await agent.schedules.schedule("note", 1, delay=60)
        dated = await agent.schedules.schedule(agent.note, 2, at=START + timedelta(hours=1))
        cron = await agent.schedules.schedule("note", 3, cron="0 13 * * *", tz="europe/berlin")
        every = await agent.schedules.schedule("note", 4, every=timedelta(minutes=5))
        assert (delayed.type, delayed.time, delayed.delay) == ("delayed", now + 60, 60)
        assert (dated.type, dated.time) == ("scheduled", now + 3600)
        assert (cron.type, cron.timezone) == ("cron", "Europe/Berlin")
        assert cron.time == datetime(2026, 3, 29, 11, 0, tzinfo=UTC).timestamp()  # summer time
        assert (every.type, every.time, every.every) == ("interval", now + 300, 300)
        listed = await agent.schedules.list()
        assert [s.id for s in listed] == [delayed.id, every.id, dated.id, cron.id]
        assert [s.id for s in await agent.schedules.list(type="cron")] == [cron.id]
        soon = await agent.schedules.list(end=START + timedelta(minutes=10))
        assert [s.id for s in soon] == [delayed.id, every.id]
        assert [e["callback"] for e in stage.told("schedule:create")] == ["note"] * 4


async def test_what_runs_once_is_called_at_its_time_and_then_gone():
    async with serving(Clerk, hours=hours()) as stage:
        agent = await stage.agent(Clerk)
        made = await agent.schedules.schedule("note", {"n": 1}, delay=60)
        stage.hours.move(59)
        await asyncio.sleep(0.01)
        assert agent.called == []
        stage.hours.move(1)
        await stage.until("job:finished")
        assert agent.called == [({"n": 1}, 1)]
        assert await agent.schedules.get(made.id) is None
        assert (await agent.schedules.list()) == []
        assert (await agent.jobs.get(made.id)).status == "done"
        assert stage.told("schedule:execute")[0]["id"] == made.id


async def test_an_interval_counts_from_the_end_of_a_run():
    async with serving(Clerk, hours=hours()) as stage:
        agent = await stage.agent(Clerk)
        made = await agent.schedules.schedule("note", every=60)
        for round in (1, 2, 3):
            stage.hours.move(90)  # thirty seconds late each time
            await stage.until("job:finished", round)
            again = await agent.schedules.get(made.id)
            assert again.time == stage.hours.now() + 60
        assert len(agent.called) == 3
        assert again.outcome == "done"


async def test_an_overdue_cron_schedule_runs_once():
    async with serving(Clerk, hours=hours()) as stage:
        agent = await stage.agent(Clerk)
        made = await agent.schedules.schedule("note", cron="0 * * * *")
        stage.hours.move(72 * 3600 + 5)
        await stage.until("job:finished")
        again = await agent.schedules.get(made.id)
        assert len(agent.called) == 1
        assert again.time == stage.hours.now() - 5 + 3600


async def test_what_comes_again_is_stored_once_and_other_calls_when_they_ask_for_it():
    async with serving(Clerk, hours=hours()) as stage:
        agent = await stage.agent(Clerk)
        plan = agent.schedules.schedule
        for asked in (
            {"cron": "0 9 * * *"},
            {"every": 60},
            {"delay": 5, "idempotent": True},
            {"at": START, "idempotent": True},
        ):
            first = await plan("note", {"b": 1, "a": 2}, **asked)
            assert (await plan("note", {"a": 2, "b": 1}, **asked)).id == first.id
            assert (await plan("note", {"a": 3}, **asked)).id != first.id
            assert (await plan("other", {"a": 2, "b": 1}, **asked)).id != first.id
        assert (await plan("note", 1, every=60)).id != (await plan("note", 1, every=61)).id
        assert (await plan("note", 1, delay=60)).id != (await plan("note", 1, delay=60)).id
        later = await plan("note", 5, delay=60, idempotent=True)
        assert (await plan("note", 5, delay=90, idempotent=True)).id == later.id  # not the time


async def test_the_same_schedule_twice_in_one_block_is_one():
    async with serving(Clerk, hours=hours()) as stage:
        agent = await stage.agent(Clerk)
        async with agent.storage.together():
            first = await agent.schedules.schedule("note", 1, every=60)
            assert (await agent.schedules.schedule("note", 1, every=60)).id == first.id
            assert (await agent.schedules.schedule("note", 2, every=60)).id != first.id
            plain = await agent.schedules.schedule("note", 1, delay=60)
            once = await agent.schedules.schedule("note", 1, delay=90, idempotent=True)
            assert once.id == plain.id
            again = await agent.schedules.schedule("note", 1, delay=60, idempotent=False)
            assert again.id != plain.id
        assert len(await agent.schedules.list()) == 4


async def test_a_block_whose_schedule_was_made_elsewhere_meanwhile_stores_nothing_and_says_so():
    async with serving(Clerk, hours=hours()) as stage:
        agent = await stage.agent(Clerk)

        async def block() -> Any:
            async with agent.storage.together():
                made = await agent.schedules.schedule("note", every=60)
                await agent.storage.set("made", made.id)
                if not elsewhere:
                    other = agent.schedules.schedule("note", every=60)
                    elsewhere.append(await asyncio.create_task(other))
            return made

        elsewhere: list[Any] = []
        with pytest.raises(JobError, match="nothing of the block is stored"):
            await block()
        assert await agent.storage.get("made") is None
        assert (await block()).id == elsewhere[0].id == await agent.storage.get("made")


async def test_what_two_people_schedule_is_two_schedules():
    """One for both would run in the name of whoever came first."""
    ann, bob = Principal(id="ann", claims={"role": "a"}), Principal(id="bob")
    async with serving(Clerk, hours=hours()) as stage:
        agent = await stage.agent(Clerk)

        async def plan(who: Principal | None, *, readonly: bool = False) -> str:
            with served("clerk/x", ServedFor(who, readonly)):
                return (await agent.schedules.schedule("note", every=60)).id

        made = [await plan(who) for who in (ann, bob, None)]
        made.append(await plan(bob, readonly=True))
        assert len(set(made)) == 4
        ann_again = Principal(id="ann", claims={"role": "b"}, expires_at=5.0)
        assert [await plan(who) for who in (ann_again, bob, None)] == made[:3]
        jobs = {job.id: job.principal for job in await agent.jobs.list()}
        assert [jobs[id] and jobs[id].id for id in made] == ["ann", "bob", None, "bob"]


class Starting(Clerk):
    async def on_start(self) -> None:
        await super().on_start()
        await self.schedules.schedule("note", every=60)


async def test_an_interval_made_in_on_start_is_one_row_after_fifty_starts(tmp_path: Path):
    """spec/04 §23.62"""
    store, clock = tmp_path / "s.db", hours()
    ids: set[str] = set()
    for _ in range(50):
        async with serving(Starting, store=store, hours=clock) as stage:
            agent = await stage.agent(Starting)
            ids |= {made.id for made in await agent.schedules.list()}
            clock.move(1)
    assert len(ids) == 1
    async with serving(Starting, store=store, hours=clock) as stage:
        agent = await stage.agent(Starting)
        await move_until(stage, 30, "job:finished", 2)
        assert len(agent.called) == 2


class Careless(Clerk):
    async def on_start(self) -> None:
        await super().on_start()
        await self.schedules.schedule("note", delay=60)
        await self.schedules.schedule("note", delay=61)


async def test_a_delay_in_on_start_is_warned_about_once_for_each_callback(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
):
    store, clock = tmp_path / "s.db", hours()
    with caplog.at_level(logging.WARNING, logger="thinkwell.schedules"):
        async with serving(Careless, store=store, hours=clock) as stage:
            await stage.agent(Careless)
    assert len([r for r in caplog.records if "idempotent=True" in r.getMessage()]) == 1
    told: list[Any] = []
    for _ in range(4):
        async with serving(Careless, store=store, hours=clock) as stage:
            await stage.agent(Careless)
            told = stage.told("schedule:duplicate_warning")
    assert told == [{"agent": "careless/x", "callback": "note", "count": 10}]


async def test_a_run_that_fails_is_tried_again_and_its_series_goes_on():
    async with serving(Clerk, hours=hours()) as stage:
        agent = await stage.agent(Clerk)
        agent.failing = 3
        made = await agent.schedules.schedule("note", every=600)
        await move_until(stage, 300, "schedule:error", 1)
        assert [attempt for _, attempt in agent.called] == [1, 2, 3]
        assert len(stage.told("schedule:retry")) == 2
        assert agent.errors == ["nobody answers"]
        again = await agent.schedules.get(made.id)
        assert (again.outcome, again.error) == ("failed", "ConnectionError: nobody answers")
        assert again.time > stage.hours.now()
        await move_until(stage, 300, "job:finished", 1)
        again = await agent.schedules.get(made.id)
        assert (again.outcome, again.error) == ("done", None)


async def test_a_schedule_that_runs_once_and_fails_is_given_up():
    async with serving(Clerk, hours=hours()) as stage:
        agent = await stage.agent(Clerk)
        agent.failing = 9
        made = await agent.schedules.schedule("note", delay=1, retry={"max_attempts": 2})
        await move_until(stage, 10, "schedule:error", 1)
        assert stage.told("schedule:error")[0]["attempts"] == 2
        assert await agent.schedules.get(made.id) is None
        assert (await agent.jobs.get(made.id)).status == "failed"


class SelfEnding(Clerk):
    async def poll(self, ctx: JobContext) -> None:
        self.called.append(ctx.id)
        assert await self.schedules.cancel(ctx.id)
        assert not ctx.signal.aborted  # it ends itself, it is not stopped


async def test_a_callback_may_cancel_its_own_schedule():
    async with serving(SelfEnding, hours=hours()) as stage:
        agent = await stage.agent(SelfEnding)
        made = await agent.schedules.schedule("poll", every=60)
        stage.hours.move(60)
        await stage.until("job:finished")
        assert await agent.schedules.list() == []
        assert (await agent.jobs.get(made.id)).status == "done"
        assert len(stage.told("schedule:cancel")) == 1


async def test_a_cancelled_schedule_does_not_come():
    async with serving(Clerk, hours=hours()) as stage:
        agent = await stage.agent(Clerk)
        made = await agent.schedules.schedule("note", every=60)
        assert await agent.schedules.cancel(made.id)
        assert not await agent.schedules.cancel(made.id)
        assert not await agent.schedules.cancel("nobody")
        stage.hours.move(600)
        await asyncio.sleep(0.01)
        assert agent.called == []


async def test_a_schedule_belongs_to_one_agent():
    async with serving(Clerk, hours=hours()) as stage:
        ann, bob = await stage.agent(Clerk, "ann"), await stage.agent(Clerk, "bob")
        made = await ann.schedules.schedule("note", every=60)
        assert await bob.schedules.get(made.id) is None
        assert not await bob.schedules.cancel(made.id)
        assert await bob.schedules.list() == []
        assert len(await ann.schedules.list()) == 1


async def test_a_plain_job_is_no_schedule():
    async with serving(Clerk, hours=hours()) as stage:
        agent = await stage.agent(Clerk)
        job = await agent.jobs.enqueue("note", delay=60)
        assert await agent.schedules.get(job.id) is None
        assert not await agent.schedules.cancel(job.id)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, "no time"),
        ({"delay": 1, "every": 2}, "delay= and every="),
        ({"delay": -1}, "0 or more"),
        ({"delay": True}, "0 or more"),
        ({"delay": 1.9e9}, "at=datetime"),
        ({"every": 0}, "longer than 0"),
        ({"every": 31 * 24 * 3600}, "at most 30 days"),
        ({"at": 5}, "is no datetime"),
        ({"at": datetime(2026, 1, 1)}, "has no time zone"),  # noqa: DTZ001
        ({"cron": "every day"}, "five fields"),
        ({"cron": "0 9 * * *", "tz": "Mars/Base"}, "no time zone 'Mars/Base'"),
        ({"every": 5, "tz": "UTC"}, "only cron="),
        ({"delay": 1, "retry": 5}, "RetryOptions"),
        ({"delay": 1, "retry": {"max_attempts": 0}}, "max_attempts=0"),
        ({"delay": 1, "retry": {"base_delay_ms": 5000}}, "base_delay=5"),
        ({"delay": 1, "retry": {"atempts": 5}}, "no 'atempts'"),
        ({"delay": 1, "retry": RetryOptions(base_delay=5.0)}, "max_delay=50"),
        ({"delay": 1, "retry": {"base_delay": float("nan")}}, "no pause"),
    ],
)
async def test_wrong_options_are_refused_and_nothing_is_stored(asked: dict[str, Any], said: str):
    """spec/04 §23.65"""
    async with serving(Clerk, hours=hours()) as stage:
        agent = await stage.agent(Clerk)
        with pytest.raises(ScheduleError) as refused:
            await agent.schedules.schedule("note", **asked)
        assert said in str(refused.value)
        assert await agent.jobs.list() == []


@pytest.mark.parametrize("callback", ["notes", "_note", "on_start", "schedules.task", 5, print])
async def test_a_callback_that_cannot_run_is_refused_at_once(callback: Any):
    async with serving(Clerk, hours=hours()) as stage:
        agent = await stage.agent(Clerk)
        with pytest.raises(JobError):
            await agent.schedules.schedule(callback, delay=1)
        with pytest.raises(JobError):
            await agent.schedules.queue(callback)
        assert await agent.jobs.list() == []


async def test_a_method_of_another_agent_is_refused():
    async with serving(Clerk, hours=hours()) as stage:
        ann, bob = await stage.agent(Clerk, "ann"), await stage.agent(Clerk, "bob")
        with pytest.raises(JobError, match="of the agent itself"):
            await ann.schedules.schedule(bob.note, delay=1)


async def test_an_agent_with_schedules_sleeps_and_one_timer_waits_for_all():
    """spec/04 §23.47: a sleeping agent costs no timer and no memory of its own."""
    async with serving(Clerk, hours=hours(), idle_timeout=1.0) as stage:
        for n in range(50):
            agent = await stage.agent(Clerk, f"a{n}")
            await agent.schedules.schedule("note", every=3600)
        stage.hours.move(10)
        await stage.host.put_to_sleep()
        assert stage.host.status()["awake"] == 0
        await asyncio.sleep(0.01)
        near = [at for at in stage.hours.timers if at <= stage.hours.now() + 3600]
        assert len(near) <= 2  # the runner's alarm, and the host's own
        stage.hours.move(3600)
        await stage.until("job:finished", 50)


async def test_without_schedules_nothing_is_armed():
    """spec/04 §23.47"""
    async with serving(Clerk, hours=hours()) as stage:
        await stage.agent(Clerk)
        await asyncio.sleep(0.01)
        jobs = [at for at in stage.hours.timers if at < stage.hours.now() + 60]
        assert jobs == []


async def test_the_clock_stepping_back_repeats_nothing():
    async with serving(Clerk, hours=hours()) as stage:
        agent = await stage.agent(Clerk)
        made = await agent.schedules.schedule("note", cron="0 13 * * *")
        stage.hours.move(3600)
        await stage.until("job:finished")
        stage.hours.move(-7200)
        agent.failing = 1
        again = await agent.schedules.get(made.id)
        assert again.time == (START + timedelta(days=1, hours=1)).timestamp()
        stage.hours.move(7200)
        await asyncio.sleep(0.01)
        assert len(agent.called) == 1


class Killing(Clerk):
    async def note(self, payload: Any, ctx: JobContext) -> None:
        self.called.append(ctx.attempt)
        await asyncio.Event().wait()


async def test_a_run_that_was_cut_off_by_a_stop_begins_again_at_the_next_start(tmp_path: Path):
    """spec/04 §23.63: nothing waits for a hung run of a process that is gone."""
    store, clock = tmp_path / "s.db", hours()
    async with serving(Killing, store=store, hours=clock) as stage:
        agent = await stage.agent(Killing)
        await agent.schedules.schedule("note", every=600)
        clock.move(600)
        await stage.until("schedule:execute")
    async with serving(Killing, store=store, hours=clock) as stage:
        await stage.until("schedule:execute")
        assert len(await (await stage.agent(Killing)).schedules.list()) == 1


# The names of the reference


async def test_the_references_names_do_the_same():
    async with serving(Chatting, hours=hours()) as stage:
        agent = await stage.agent(Chatting)
        delayed = await agent.schedule(60, "note", 1)
        dated = await agent.schedule(START + timedelta(hours=1), "note", 2)
        cron = await agent.schedule("0 9 * * *", agent.note, 3, tz="Asia/Tokyo")
        every = await agent.schedule_every(300, "note", 4)
        types = [s.type for s in await agent.list_schedules()]
        assert types == ["delayed", "interval", "scheduled", "cron"]
        assert (await agent.get_schedule_by_id(cron.id)).timezone == "Asia/Tokyo"
        assert [s.id for s in await agent.list_schedules(id=dated.id)] == [dated.id]
        until = (None, START + timedelta(minutes=2))
        assert [s.id for s in await agent.list_schedules(time_range=until)] == [delayed.id]
        assert await agent.cancel_schedule(every.id)
        with pytest.raises(ScheduleError, match="give seconds"):
            await agent.schedule(None, "note")
        stage.hours.move(60)
        await stage.until("job:finished")
        assert agent.called == [1]


async def test_retry_calls_until_it_works_and_raises_the_last_error():
    async with serving(Chatting) as stage:
        agent = await stage.agent(Chatting)
        tried: list[int] = []

        async def work(attempt: int) -> str:
            tried.append(attempt)
            if attempt < 3:
                raise ConnectionError(str(attempt))
            return "done"

        assert await agent.retry(work, base_delay=0.001, max_delay=0.002) == "done"
        assert tried == [1, 2, 3]
        with pytest.raises(ConnectionError, match="2"):
            await agent.retry(work, max_attempts=2, base_delay=0.001)
        with pytest.raises(ConnectionError, match="1"):
            await agent.retry(work, should_retry=lambda error, attempt: False)
        with pytest.raises(ScheduleError, match="max_delay=50"):
            await agent.retry(work, base_delay=5.0)
        assert await agent.retry(lambda attempt: attempt) == 1


async def test_many_due_jobs_of_one_callback_all_run():
    async with serving(Clerk, hours=hours(), limits=Limits(jobs_per_agent=4)) as stage:
        agent = await stage.agent(Clerk)
        for n in range(30):
            await agent.schedules.schedule("note", n, delay=60 - n)
        stage.hours.move(60)
        await stage.until("job:finished", 30)
        assert [payload for payload, _ in agent.called] == list(range(29, -1, -1))  # in due order
