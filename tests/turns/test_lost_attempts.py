"""What is left of an attempt that a hook does not let go: it writes and runs nothing more, the
turn ends, and so does the process (DESIGN §8.15, §8.16).
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.turns.support import Stage, part_of, running, until_event, untyped
from thinkwell import Think, tool
from thinkwell.core.errors import AbortTurn, FailTurn
from thinkwell.store.sqlite import SqliteStore
from thinkwell.testing import call
from thinkwell.turn.end.settle import MOVED


class Till(Think):
    time_limits = {"grace": 0.0}
    began: asyncio.Event
    go_on: asyncio.Event
    runs: ClassVar[int] = 0
    stops: ClassVar[bool] = False

    async def on_start(self) -> None:
        self.began, self.go_on = asyncio.Event(), asyncio.Event()

    @tool
    async def quick(self) -> str:
        """Does nothing."""
        return "done"

    @tool
    async def holds(self) -> str:
        """Ignores every cancel."""
        self.began.set()
        await self.hold()
        return "done after all"

    @tool(effect="once")
    async def pay(self) -> str:
        """May not run twice."""
        type(self).runs += 1
        self.began.set()
        await self.paying()
        return "paid"

    async def paying(self) -> None:
        await self.go_on.wait()

    async def hold(self) -> None:
        while not self.go_on.is_set():
            try:
                await self.go_on.wait()
            except asyncio.CancelledError:
                continue

    async def before_turn(self, ctx: Any) -> None:
        if type(self).stops:
            raise AbortTurn("no more")


async def rows(stage: Stage[Any], request_id: str) -> dict[str, Any]:
    parts = untyped(stage)._turns.parts
    fields = {"agent": parts.owner.agent_id, "turn": request_id}
    found = await parts.store.fetch_all("calls_of_turn", fields)
    return {row["tool_name"]: (row["status"], row["outcome"]) for row in found}


async def until_alone(stage: Stage[Any]) -> None:
    """Until nothing that was left behind runs any more."""
    while untyped(stage)._turns.tasks.left_behind:
        await asyncio.sleep(0.001)


class TestCallsBesideAHookThatIsLeftBehind:
    class Shop(Till):
        time_limits: ClassVar[Any] = {"hook": 0.02}

        async def after_tool_call(self, ctx: Any) -> None:
            if ctx.tool_name == "quick":
                await self.began.wait()
                await self.hold()

    async def test_a_call_that_still_ran_is_cancelled_and_its_outcome_stays_open(self):
        self.Shop.runs = 0
        both = [call("quick"), call("pay")]
        async with running(self.Shop, both, [call("pay")], "refused") as stage:
            result = await stage.agent.run("hi")
            assert result.status == "error"
            stored = await stage.answer()
            assert "not known whether" in part_of(stored, "call-2")["errorText"]
            stage.agent.go_on.set()
            await until_alone(stage)
            assert (await rows(stage, result.request_id))["pay"] == ("pending", None)
            assert await stage.answer() == stored
            assert (await stage.agent.run("again")).text == "refused"
            assert self.Shop.runs == 1

    async def test_a_result_on_its_way_to_the_ledger_is_recorded_as_late(self):
        class Pays(self.Shop):
            async def on_chunk(self, ctx: Any) -> None:
                if ctx.chunk.get("output") == "paid":  # from here on the store takes its time
                    await untyped(stage)._turns.parts.commits._one_at_a_time.acquire()

            async def paying(self) -> None:
                """Is done at once."""

        both = [call("quick"), call("pay")]
        async with running(Pays, both) as stage:
            turn = asyncio.ensure_future(stage.agent.run("hi"))
            await until_event(stage, "hook:left_behind")
            untyped(stage)._turns.parts.commits._one_at_a_time.release()
            result = await turn
            assert (await rows(stage, result.request_id))["pay"] == ("settled", "late")
            assert "not known whether" in part_of(await stage.answer(), "call-2")["errorText"]
            stage.agent.go_on.set()
            await until_alone(stage)


class TestLeftoverResults:
    """What `on_chunk` hears of calls that the end of a turn leaves without a result."""

    class Hangs(Till):
        async def on_chunk(self, ctx: Any) -> None:
            if str(ctx.chunk["type"]).startswith("tool-output-"):
                self.began.set()
                await self.wait()

        async def wait(self) -> None:
            await self.go_on.wait()

    class Deaf(Hangs):
        async def wait(self) -> None:
            await self.hold()

    @pytest.mark.parametrize("cls", [Hangs, Deaf])
    async def test_a_hook_that_hangs_on_them_does_not_keep_a_stopped_turn(self, cls: type[Hangs]):
        async with running(cls, [call("quick")], "next") as stage:
            turn = asyncio.ensure_future(stage.agent.run("hi"))
            await stage.agent.began.wait()
            await stage.agent.cancel_chat()
            assert (await turn).status == "aborted"
            assert "Stopped while it ran" in part_of(await stage.answer())["errorText"]
            stage.agent.go_on.set()
            await until_alone(stage)

    async def test_a_hook_that_fails_on_them_under_strict_hooks_leaves_the_answer(self):
        class Strict(Till):
            strict_hooks = True

            async def before_tool_call(self, ctx: Any) -> None:
                raise ValueError("no tools")

            async def on_chunk(self, ctx: Any) -> None:
                if ctx.chunk["type"] == "tool-output-error":
                    raise ValueError("no chunks")

        async with running(Strict, [call("quick")]) as stage:
            result = await stage.agent.run("hi")
            assert (result.status, "no tools" in (result.error or "")) == ("error", True)
            assert part_of(await stage.answer())["state"] == "output-error"

    async def test_an_agent_that_another_host_takes_meanwhile_goes_there_with_its_turn(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ):
        """DESIGN §5: whoever lost the agent writes nothing more, and that is no defect."""
        path = tmp_path / "till.db"

        class Taken(Till):
            async def before_tool_call(self, ctx: Any) -> None:
                raise FailTurn("no tools")

            async def on_chunk(self, ctx: Any) -> None:
                if ctx.chunk["type"] == "tool-output-error":
                    with closing(sqlite3.connect(path)) as file:
                        file.execute("UPDATE agents SET epoch = epoch + 1")
                        file.commit()
                    turns = untyped(stage)._turns
                    turns.parts.commits.note(turns.running.log)  # as with any chunk that waits
                    await turns.parts.commits.flush()

        async with running(Taken, [call("quick")], store=SqliteStore(path)) as stage:
            client = await stage.connect()
            await client.ask("hi")
            await untyped(stage)._turns.wait_until_idle()
            assert client.ends()[-1]["body"] == MOVED
        assert not [r.message for r in caplog.records if r.levelno >= logging.CRITICAL]

    async def test_a_call_that_an_earlier_attempt_began_is_not_said_to_have_never_run(
        self, tmp_path: Path
    ):
        Till.runs, path = 0, str(tmp_path / "till.db")
        async with running(Till, [call("pay")], store=SqliteStore(path), drain=0.0) as stage:
            await stage.agent.submit("hi")
            await stage.agent.began.wait()
        Till.stops = True
        try:
            async with running(Till, store=SqliteStore(path)) as stage:
                await untyped(stage)._turns.wait_until_idle()
                assert "not known whether" in part_of(await stage.answer())["errorText"]
        finally:
            Till.stops = False


async def test_a_deaf_tool_cut_by_the_limit_of_the_turn_is_left_behind_and_recorded_as_late():
    class Limited(Till):
        time_limits: ClassVar[Any] = {"total": 0.5}  # long enough for the tool to begin

    async with running(Limited, [call("holds")]) as stage:
        result = await stage.agent.run("hi")
        assert (result.status, len(stage.fields("tool:left_behind"))) == ("error", 1)
        assert untyped(stage)._turns.tasks.left_behind == 1
        stage.agent.go_on.set()
        await until_event(stage, "tool:ended_late")
        assert (await rows(stage, result.request_id))["holds"] == ("settled", "late")


class TestTheEndOfTheHost:
    @pytest.mark.parametrize("event", ["before_turn", "after_tool_call", "on_chat_done", "tool"])
    async def test_no_task_that_ignores_its_cancel_keeps_the_event_loop(self, event: str):
        before = asyncio.all_tasks()
        steps = [call("holds" if event == "tool" else "quick")], "ok"
        async with running(Till, *steps, drain=0.1) as stage:

            async def holds(_: Any) -> None:
                stage.agent.began.set()
                await stage.agent.hold()

            if event != "tool":
                untyped(stage).add_hook(event, holds)
            await stage.agent.submit("hi")
            await stage.agent.began.wait()
        assert asyncio.all_tasks() <= before
        stage.agent.go_on.set()
