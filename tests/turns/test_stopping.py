"""Stopping a turn (spec/02 §1.7, §2.28, §7.10, §12.13; AC38-AC40; spec/01 §18.22)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.turns.recorder import Recorder, recording
from tests.turns.support import loosely, part_of, running
from thinkwell import AbortController, Think, ToolContext, tool
from thinkwell.core.errors import AbortTurn, FailTurn
from thinkwell.messages.message import text_of
from thinkwell.models.base import TextDelta, TextStart
from thinkwell.testing import call, pause, text


class Plain(Think):
    time_limits = {"grace": 0.0}


class TestMidText:
    async def test_ac38_the_partial_is_stored_and_the_step_does_not_finish(self):
        gate, stop = pause(), AbortController()
        async with recording(Recorder, [text("one ", "two"), gate, " three"]) as stage:
            running_turn = asyncio.ensure_future(stage.agent.run("hi", signal=stop.signal))
            await gate.reached()
            stop.abort("enough")
            result = await running_turn
            assert (result.status, result.stop_reason, result.text) == (
                "aborted",
                "aborted",
                "one two",
            )
            assert text_of(await stage.answer()) == "one two"
            assert "on_step_finish 0" not in stage.log
            assert stage.log.count("on_chat_response aborted") == 1

    async def test_ac38_the_next_turn_starts_with_a_fresh_signal(self):
        gate = pause()
        async with running(Plain, [gate, "never"], "fine") as stage:
            first = asyncio.ensure_future(stage.agent.run("one"))
            await gate.reached()
            assert await stage.agent.cancel_chat()
            assert (await first).status == "aborted"
            assert (await stage.agent.run("two")).text == "fine"
            assert not await stage.agent.cancel_chat()

    async def test_01_18_22_cancel_over_the_socket_ends_with_one_plain_done(self):
        gate = pause()
        async with running(Plain, [text("one ", "two"), gate, "never"]) as stage:
            client = await stage.connect()
            await client.ask("hi")
            await client.until(lambda f: "two" in f.get("body", ""))
            await client.send(type="cf_agent_chat_request_cancel", id="q1")
            end = await client.until_end()
            assert (end["outcome"], end["body"], "error" in end) == ("aborted", "", False)
            assert len(client.ends()) == 1
            assert text_of(client.transcript()[-1]) == "one two"

    async def test_cancelling_the_task_that_awaits_run_stops_the_turn(self):
        gate = pause()
        async with running(Plain, [text("half"), gate]) as stage:
            waiting = asyncio.ensure_future(stage.agent.run("hi"))
            await gate.reached()
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            await stage.log.until("settled aborted")

    async def test_leaving_a_stream_stops_the_turn_and_keeps_the_partial(self):
        gate = pause()
        async with running(Plain, [text("half"), gate]) as stage:
            chunks = stage.agent.stream("hi")
            async for chunk in chunks:
                if chunk["type"] == "text-delta":
                    break
            await chunks.aclose()  # pyright: ignore[reportAttributeAccessIssue] - a generator
            await stage.log.until("settled aborted")
            assert text_of(await stage.answer()) == "half"

    async def test_a_submission_goes_on_when_its_caller_is_gone(self):
        gate = pause()
        async with running(Plain, [gate, "done"]) as stage:
            task = asyncio.ensure_future(stage.agent.submit("hi"))
            submission = await task
            await gate.reached()
            gate.open()
            await stage.log.until("settled completed")
            assert (await stage.agent.get_turn(submission.request_id)).status == "completed"


class TestModels:
    async def test_12_13_a_model_that_fails_because_it_was_stopped_is_no_error(self):
        reached = asyncio.Event()

        class Complains:
            provider = model_id = "complains"

            async def stream(self, request: Any, signal: Any) -> Any:
                yield TextStart("t")
                yield TextDelta("t", "half")
                reached.set()
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError as error:
                    raise ConnectionError("closed") from error

        class Agent(Plain):
            def get_model(self) -> Any:
                return Complains()

        async with running(Agent) as stage:
            turn = asyncio.ensure_future(stage.agent.run("hi"))
            await reached.wait()
            await stage.agent.cancel_chat()
            assert (await turn).status == "aborted"


class TestInTools:
    async def test_ac39_the_handler_sees_the_signal_and_its_part_is_settled(self):
        saw: list[str] = []
        began = asyncio.Event()

        class Watches(Think):
            @tool
            async def watch(self, ctx: ToolContext) -> str:
                """Ends by itself when it is told to stop."""
                began.set()
                saw.append(await ctx.abort_signal.wait())
                return "stopped in time"

        async with running(Watches, [call("watch")], "never") as stage:
            turn = asyncio.ensure_future(stage.agent.run("hi"))
            await began.wait()
            await stage.agent.cancel_chat(reason="enough")
            assert (await turn).status == "aborted"
            assert saw == ["enough"]
            assert part_of(await stage.answer())["state"].startswith("output-")
            assert len(stage.model.requests) == 1

    async def test_ac39_a_handler_that_does_not_look_is_cancelled_after_the_grace(self):
        async with recording(Recorder, [call("waits")]) as stage:
            turn = asyncio.ensure_future(stage.agent.run("hi"))
            await stage.log.until("ran waits")
            await stage.agent.cancel_chat()
            assert (await turn).status == "aborted"
            assert part_of(await stage.answer())["state"] == "output-error"
            assert "after_tool_call waits aborted" in stage.log

    @pytest.mark.parametrize(
        ("ending", "status"), [(AbortTurn("enough"), "aborted"), (FailTurn("broken"), "error")]
    )
    async def test_5_0_7_a_tool_may_end_its_turn_by_raising(
        self, ending: BaseException, status: str
    ):
        class Ends(Plain):
            @tool
            async def end(self) -> str:
                """Ends the turn."""
                raise ending

        async with running(Ends, [call("end")], "never") as stage:
            assert (await stage.agent.run("hi")).status == status
            assert part_of(await stage.answer())["state"] == "output-error"
            assert len(stage.model.requests) == 1

    async def test_a_tool_may_stop_its_own_turn(self):
        class Stops(Plain):
            @tool
            async def stop(self) -> str:
                """Stops the turn it runs in."""
                await self.cancel_chat(reason="I am done")
                await asyncio.Event().wait()
                return "never"

        async with running(Stops, [call("stop")]) as stage:
            assert (await stage.agent.run("hi")).status == "aborted"
            assert part_of(await stage.answer())["state"] == "output-error"

    async def test_a_listener_that_raises_does_not_keep_the_turn_from_stopping(self):
        began = asyncio.Event()

        class Listens(Plain):
            @tool
            async def listen(self, ctx: ToolContext) -> str:
                """Adds a listener with a bug."""
                ctx.abort_signal.add_listener(_buggy)
                began.set()
                await asyncio.Event().wait()
                return "never"

        async with running(Listens, [call("listen")]) as stage:
            turn = asyncio.ensure_future(stage.agent.run("hi"))
            await began.wait()
            assert await stage.agent.cancel_chat()
            assert (await turn).status == "aborted"


class TestBeforeItBegins:
    async def test_ac40_a_signal_that_is_aborted_already_stores_the_input_and_asks_nobody(self):
        stop = AbortController()
        stop.abort("too late")
        async with recording(Recorder, "never") as stage:
            result = await stage.agent.run("hi", signal=stop.signal)
            assert result.status == "aborted"
            assert [m["role"] for m in await stage.messages()] == ["user"]
            assert stage.model.requests == []
            assert "before_turn" not in stage.log

    async def test_ac57_a_submission_withdrawn_before_its_slot_stores_nothing(self):
        gate = pause()
        async with running(Plain, [gate, "first"]) as stage:
            first = asyncio.ensure_future(stage.agent.run("one"))
            await gate.reached()
            waiting = await stage.agent.submit("two")
            assert await stage.agent.cancel_chat(waiting.request_id)
            gate.open()
            await first
            await stage.log.until("settled aborted")
            assert (await stage.agent.get_turn(waiting.request_id)).status == "aborted"
            assert [m["role"] for m in await stage.messages()] == ["user", "assistant"]

    async def test_2_17_an_unknown_id_is_no_turn_to_cancel(self):
        async with running(Plain) as stage:
            assert await stage.agent.cancel_chat("nobody") is False


class TestHooksThatStop:
    @pytest.mark.parametrize("event", ["before_turn", "before_step"])
    async def test_a_stop_asked_for_by_a_hook_before_the_model_saves_the_call(self, event: str):
        async with running(Plain, "never") as stage:
            loosely(stage.agent).add_hook(event, _stop)
            assert (await stage.agent.run("hi")).status == "aborted"

    async def test_a_stop_at_the_end_of_a_step_begins_no_other(self):
        async with recording(Recorder, [call("a")], "never") as stage:
            stage.agent.add_hook("on_step_finish", _stop)
            assert (await stage.agent.run("hi")).status == "aborted"
            assert len(stage.model.requests) == 1
            assert "before_step 1" not in stage.log

    async def test_12_13_a_stop_after_the_last_step_changes_nothing(self):
        async with running(Plain, "said") as stage:
            stage.agent.add_hook("on_step_finish", _stop)
            result = await stage.agent.run("hi")
            assert (result.status, result.text) == ("completed", "said")

    @pytest.mark.parametrize("event", ["on_chunk", "after_tool_call", "on_step_finish"])
    async def test_throw_if_aborted_in_an_observer_ends_the_turn_once(self, event: str):
        async with recording(Recorder, [call("waits")]) as stage:
            loosely(stage.agent).add_hook(event, lambda ctx: ctx.abort_signal.throw_if_aborted())
            client = await stage.connect()
            await client.ask("hi")
            await stage.log.until("ran waits")
            await stage.agent.cancel_chat()
            await client.until_end()
            assert len(client.ends()) == 1
            assert part_of(await stage.answer())["state"] == "output-error"
            stage.model.add("next")
            assert (await stage.agent.run("again")).text == "next"

    @pytest.mark.parametrize(
        ("ending", "status"), [(AbortTurn("no more"), "aborted"), (FailTurn("broken"), "error")]
    )
    @pytest.mark.parametrize("event", ["before_tool_call", "after_tool_call", "on_chunk"])
    async def test_5_0_7_a_hook_may_end_the_turn_and_the_next_one_can_still_be_stopped(
        self, event: str, ending: BaseException, status: str
    ):
        gate = pause()
        async with recording(Recorder, [call("a"), call("b")], [gate]) as stage:

            def end(_: Any) -> None:
                dispose()
                raise ending

            dispose = loosely(stage.agent).add_hook(event, end)
            first = asyncio.ensure_future(stage.agent.run("one"))
            await stage.log.until("accepted")
            second = asyncio.ensure_future(stage.agent.run("two"))
            assert (await first).status == status
            if event == "on_chunk":
                stage.model.requests.clear()
            else:
                await gate.reached()
                await stage.agent.cancel_chat()
                assert (await second).status == "aborted"
            second.cancel()

    async def test_throw_if_aborted_in_the_error_hook_leaves_the_error(self):
        async def stop_and_fail(ctx: Any) -> None:
            await ctx.agent.cancel_chat()
            raise RuntimeError("boom")

        async with running(Plain) as stage:
            stage.agent.add_hook("before_turn", stop_and_fail)
            stage.agent.add_hook("on_chat_error", lambda _, c: c.abort_signal.throw_if_aborted())
            result = await stage.agent.run("hi")
            assert (result.status, result.error) == ("error", "boom")


def _buggy(reason: str) -> None:
    raise RuntimeError(reason)


async def _stop(ctx: Any) -> None:
    await ctx.agent.cancel_chat()
