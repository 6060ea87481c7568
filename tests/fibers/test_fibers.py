"""Fibers: functions that remember how far they came (spec/04 §2, §3, §23.41-47)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.jobs.support import Hours, serving
from thinkwell import Think
from thinkwell.core.errors import FiberError
from thinkwell.core.limits import Limits
from thinkwell.fibers import FiberContext, FiberRecovery, fiber


class Worker(Think, name="worker"):
    seen: ClassVar[list[Any]] = []
    says: ClassVar[list[Any]] = []

    @fiber("import")
    async def import_files(self, ctx: FiberContext) -> None:
        self.seen.append((ctx.attempt, ctx.snapshot))
        await ctx.stash({"done": 3})
        if ctx.attempt == 1:
            await asyncio.Event().wait()

    @fiber("charge", auto_resume=False)
    async def charge_card(self, ctx: FiberContext) -> None:
        self.seen.append((ctx.attempt, ctx.snapshot))
        await asyncio.Event().wait()

    async def on_fiber_recovered(self, ctx: FiberRecovery) -> Any:
        self.seen.append(ctx)
        said = self.says.pop(0) if self.says else None
        if isinstance(said, Exception):
            raise said
        return said


@pytest.fixture(autouse=True)
def fresh():
    Worker.seen, Worker.says = [], []


async def value(ctx: FiberContext) -> str:
    return f"{ctx.name} at {ctx.attempt}"


async def for_ever(ctx: FiberContext) -> None:
    await ctx.stash({"at": 1})
    await asyncio.Event().wait()


async def broken(ctx: FiberContext) -> None:
    raise ValueError("no")


async def running(stage: Any, count: int = 1) -> None:
    await stage.until("fiber:run:started", count)


class TestRunning:
    async def test_gives_the_value_and_leaves_no_row(self):
        async with serving(Worker) as stage:
            agent = await stage.agent(Worker)
            assert await agent.run_fiber("sum", value) == "sum at 1"
            await stage.until("fiber:run:ended")
            assert await agent.list_fibers() == []
            assert await agent.jobs.list() == []

    async def test_raises_what_the_function_raises(self):
        async with serving(Worker) as stage:
            agent = await stage.agent(Worker)
            with pytest.raises(ValueError, match="no"):
                await agent.run_fiber("sum", broken)

    async def test_many_run_at_once_and_stash_for_themselves(self):
        async with serving(Worker) as stage:
            agent = await stage.agent(Worker)
            kept: dict[str, Any] = {}

            async def work(ctx: FiberContext) -> None:
                await agent.stash({"who": ctx.name})
                await asyncio.sleep(0)
                kept[ctx.name] = ctx.snapshot

            await asyncio.gather(*(agent.run_fiber(name, work) for name in "abc"))
            assert kept == {name: {"who": name} for name in "abc"}

    async def test_a_stash_outside_is_refused(self):
        async with serving(Worker) as stage:
            with pytest.raises(FiberError, match="outside of a fiber"):
                await (await stage.agent(Worker)).fibers.stash(1)

    async def test_what_cannot_be_stored_leaves_the_old_snapshot(self):
        async with serving(Worker) as stage:
            agent = await stage.agent(Worker)

            async def work(ctx: FiberContext) -> Any:
                await ctx.stash(1)
                with pytest.raises(FiberError, match="cannot be stored"):
                    await ctx.stash(object())
                return ctx.snapshot

            assert await agent.run_fiber("x", work) == 1


class TestStarting:
    async def test_can_be_looked_at_afterwards(self):
        async with serving(Worker) as stage:
            agent = await stage.agent(Worker)
            made = await agent.start_fiber(
                "sum", value, metadata={"n": 1}, wait_for_completion=True
            )
            assert (made.status, made.accepted, made.metadata) == ("completed", True, {"n": 1})
            await stage.until("job:finished")
            found = await agent.inspect_fiber(made.fiber_id)
            assert (found.status, found.settled_at is None) == ("completed", False)

    async def test_case_43_the_same_key_runs_once(self):
        async with serving(Worker) as stage:
            agent = await stage.agent(Worker)
            ran: list[str] = []

            async def work(ctx: FiberContext) -> None:
                ran.append(ctx.id)

            both = await asyncio.gather(
                *(
                    agent.start_fiber("x", work, idempotency_key="k", wait_for_completion=True)
                    for _ in range(2)
                )
            )
            assert sorted(each.accepted for each in both) == [False, True]
            assert {each.status for each in both} == {"completed"}
            assert len(ran) == 1
            assert (await agent.inspect_fiber_by_key("k")).fiber_id == ran[0]

    async def test_an_id_and_a_key_of_two_fibers_are_an_error(self):
        async with serving(Worker) as stage:
            agent = await stage.agent(Worker)
            await agent.start_fiber("x", value, fiber_id="a")
            await agent.start_fiber("x", value, idempotency_key="b")
            with pytest.raises(FiberError, match="two different fibers"):
                await agent.start_fiber("x", value, fiber_id="a", idempotency_key="b")
            for blank in ({"fiber_id": " "}, {"idempotency_key": ""}):
                with pytest.raises(FiberError, match="Give a text"):
                    await agent.start_fiber("x", value, **blank)

    async def test_an_error_is_its_status(self):
        async with serving(Worker) as stage:
            agent = await stage.agent(Worker)
            made = await agent.start_fiber("x", broken, wait_for_completion=True)
            assert (made.status, made.error) == ("error", "ValueError: no")

    async def test_case_44_who_waits_for_a_cancelled_one_goes_on_at_once(self):
        async with serving(Worker) as stage:
            agent = await stage.agent(Worker)
            ignored = asyncio.Event()

            async def stubborn(ctx: FiberContext) -> None:
                try:
                    await ignored.wait()
                except asyncio.CancelledError:
                    await ignored.wait()

            waits = asyncio.ensure_future(
                agent.start_fiber("x", stubborn, fiber_id="f", wait_for_completion=True)
            )
            await running(stage)
            assert await agent.cancel_fiber("f", "enough")
            ended = await waits
            assert (ended.status, ended.error) == ("aborted", "enough")
            ignored.set()
            await stage.until("job:cancelled")
            assert (await agent.inspect_fiber("f")).status == "aborted"
            assert not await agent.cancel_fiber("f")

    async def test_lists_and_deletes_by_status(self):
        async with serving(Worker) as stage:
            agent = await stage.agent(Worker)
            await agent.start_fiber("a", value, wait_for_completion=True)
            await agent.start_fiber("b", broken, wait_for_completion=True)
            await stage.until("job:finished", 2)
            await agent.start_fiber("c", for_ever)
            await running(stage, 3)
            assert [each.name for each in await agent.list_fibers()] == ["c", "b", "a"]
            assert [each.name for each in await agent.list_fibers("error")] == ["b"]
            assert [each.name for each in await agent.list_fibers(limit=0)] == ["c"]
            assert await agent.delete_fibers() == 2
            assert [each.name for each in await agent.list_fibers()] == ["c"]
            with pytest.raises(FiberError, match="There are: pending"):
                await agent.list_fibers("done")

    async def test_the_newest_is_first_whatever_ids_they_were_given(self):
        async with serving(Worker) as stage:
            agent = await stage.agent(Worker)
            for count, fiber_id in enumerate("bca", start=1):
                await agent.start_fiber("x", value, fiber_id=fiber_id)
                await stage.until("job:finished", count)
                stage.hours.move(1)
            assert [each.fiber_id for each in await agent.list_fibers()] == ["a", "c", "b"]
            assert await agent.delete_fibers(limit=1) == 1
            assert [each.fiber_id for each in await agent.list_fibers()] == ["a", "c"]


class TestAfterARestart:
    async def test_cases_41_42_each_is_told_of_once_with_what_it_stashed(self, tmp_path: Path):
        file = tmp_path / "x.db"
        async with serving(Worker, store=file) as stage:
            agent = await stage.agent(Worker)
            loose = [asyncio.ensure_future(agent.run_fiber(f"r{n}", for_ever)) for n in range(3)]
            for n in range(2):
                await agent.start_fiber(f"m{n}", for_ever, idempotency_key=f"k{n}")
            await running(stage, 5)
            jobs = await agent.jobs.list()
            while not all(job.stash for job in jobs):
                await asyncio.sleep(0)
                jobs = await agent.jobs.list()
        await asyncio.gather(*loose, return_exceptions=True)
        Worker.says = [None, None, None, None, None]
        async with serving(Worker, store=file) as stage:
            await stage.until("fiber:run:ended", 5)
            assert sorted(ctx.name for ctx in Worker.seen) == ["m0", "m1", "r0", "r1", "r2"]
            assert {ctx.snapshot["at"] for ctx in Worker.seen} == {1}
            agent = await stage.agent(Worker)
            assert {each.status for each in await agent.list_fibers()} == {"interrupted"}
            await stage.until("job:finished", 2)
            assert len(await agent.jobs.list()) == 2
            assert await agent.delete_fibers() == 0
            first = (await agent.list_fibers())[0]
            assert await agent.resolve_fiber(first.fiber_id, {"status": "completed"})
            assert not await agent.resolve_fiber(first.fiber_id, {"status": "error"})
            assert (await agent.inspect_fiber(first.fiber_id)).status == "completed"

    async def test_the_hook_says_what_became_of_it(self, tmp_path: Path):
        file = tmp_path / "x.db"
        async with serving(Worker, store=file) as stage:
            await (await stage.agent(Worker)).start_fiber("m", for_ever, fiber_id="m")
            await running(stage)
        Worker.says = [{"status": "completed", "snapshot": {"at": 9}}]
        async with serving(Worker, store=file) as stage:
            await stage.until("fiber:run:ended")
            found = await (await stage.agent(Worker)).inspect_fiber("m")
            await stage.until("job:finished")
            assert found.snapshot == {"at": 9}
            found = await (await stage.agent(Worker)).inspect_fiber("m")
            assert found.status == "completed"

    async def test_a_marked_method_goes_on_from_its_stash(self, tmp_path: Path):
        file = tmp_path / "x.db"
        async with serving(Worker, store=file) as stage:
            agent = await stage.agent(Worker)
            await agent.start_fiber("import", fiber_id="i")
            await running(stage)
            while (await agent.inspect_fiber("i")).snapshot is None:
                await asyncio.sleep(0)
            # A crash, not a planned stop, which would give the attempt back.
            await stage.host.stop()
        async with serving(Worker, store=file) as stage:
            await stage.until("fiber:run:started")
            seen = [each for each in Worker.seen if isinstance(each, tuple)]
            assert seen[0] == (1, None)
            assert seen[1][1] == {"done": 3}

    async def test_a_method_that_must_not_resume_is_not_called_after_a_planned_stop(
        self, tmp_path: Path
    ):
        """A planned stop gives the attempt back, so the number of attempts cannot tell."""
        file = tmp_path / "x.db"
        async with serving(Worker, store=file) as stage:
            await (await stage.agent(Worker)).start_fiber("charge", fiber_id="c")
            await running(stage)
        assert Worker.seen == [(1, None)]
        async with serving(Worker, store=file) as stage:
            await stage.until("job:finished")
            assert [getattr(each, "name", None) for each in Worker.seen] == [None, "charge"]
            found = await (await stage.agent(Worker)).inspect_fiber("c")
            assert found.status == "interrupted"

    async def test_a_method_that_must_not_resume_is_called_if_it_never_began(self, tmp_path: Path):
        file, full = tmp_path / "x.db", Limits(jobs_per_agent=1)
        async with serving(Worker, store=file, limits=full) as stage:
            agent = await stage.agent(Worker)
            await agent.start_fiber("m", for_ever)
            await running(stage)
            await agent.start_fiber("charge", fiber_id="c")
        async with serving(Worker, store=file) as stage:
            await stage.until_true(
                lambda: "charge" in [each["name"] for each in stage.told("fiber:run:started")]
            )
            await stage.until("job:finished")
            assert [each.name for each in Worker.seen if isinstance(each, FiberRecovery)] == ["m"]

    async def test_case_45_a_hook_that_always_raises_backs_off_and_is_given_up(
        self, tmp_path: Path
    ):
        file, hours = tmp_path / "x.db", Hours()
        async with serving(Worker, store=file, hours=hours) as stage:
            agent = await stage.agent(Worker)
            loose = asyncio.ensure_future(agent.run_fiber("r", for_ever))
            await running(stage)
        await asyncio.gather(loose, return_exceptions=True)
        Worker.says = [RuntimeError("no")] * 1000
        async with serving(Worker, store=file, hours=hours) as stage:
            tries = 0

            def retried() -> list[Any]:
                return [e for e in stage.told("job:retried") if e["name"] == "fibers.run"]

            while not stage.told("fiber:recovery:skipped"):
                tries += 1
                await stage.until("fiber:run:interrupted", tries)
                await stage.until_true(
                    lambda tries=tries: (
                        len(retried()) >= tries or bool(stage.told("fiber:recovery:skipped"))
                    )
                )
                if len(retried()) == tries:
                    assert retried()[-1]["due_at"] - hours.now() <= 300.0
                hours.move(6 * 3600.0)
            assert tries <= 6
            assert stage.told("fiber:recovery:skipped")[0]["reason"] == "max_age_exceeded"
            assert await (await stage.agent(Worker)).jobs.list() == []

    async def test_case_46_twenty_orphans_are_all_recovered(self, tmp_path: Path):
        file = tmp_path / "x.db"
        async with serving(Worker, store=file) as stage:
            agent = await stage.agent(Worker)
            for n in range(20):
                await agent.start_fiber(f"m{n}", for_ever)
            await running(stage, 8)
        async with serving(Worker, store=file) as stage:
            await stage.until("fiber:run:ended", 20)
            assert len(Worker.seen) == 20


class TestStayingAwake:
    async def test_case_47_nothing_is_armed_when_nobody_wants_it(self):
        async with serving(Worker) as stage:
            agent = await stage.agent(Worker)
            await agent.run_fiber("sum", value)
            before = stage.hours.timers
            dispose = await agent.keep_alive()
            assert not (await stage.host.agent(_address())).idle
            dispose()
            dispose()
            assert stage.hours.timers == before

    async def test_while_a_function_runs(self):
        async with serving(Worker) as stage:
            agent = await stage.agent(Worker)

            async def work() -> bool:
                return (await stage.host.agent(_address())).idle

            assert await agent.keep_alive_while(work) is False
            assert (await stage.host.agent(_address())).idle


def _address() -> Any:
    from thinkwell.host.client import AgentAddress

    return AgentAddress("worker", "x")


class TestMistakes:
    @pytest.mark.parametrize(
        ("write", "says"),
        [
            (lambda: fiber(max_attempts=0), "1 or more"),
            (lambda: fiber("x")(len), "no async method"),
        ],
    )
    def test_a_wrong_mark_says_what_to_write(self, write: Any, says: str):
        with pytest.raises(FiberError, match=says):
            write()

    async def test_a_name_that_no_method_has(self):
        async with serving(Worker) as stage:
            with pytest.raises(FiberError, match="no method marked"):
                await (await stage.agent(Worker)).start_fiber("export")
