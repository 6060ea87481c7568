"""How often schedules, tasks and queue items of a class are tried (spec/04 §11, §12, §23.64)."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from tests.jobs.support import serving
from thinkwell import Think, scheduled
from thinkwell.errors import AgentDefinitionError
from thinkwell.journal.jobs import Job, jobs_of_agent
from thinkwell.schedules import RetryOptions, ScheduledTask
from thinkwell.testing import ScriptedModel


class Clerk(Think):
    model = ScriptedModel([])
    retry_options = RetryOptions(max_attempts=7, base_delay=2.0, max_delay=60.0)

    def get_scheduled_tasks(self):
        return {"digest": ScheduledTask("every 20 minutes", prompt="What is new?")}

    @scheduled("every 15 minutes")
    async def collect(self) -> None: ...

    @scheduled("every 15 minutes", retry={"max_attempts": 2})
    async def sweep(self) -> None: ...

    async def work(self) -> None: ...


def tries(job: Job) -> tuple[int, float, float]:
    return job.max_attempts, job.base_delay, job.max_delay


async def test_what_says_nothing_of_its_own_is_tried_as_the_class_says():
    async with serving(Clerk) as stage:
        agent = await stage.agent(Clerk)
        await agent.reconcile_scheduled_tasks()
        plain = await agent.schedules.schedule("work", delay=3600)
        some = await agent.schedules.schedule("work", delay=3600, retry={"max_attempts": 3})
        own = await agent.schedules.schedule("work", delay=3600, retry=RetryOptions())
        stored = await jobs_of_agent(
            cast("Any", stage.host)._store, "clerk/x", status=None, name=None, limit=50
        )
        by_id = {job.id: tries(job) for job in stored}
        assert by_id[plain.id] == (7, 2.0, 60.0)
        assert by_id[some.id] == (3, 2.0, 60.0)  # a dict changes what it names
        assert by_id[own.id] == (3, 0.1, 3.0)  # options stand for themselves
        tasks = {
            str(job.key).rpartition(":")[2]: tries(job) for job in stored if job.kind == "task"
        }
        assert tasks["digest"] == tasks["collect"] == (7, 2.0, 60.0)
        assert tasks["sweep"][0] == 2


async def test_an_item_of_the_queue_is_given_up_after_as_many_attempts_as_the_class_says():
    class Broken(Clerk, name="broken"):
        retry_options = RetryOptions(max_attempts=2, base_delay=0.001, max_delay=0.001)

        async def work(self) -> None:
            raise ConnectionError("broken")

    async with serving(Broken) as stage:
        agent = await stage.agent(Broken)
        await agent.schedules.queue("work")
        while not stage.told("queue:error"):
            stage.hours.move(1)
            await asyncio.sleep(0)
        assert [told["attempts"] for told in stage.told("queue:error")] == [2]


async def test_retry_takes_the_class_s_options_where_the_call_leaves_them_out():
    class Twice(Clerk, name="twice"):
        retry_options = RetryOptions(max_attempts=2, base_delay=0.001, max_delay=0.001)

    seen: list[int] = []

    def work(attempt: int) -> None:
        seen.append(attempt)
        raise ConnectionError

    async with serving(Twice) as stage:
        agent = await stage.agent(Twice)
        with pytest.raises(ConnectionError):
            await agent.retry(work)
        with pytest.raises(ConnectionError):
            await agent.retry(work, max_attempts=1)
    assert seen == [1, 2, 1]


def test_options_that_would_never_run_anything_are_refused_with_the_class():
    with pytest.raises(AgentDefinitionError, match="retry_options"):

        class Never(Think):
            retry_options = RetryOptions(max_attempts=0)
