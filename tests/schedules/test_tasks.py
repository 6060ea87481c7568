"""Declared tasks: reconcile, runs, failures, keys (spec/04 §11.3, §11.4, §23.56 to §23.61)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.jobs.support import Hours, Stage, serving
from tests.schedules.test_scheduling import move_until
from thinkwell import Think, scheduled
from thinkwell.agent.agent import Agent
from thinkwell.core.errors import AgentDefinitionError, ScheduleError
from thinkwell.features.schedules.declared import Declared
from thinkwell.features.schedules.reconcile import Arm, Describe, Remove, plan_reconcile
from thinkwell.features.schedules.task_context import owner_key
from thinkwell.features.schedules.timetable import parse_timetable, zoned
from thinkwell.host.client import AgentAddress
from thinkwell.journal.jobs import Job
from thinkwell.schedules import (
    RetryOptions,
    ScheduledTask,
    ScheduledTaskContext,
    define_scheduled_tasks,
    every,
)
from thinkwell.testing import ScriptedModel

START = datetime(2026, 3, 28, 12, 0, tzinfo=UTC)
NINE = datetime(2026, 3, 29, 9, 0, tzinfo=UTC)


def hours() -> Hours:
    return Hours(START.timestamp())


class Keeper(Agent):
    runs: list[ScheduledTaskContext]
    errors: list[str]
    broken = False

    async def on_start(self) -> None:
        self.runs, self.errors = [], []

    @scheduled("every day at 09:00 in UTC", retry={"max_attempts": 3}, metadata={"team": "a"})
    async def sweep(self, ctx: ScheduledTaskContext) -> None:
        self.runs.append(ctx)
        if self.broken:
            raise ConnectionError("no broom")

    def on_error(self, error: Exception, connection: Any) -> None:
        self.errors.append(str(error))


async def test_a_declared_task_runs_at_its_time_and_knows_which_run_it_is():
    async with serving(Keeper, hours=hours()) as stage:
        agent = await stage.agent(Keeper)
        (state,) = await agent.schedules.tasks()
        assert (state.name, state.schedule) == ("sweep", "every day at 09:00 in UTC")
        assert (state.next_run, state.outcome) == (NINE.timestamp(), None)
        stage.hours.move(21 * 3600 + 2.5)
        await stage.until("job:finished")
        (run,) = agent.runs
        assert (run.task_id, run.scheduled_for_date, run.attempt) == ("sweep", NINE, 1)
        assert run.occurrence_key == "sweep:2026-03-29T09:00:00Z"
        assert run.idempotency_key == f"schedule:{owner_key('keeper/x')}:{run.occurrence_key}"
        assert (run.schedule_kind, run.timezone) == ("wall-clock", "UTC")
        assert run.metadata == {"team": "a"}
        (state,) = await agent.schedules.tasks()
        assert (state.next_run, state.outcome) == ((NINE + timedelta(days=1)).timestamp(), "done")


async def test_a_host_that_was_down_for_three_days_runs_a_daily_task_once(tmp_path: Path):
    """spec/04 §23.58"""
    store, clock = tmp_path / "t.db", hours()
    async with serving(Keeper, store=store, hours=clock) as stage:
        await stage.agent(Keeper)
    clock.move(3 * 24 * 3600)
    async with serving(Keeper, store=store, hours=clock) as stage:
        await stage.until("job:finished")
        agent = await stage.agent(Keeper)
        assert [run.scheduled_for_date for run in agent.runs] == [NINE]
        (state,) = await agent.schedules.tasks()
        assert state.next_run == (NINE + timedelta(days=3)).timestamp()


async def test_a_handler_that_fails_is_called_three_times_and_comes_again():
    """spec/04 §23.60"""
    async with serving(Keeper, hours=hours()) as stage:
        agent = await stage.agent(Keeper)
        agent.broken = True
        stage.hours.move(21 * 3600)
        await move_until(stage, 5, "schedule:error", 1)
        assert [run.attempt for run in agent.runs] == [1, 2, 3]
        assert len({run.idempotency_key for run in agent.runs}) == 1
        assert agent.errors == ["no broom"]
        assert stage.told("schedule:error")[0]["callback"] == "sweep"
        (state,) = await agent.schedules.tasks()
        assert (state.outcome, state.error) == ("failed", "ConnectionError: no broom")
        assert state.next_run == (NINE + timedelta(days=1)).timestamp()
        agent.broken = False
        stage.hours.move(24 * 3600)
        await stage.until("job:finished")
        assert agent.runs[-1].scheduled_for_date == NINE + timedelta(days=1)


class Asking(Think):
    model = ScriptedModel(["Good morning."] * 4)  # one for each test below
    prompts: Any = "Write the digest."
    zone: str | None = "UTC"
    schedule_text = "every weekday at 09:00"

    def get_default_timezone(self) -> str | None:
        return self.zone

    def get_scheduled_tasks(self) -> Mapping[str, ScheduledTask]:
        return {
            "digest": ScheduledTask(self.schedule_text, prompt=self.prompts, metadata={"team": "a"})
        }


MONDAY = datetime(2026, 3, 30, 9, 0, tzinfo=UTC)


async def test_a_prompt_becomes_one_submission():
    """M-078"""
    async with serving(Asking, hours=hours()) as stage:
        agent = await stage.agent(Asking)
        stage.hours.move((MONDAY - START).total_seconds())
        (turn,) = await stage.until("chat:turn:finish")
        messages = await agent.get_messages()
        assert [m["role"] for m in messages] == ["user", "assistant"]
        assert messages[0]["parts"][0]["text"] == "Write the digest."
        record = await agent.schedules.kit.find(turn["request_id"])
        assert record.metadata == {
            "team": "a",
            "source": "scheduled-task",
            "owner_key": owner_key("asking/x"),
            "task_id": "digest",
            "scheduled_for": "2026-03-30T09:00:00Z",
            "schedule": "every weekday at 09:00 in UTC",
        }


async def test_a_prompt_may_be_made_when_it_is_time():
    async with serving(Asking, hours=hours()) as stage:
        agent = await stage.agent(Asking)

        async def prompt(ctx: ScheduledTaskContext) -> str:
            return f"It is {ctx.scheduled_for_date:%A}."

        agent.prompts = prompt
        await agent.reconcile_scheduled_tasks()
        stage.hours.move((MONDAY - START).total_seconds())
        await stage.until("chat:turn:finish")
        assert (await agent.get_messages())[0]["parts"][0]["text"] == "It is Monday."


async def test_a_run_finds_its_turn_although_its_prompt_is_made_anew():
    """As after a crash between the submission and the end of the job (j4)."""
    async with serving(Asking, hours=hours()) as stage:
        agent = await stage.agent(Asking)
        texts = iter(["The first.", "The second."])
        agent.prompts = lambda: next(texts)
        await agent.reconcile_scheduled_tasks()
        admit, kit = agent.schedules.kit.admit, agent.schedules.kit

        async def die_after(*args: Any, **rest: Any) -> Any:
            kit.admit = admit
            await admit(*args, **rest)
            raise ConnectionError("as if the process died here")

        kit.admit = die_after
        stage.hours.move((MONDAY - START).total_seconds())
        await stage.until("chat:turn:finish")
        while (state := (await agent.schedules.tasks())[0]).outcome is None:
            stage.hours.move(1)
            await asyncio.sleep(0.01)
        assert state.outcome == "done"
        asked = [m["parts"][0]["text"] for m in await agent.get_messages() if m["role"] == "user"]
        assert asked == ["The first."]


async def test_only_the_prompt_changed_keeps_the_time_and_another_zone_does_not(tmp_path: Path):
    """spec/04 §23.61"""
    async with serving(Asking, hours=hours()) as stage:
        agent = await stage.agent(Asking)
        before = (await agent.schedules.tasks())[0]
        (job,) = await agent.jobs.list()
        stage.hours.move(3600)
        agent.prompts = "Another one."
        assert await agent.reconcile_scheduled_tasks() == ["digest"]
        assert (await agent.schedules.tasks())[0] == before
        assert await agent.reconcile_scheduled_tasks() == []
        agent.zone = "Asia/Tokyo"
        assert await agent.reconcile_scheduled_tasks() == ["digest"]
        (after,) = await agent.schedules.tasks()
        assert after.next_run == (MONDAY - timedelta(hours=9)).timestamp()
        assert [known.id for known in await agent.jobs.list()] == [job.id]  # the same row


class Patient(Keeper, name="keeper"):
    @scheduled("every day at 09:00 in UTC", retry={"max_attempts": 5}, metadata={"team": "a"})
    async def sweep(self, ctx: ScheduledTaskContext) -> None:
        self.runs.append(ctx)


async def test_a_deploy_that_changes_only_the_attempts_keeps_the_run_that_is_due(tmp_path: Path):
    store, clock = tmp_path / "t.db", hours()
    async with serving(Keeper, store=store, hours=clock) as stage:
        agent = await stage.agent(Keeper)
        agent.broken = True
        clock.move(21 * 3600)
        await stage.until("job:retried")  # one attempt of today's run has failed
    clock.move(3600)
    async with serving(Patient, store=store, hours=clock) as stage:
        await stage.until("job:finished")
        agent = await stage.agent(Patient)
        assert [(run.scheduled_for_date, run.attempt) for run in agent.runs] == [(NINE, 2)]
        (job,) = await agent.jobs.list()
        assert job.max_attempts == 5
        assert await agent.schedules.reconcile() == []


async def test_a_task_that_is_declared_no_more_goes_and_everything_else_stays(tmp_path: Path):
    store, clock = tmp_path / "t.db", hours()

    class Two(Agent, name="two"):
        @scheduled("every 5 minutes")
        async def first(self) -> None: ...

        @scheduled("every 7 minutes")
        async def second(self) -> None: ...

    class One(Agent, name="two"):
        @scheduled("every 7 minutes")
        async def second(self) -> None: ...

    async with serving(Two, store=store, hours=clock) as stage:
        agent = await stage.agent(Two)
        await agent.schedules.schedule("first", every=60)
        kept = (await agent.schedules.tasks())[1]
        other = await stage.agent(Two, "y")
        assert len(await other.schedules.tasks()) == 2
    clock.move(30)
    async with serving(One, store=store, hours=clock) as stage:
        agent = await stage.agent(One)
        assert await agent.schedules.tasks() == [kept]
        assert len(await agent.schedules.list()) == 1
        assert [e["callback"] for e in stage.told("schedule:cancel")] == ["first"]
    async with serving(Two, store=store, hours=clock) as stage:  # declared again
        agent = await stage.agent(Two)
        again, same = await agent.schedules.tasks()
        assert (again.next_run, same) == (clock.now() + 300, kept)


@pytest.mark.parametrize(
    ("tasks", "said"),
    [
        ({"a": "every day at 09:00"}, "is 'every day at 09:00'"),
        ({"a b": ScheduledTask("every 5 minutes", prompt="x")}, "no name of a task"),
        ([], "Return tasks by name"),
        ({"a": ScheduledTask("every day at 09:00", prompt="x")}, "names no time zone"),
    ],
)
async def test_a_wrong_declaration_is_refused_and_nothing_is_stored(tasks: Any, said: str):
    """spec/04 §23.56: the stored tasks stay as they were, and the agent serves (§18)."""

    class Wrong(Asking):
        zone = None
        tasks: Any = {"kept": ScheduledTask("every 5 minutes", prompt="x")}

        def get_scheduled_tasks(self) -> Any:
            return self.tasks

    async with serving(Wrong, hours=hours()) as stage:
        agent = await stage.agent(Wrong)
        before = await agent.schedules.tasks()
        agent.tasks = tasks
        with pytest.raises(ScheduleError) as refused:
            await agent.reconcile_scheduled_tasks()
        assert said in str(refused.value)
        assert await agent.schedules.tasks() == before


class Unreadable(Asking):
    def get_scheduled_tasks(self) -> Any:
        raise RuntimeError("no settings")


async def test_an_agent_whose_tasks_cannot_be_read_still_serves():
    async with serving(Unreadable, hours=hours()) as stage:
        agent = await stage.agent(Unreadable)
        assert (await agent.run("hello")).status == "completed"
        (told,) = stage.told("schedule:reconcile_failed")
        assert told == {"agent": "unreadable/x", "error": "RuntimeError: no settings"}


async def test_an_agent_that_does_not_chat_has_no_prompts():
    class Silent(Agent):
        def get_scheduled_tasks(self) -> Any:
            return {"a": ScheduledTask("every 5 minutes", prompt="x")}

    async with serving(Silent, hours=hours()) as stage:
        agent = await stage.agent(Silent)
        with pytest.raises(ScheduleError, match="does not chat"):
            await agent.schedules.reconcile()


async def test_whoever_only_looks_at_an_agent_arms_nothing_until_it_is_born():
    """Made-up names in URLs must not fill the file with tasks."""
    async with serving(Asking, hours=hours()) as stage:
        address = AgentAddress("asking", "nobody")
        looked_at = (await stage.host.agent(address, create=False)).agent
        assert await looked_at.schedules.tasks() == []
        await looked_at.storage.set("k", 1)  # now it has a row
        while not await looked_at.schedules.tasks():
            await asyncio.sleep(0)
        assert len(await looked_at.schedules.tasks()) == 1


async def test_a_task_can_be_run_now_beside_its_own_times():
    async with serving(Keeper, hours=hours()) as stage:
        agent = await stage.agent(Keeper)
        await agent.schedules.run_task("sweep")
        await stage.until("job:finished")
        (run,) = agent.runs
        assert run.scheduled_for_date == START
        assert (await agent.schedules.tasks())[0].next_run == NINE.timestamp()
        with pytest.raises(ScheduleError, match="There are: sweep"):
            await agent.schedules.run_task("swep")


class Slow(Agent):
    started: asyncio.Event
    go_on: asyncio.Event
    text = "every 5 minutes"

    async def on_start(self) -> None:
        self.started, self.go_on = asyncio.Event(), asyncio.Event()

    def get_scheduled_tasks(self) -> Mapping[str, ScheduledTask]:
        return {"work": ScheduledTask(self.text, handler=self.work)} if self.text else {}

    async def work(self) -> None:
        self.started.set()
        await self.go_on.wait()


async def _running(stage: Stage) -> Slow:
    agent = await stage.agent(Slow)
    stage.hours.move(300)
    await agent.started.wait()
    return agent


async def test_a_schedule_that_changes_while_it_runs_holds_from_the_next_run_on():
    async with serving(Slow, hours=hours()) as stage:
        agent = await _running(stage)
        agent.text = "every 2 hours"
        assert await agent.schedules.reconcile() == ["work"]
        agent.go_on.set()
        await stage.until("job:finished")
        (state,) = await agent.schedules.tasks()
        assert state.next_run == stage.hours.now() + 7200


async def test_a_task_that_is_removed_while_it_runs_ends_and_comes_no_more():
    async with serving(Slow, hours=hours()) as stage:
        agent = await _running(stage)
        agent.text = ""
        assert await agent.schedules.reconcile() == ["work"]
        agent.go_on.set()
        await stage.until("job:finished")
        assert await agent.schedules.tasks() == []


# What is refused where it is written


def test_the_text_is_checked_when_the_decorator_runs():
    with pytest.raises(ScheduleError, match="weekdya"):

        class Wrong(Agent):
            @scheduled("every weekdya at 09:00 in UTC")
            async def work(self) -> None: ...


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "names no time zone"),
        ({"timezone": "UTC", "name": "a b"}, "no name of a task"),
    ],
)
def test_a_class_whose_tasks_could_never_run_is_refused(options: dict[str, Any], said: str):
    with pytest.raises(AgentDefinitionError) as refused:

        class Wrong(Think):
            @scheduled("every weekday at 09:00", **options)
            async def work(self) -> None: ...

    assert said in str(refused.value)
    assert "Wrong.work" in str(refused.value)


def test_two_tasks_of_one_name_are_refused_and_both_are_named():
    with pytest.raises(AgentDefinitionError, match=r"Wrong\.two and Wrong\.one"):

        class Wrong(Think):
            @scheduled("every 5 minutes")
            async def one(self) -> None: ...

            @scheduled("every 5 minutes", name="one")
            async def two(self) -> None: ...


def test_a_method_that_needs_more_than_the_context_is_refused():
    with pytest.raises(AgentDefinitionError, match="cannot be called by its schedule"):

        class Wrong(Think):
            @scheduled("every 5 minutes")
            async def work(self, payload: Any, more: Any) -> None: ...


def test_a_default_zone_of_the_class_makes_a_text_without_one_right():
    class Right(Asking):
        @scheduled("every weekday at 09:00")
        async def work(self) -> None: ...

    assert Right.agent_class == "right"


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: ScheduledTask("every 5 minutes"),  # pyright: ignore[reportCallIssue]
        lambda: ScheduledTask("every 5 minutes", prompt="x", handler=print),  # pyright: ignore[reportCallIssue]
        lambda: ScheduledTask("every 5 minutes", prompt=""),
        lambda: ScheduledTask("every 5 minutes", handler="work"),  # pyright: ignore[reportArgumentType]
        lambda: ScheduledTask("every 5 minutes", prompt="x", timezone="Mars/Base"),
        lambda: ScheduledTask("every 5 minutes", prompt="x", metadata={"a": object()}),
        lambda: ScheduledTask("every 5 minutes", prompt="x", retry={"max_attempts": 0}),
        lambda: define_scheduled_tasks({"a b": ScheduledTask(every.minute, prompt="x")}),
        lambda: define_scheduled_tasks({"a": "every 5 minutes"}),  # pyright: ignore[reportArgumentType]
        lambda: scheduled("every 5 minutes", timezone="UTC"),
        lambda: scheduled(print),  # pyright: ignore[reportArgumentType]
    ],
)
def test_a_task_is_checked_where_it_is_written(wrong: Any):
    with pytest.raises(ScheduleError):
        wrong()


# The plan


def declared(text: str, prompt: str = "x") -> Declared:
    task = ScheduledTask(text, prompt=prompt)
    return Declared(task, zoned(text), RetryOptions())


def stored(name: str, task: Declared, due_at: float) -> Job:
    return Job(agent_id="a/b", id=name, name="schedules.task", recurs=task.recurs, due_at=due_at)


TEXTS = st.sampled_from(["every 5 minutes", "every 2 hours", "every day at 09:00 in UTC"])
TASKS = st.dictionaries(
    st.sampled_from("abcd"), st.builds(declared, TEXTS, st.sampled_from(["x", "y"]))
)


@given(TASKS, TASKS)
def test_after_a_plan_is_carried_out_there_is_nothing_more_to_do(
    before: dict[str, Declared], now: dict[str, Declared]
):
    rows = {name: stored(name, task, 1e9 + 1) for name, task in before.items()}
    steps = plan_reconcile(now, rows, 1e9)
    for step in steps:
        match step:
            case Remove(job):
                del rows[job.id]
            case Describe(name, job):
                rows[name] = stored(name, now[name], job.due_at)
            case Arm(name, at):
                rows[name] = stored(name, now[name], at)
    assert {name: row.recurs for name, row in rows.items()} == {
        name: task.recurs for name, task in now.items()
    }
    assert plan_reconcile(now, rows, 1e9) == []
    for name in before.keys() & now.keys():
        same_times = before[name].timetable == now[name].timetable
        assert (rows[name].due_at == 1e9 + 1) == same_times


def test_a_timetable_means_the_same_however_it_is_written():
    written, typed = (
        declared("EVERY  day at 09:00 in utc"),
        parse_timetable(every.day.at(9, 0, "UTC")),
    )
    assert written.recurs == Declared(written.task, typed, RetryOptions()).recurs
