"""Stop stops: what ignores a cancel is left behind (DESIGN §8.16)."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import Any, ClassVar

import pytest

from tests.turns.configured import configured
from tests.turns.support import Stage, part_of, running, untyped
from thinkwell import Think, tool
from thinkwell.messages.message import text_of
from thinkwell.models.base import Finish, TextDelta, TextStart
from thinkwell.testing import call


class Stubborn(Think):
    time_limits = {"grace": 0.0}
    began: asyncio.Event
    go_on: asyncio.Event
    in_thread: threading.Event
    release: threading.Event
    error: Exception | None = None
    cancels = 0

    async def on_start(self) -> None:
        self.began, self.go_on = asyncio.Event(), asyncio.Event()
        self.in_thread, self.release = threading.Event(), threading.Event()

    @tool
    async def holds(self) -> str:
        """Ignores every cancel."""
        self.began.set()
        await self.hold()
        if self.error is not None:
            raise self.error
        return "done after all"

    @tool
    async def quick(self) -> str:
        """Does nothing."""
        return "done"

    @tool
    def blocks(self) -> str:
        """Blocks its thread."""
        self.in_thread.set()
        self.release.wait()
        return "done after all"

    async def hold(self) -> None:
        while not self.go_on.is_set():
            try:
                await self.go_on.wait()
            except asyncio.CancelledError:
                self.cancels += 1

    async def until_blocked(self) -> None:
        while not self.in_thread.is_set():
            await asyncio.sleep(0.001)


async def until(stage: Stage[Any], event: str) -> None:
    while not stage.fields(event):
        await asyncio.sleep(0.001)


async def ledger(stage: Stage[Any], request_id: str) -> dict[str, Any]:
    store = untyped(stage)._turns.parts.store
    agent = untyped(stage)._turns.parts.owner.agent_id
    (row,) = await store.fetch_all("calls_of_turn", {"agent": agent, "turn": request_id})
    return {key: row[key] for key in ("status", "outcome", "output", "error")}


class TestTools:
    async def test_a_tool_that_ignores_the_stop_is_left_behind_and_the_turn_settles(self):
        async with running(Stubborn, [call("holds")], "next") as stage:
            turn = asyncio.ensure_future(stage.agent.run("hi"))
            await stage.agent.began.wait()
            assert await stage.agent.cancel_chat()
            assert (await turn).status == "aborted"
            part = part_of(await stage.answer())
            assert (part["state"], part["errorText"]) == (
                "output-error",
                "Stopped; it may still finish.",
            )
            assert stage.agent.cancels > 0
            assert untyped(stage)._turns.tasks.left_behind == 1
            assert (await stage.agent.run("more")).text == "next"
            stage.agent.go_on.set()
            await until(stage, "tool:ended_late")

    async def test_the_ledger_records_what_came_of_it_and_the_answer_stays(self):
        async with running(Stubborn, [call("holds")]) as stage:
            turn = asyncio.ensure_future(stage.agent.run("hi"))
            await stage.agent.began.wait()
            await stage.agent.cancel_chat()
            request_id = (await turn).request_id
            before = await stage.answer()
            assert (await ledger(stage, request_id))["status"] == "pending"
            stage.agent.go_on.set()
            await until(stage, "tool:ended_late")
            assert await ledger(stage, request_id) == {
                "status": "settled",
                "outcome": "late",
                "output": '"done after all"',
                "error": None,
            }
            assert await stage.answer() == before
            assert untyped(stage)._turns.tasks.left_behind == 0

    async def test_a_late_failure_is_recorded_too(self):
        async with running(Stubborn, [call("holds")]) as stage:
            stage.agent.error = ValueError("too late")
            turn = asyncio.ensure_future(stage.agent.run("hi"))
            await stage.agent.began.wait()
            await stage.agent.cancel_chat()
            request_id = (await turn).request_id
            stage.agent.go_on.set()
            await until(stage, "tool:ended_late")
            row = await ledger(stage, request_id)
            assert (row["outcome"], row["error"]) == ("late", "too late")

    async def test_a_sync_tool_is_left_behind_in_its_thread(self):
        async with running(Stubborn, [call("blocks")], "next") as stage:
            turn = asyncio.ensure_future(stage.agent.run("hi"))
            await stage.agent.until_blocked()
            await stage.agent.cancel_chat()
            result = await turn
            assert result.status == "aborted"
            part = part_of(await stage.answer())
            assert part["errorText"] == "Stopped; it may still finish."
            assert (await stage.agent.run("more")).text == "next"
            stage.agent.release.set()
            await until(stage, "tool:ended_late")
            assert (await ledger(stage, result.request_id))["outcome"] == "late"

    async def test_9_12_a_tool_that_ignores_its_limit_is_left_behind_and_the_model_goes_on(self):
        class Limited(Stubborn):
            time_limits: ClassVar[Any] = {"tool": 0.01}

        async with running(Limited, [call("holds")], "went on") as stage:
            assert (await stage.agent.run("hi")).text == "went on"
            part = part_of(await stage.answer())
            assert "did not finish within 0.01 s; it may still" in part["errorText"]
            stage.agent.go_on.set()
            await until(stage, "tool:ended_late")

    async def test_a_tool_that_heeds_the_cancel_says_that_it_was_stopped(self):
        class Heeds(Stubborn):
            async def hold(self) -> None:
                await self.go_on.wait()

        async with running(Heeds, [call("holds")]) as stage:
            turn = asyncio.ensure_future(stage.agent.run("hi"))
            await stage.agent.began.wait()
            await stage.agent.cancel_chat()
            result = await turn
            part = part_of(await stage.answer())
            assert part["errorText"] == ("Stopped while it ran (cancelled). It may have happened.")
            assert (await ledger(stage, result.request_id))["outcome"] is None

    async def test_what_a_tool_shows_after_it_was_left_behind_reaches_nobody(self):
        class Shows(Stubborn):
            @tool
            async def shows(self) -> Any:
                """Shows something late."""
                self.began.set()
                await self.hold()
                yield "late news"

        async with running(Shows, [call("shows")]) as stage:
            turn = asyncio.ensure_future(stage.agent.run("hi"))
            await stage.agent.began.wait()
            await stage.agent.cancel_chat()
            await turn
            before = await stage.answer()
            stage.agent.go_on.set()
            await until(stage, "tool:ended_late")
            assert await stage.answer() == before


class TestThreads:
    async def test_calls_over_the_cap_of_an_agent_wait_and_a_stop_takes_them_out_of_the_line(self):
        calls = [call("blocks", id=f"c{n}") for n in range(10)]
        async with running(Stubborn, calls, "next") as stage:
            threads = stage.host.threads
            turn = asyncio.ensure_future(stage.agent.run("hi"))
            while threads.waiting < 2:
                await asyncio.sleep(0.001)
            assert (threads.running, threads.waiting) == (8, 2)
            assert stage.fields("tool:queued")[-1] == {"waiting": 2}
            await stage.agent.cancel_chat()
            await turn
            assert threads.waiting == 0
            texts = [part["errorText"] for part in (await stage.answer())["parts"][1:]]
            assert sorted({text.split(":")[0] for text in texts}) == [
                "Stopped before it ran",
                "Stopped; it may still finish.",
            ]
            stage.agent.release.set()
            while threads.running:
                await asyncio.sleep(0.001)


async def test_8_1_the_limit_of_one_turn_leaves_a_tool_behind_too():
    async with configured({"timeout": {"tool": 0.01}}, "ok") as stage:
        assert (await stage.agent.run("hi")).text == "ok"


EVENTS = ("on_turn_start", "before_turn", "before_step", "on_chunk", "on_step_finish")
OF_TOOLS = ("before_tool_call", "on_tool_result", "after_tool_call")


class TestHooks:
    @pytest.mark.parametrize("event", [*EVENTS, *OF_TOOLS])
    async def test_a_hook_that_ignores_the_stop_is_left_behind_and_the_turn_settles(
        self, event: str
    ):
        async with running(Stubborn, [call("quick")], "ok", "ok", "ok") as stage:

            async def holds(_: Any) -> None:
                stage.agent.began.set()
                await stage.agent.hold()

            dispose = untyped(stage).add_hook(event, holds, name="holds")
            turn = asyncio.ensure_future(stage.agent.run("hi"))
            await stage.agent.began.wait()
            assert await stage.agent.cancel_chat()
            result = await turn
            assert result.status == "aborted"
            assert untyped(stage)._turns.tasks.left_behind == 1
            assert stage.fields("hook:left_behind")[0]["hook"] == "holds"
            dispose()
            if event in ("on_tool_result", "after_tool_call"):
                assert "not known whether" in part_of(await stage.answer())["errorText"]
            stored = await stage.messages()
            stage.agent.go_on.set()
            while untyped(stage)._turns.tasks.left_behind:
                await asyncio.sleep(0.001)
            assert await stage.messages() == stored
            assert (await stage.agent.run("more")).status == "completed"

    @pytest.mark.parametrize("event", ["before_turn", "on_chunk", "before_tool_call"])
    async def test_a_hook_that_hangs_heeds_the_stop(self, event: str):
        async with running(Stubborn, [call("quick")], "ok") as stage:

            async def hangs(_: Any) -> None:
                stage.agent.began.set()
                await stage.agent.go_on.wait()

            untyped(stage).add_hook(event, hangs)
            turn = asyncio.ensure_future(stage.agent.run("hi"))
            await stage.agent.began.wait()
            await stage.agent.cancel_chat()
            assert (await turn).status == "aborted"
            assert untyped(stage)._turns.tasks.left_behind == 0

    async def test_8_1_an_observer_over_its_limit_is_reported_and_the_turn_goes_on(self):
        class Limited(Stubborn):
            time_limits: ClassVar[Any] = {"hook": 0.02}

        async with running(Limited, "ok") as stage:

            async def hangs(_: Any) -> None:
                await stage.agent.go_on.wait()

            stage.agent.add_hook("on_step_finish", hangs, name="slow")
            assert (await stage.agent.run("hi")).text == "ok"
            (report,) = stage.fields("hook:error")
            assert (report["hook"], str(report["error"])) == (
                "slow",
                "slow took longer than 0.02 seconds.",
            )

    async def test_8_1_an_interceptor_over_its_limit_fails_the_turn(self):
        async with configured({"timeout": {"hook": 0.02}}, "never") as stage:

            async def hangs(_: Any) -> None:
                await asyncio.Event().wait()

            stage.agent.add_hook("before_step", hangs, name="slow")
            result = await stage.agent.run("hi")
            assert (result.status, "slow took longer" in (result.error or "")) == ("error", True)

    async def test_an_observer_that_ignores_its_limit_too_fails_the_turn(self):
        class Limited(Stubborn):
            time_limits: ClassVar[Any] = {"hook": 0.02}

        async with running(Limited, "ok", "ok") as stage:

            async def holds(_: Any) -> None:
                await stage.agent.hold()

            dispose = stage.agent.add_hook("on_step_finish", holds, name="stuck")
            result = await stage.agent.run("hi")
            assert (result.status, "stuck took longer" in (result.error or "")) == ("error", True)
            dispose()
            assert (await stage.agent.run("more")).status == "completed"
            stage.agent.go_on.set()

    @pytest.mark.parametrize("event", ["on_chat_response", "on_chat_done", "on_chat_error"])
    async def test_a_hook_of_the_end_that_hangs_does_not_keep_the_caller(self, event: str):
        class Limited(Stubborn):
            time_limits: ClassVar[Any] = {"hook": 0.02}

        step: Any = ValueError("no") if event == "on_chat_error" else "ok"
        async with running(Limited, step) as stage:
            stage.agent.max_retries = 0

            async def holds(*_: Any) -> None:
                await stage.agent.hold()

            untyped(stage).add_hook(event, holds, name="stuck")
            result = await stage.agent.run("hi")
            assert result.status == ("error" if event == "on_chat_error" else "completed")
            assert untyped(stage)._turns.tasks.left_behind == 1
            assert "left behind" in str(stage.fields("hook:error")[0]["error"])
            stage.agent.go_on.set()


class DeafModel:
    """Goes on whatever anybody says."""

    model_id = "deaf"
    provider = "test"
    supports_response_format = False

    def __init__(self) -> None:
        self.began, self.go_on = asyncio.Event(), asyncio.Event()

    async def stream(self, request: Any, signal: Any) -> Any:
        yield TextStart("t")
        yield TextDelta("t", "one")
        self.began.set()
        while not self.go_on.is_set():
            with suppress(asyncio.CancelledError):
                await self.go_on.wait()
        yield TextDelta("t", "too late")
        yield Finish(reason="stop")


async def test_a_model_that_ignores_the_stop_is_left_behind_and_says_no_more():
    model = DeafModel()

    class Deaf(Stubborn):
        def get_model(self) -> Any:
            return model

    async with running(Deaf) as stage:
        turn = asyncio.ensure_future(stage.agent.run("hi"))
        await model.began.wait()
        await stage.agent.cancel_chat()
        assert (await turn).status == "aborted"
        stored = await stage.messages()
        assert text_of(stored[-1]) == "one"
        model.go_on.set()
        while untyped(stage)._turns.tasks.left_behind:
            await asyncio.sleep(0.001)
        assert await stage.messages() == stored


@pytest.mark.parametrize("limit", ["chunk", "step"])
async def test_a_model_that_ignores_its_limit_is_left_behind_and_says_no_more(limit: str):
    model = DeafModel()

    class Deaf(Stubborn):
        time_limits: ClassVar[Any] = {limit: 0.02}
        expose_errors = True

        def get_model(self) -> Any:
            return model

    async with running(Deaf) as stage:
        outcome = await stage.agent.run("hi")
        assert outcome.status == "error"
        turn = await stage.agent.get_turn(outcome.request_id)
        assert "the model call took longer than 0.02 seconds" in str(turn)
        stored = await stage.messages()
        assert text_of(stored[-1]) == "one"
        model.go_on.set()
        while untyped(stage)._turns.tasks.left_behind:
            await asyncio.sleep(0.001)
        assert await stage.messages() == stored
