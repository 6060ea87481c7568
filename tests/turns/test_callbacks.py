"""`chat` with a callback, and the tools its caller brings (spec/02 §2.18-2.22; AC92)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.turns.entry import SCHEMA, Assistant, Callback, Stoppable, fail, hook_lines, record
from tests.turns.support import running
from thinkwell import AbortController
from thinkwell.core.errors import HostClosedError
from thinkwell.messages.message import text_of
from thinkwell.testing import call, pause, text


class TestCallbacks:
    async def test_ac92_done_comes_after_the_answer_is_stored_and_before_the_response_hook(self):
        async with running(Assistant, "one") as stage:
            record(stage)
            outcome = await stage.agent.chat("hi", callback := Callback(stage.log))
            lines = [str(line) for line in stage.log]
            order = ["on_start", "accepted", "stored assistant", "on_done", "hook on_chat_response"]
            assert [line for line in lines if line in order] == order
            assert (outcome.status, outcome.request_id) == ("completed", callback.request_id)

    async def test_2_18_every_chunk_is_told_once_and_in_order(self):
        async with running(Assistant, [text("one"), call("a")], "two") as stage:
            client, callback = await stage.connect(), Callback()
            await stage.agent.chat("hi", callback)
            chunks = [f"event {c['type']}" for c in client.chunks(callback.request_id)]
            assert callback.log == ["on_start", *chunks, "on_done"]

    async def test_2_18_a_failure_goes_to_the_callback(self):
        async with running(Assistant) as stage:
            stage.agent.add_hook("before_turn", fail)
            outcome = await stage.agent.chat("hi", callback := Callback())
            assert (outcome.status, callback.log) == ("error", ["on_start", "on_error no"])

    @pytest.mark.parametrize("kind", [Callback, Stoppable])
    async def test_2_19_a_stop_is_told_if_the_callback_can_hear_it(self, kind: type[Callback]):
        gate = pause()
        async with running(Assistant, [gate]) as stage:
            stop, callback = AbortController(), kind()
            chat = asyncio.ensure_future(stage.agent.chat("hi", callback, signal=stop.signal))
            await gate.reached()
            stop.abort("enough")
            assert (await chat).status == "aborted"
            told = [line for line in callback.log if "event" not in line]
            assert told == ["on_start", *(["on_aborted enough"] if kind is Stoppable else [])]

    async def test_design_8_4_a_slow_callback_holds_nobody_up(self):
        never = asyncio.Event()

        class Slow(Callback):
            async def on_event(self, chunk: str) -> None:
                await never.wait()

        async with running(Assistant, "one", "two") as stage:
            chat = asyncio.ensure_future(stage.agent.chat("hi", callback := Slow()))
            await stage.log.until("accepted")
            await stage.agent.run("more")
            assert [text_of(m) for m in await stage.messages()] == ["hi", "one", "more", "two"]
            assert callback.log == ["on_start"]
            never.set()
            assert (await chat).status == "completed"

    async def test_2_22_what_a_callback_raises_stops_the_turn_and_reaches_the_caller(self):
        gate = pause()

        class Broken(Callback):
            def on_event(self, chunk: str) -> Any:
                raise RuntimeError("gone")

        async with running(Assistant, [text("one"), gate]) as stage:
            record(stage)
            with pytest.raises(RuntimeError, match="gone"):
                await stage.agent.chat("hi", Broken())
            await stage.log.until("hook on_chat_response")
            assert hook_lines(stage)[-2:] == ["hook on_chat_abort", "hook on_chat_response"]

    async def test_a_start_that_raises_asks_for_no_turn(self):
        class Broken(Callback):
            def on_start(self, info: dict[str, str]) -> None:
                raise RuntimeError("gone")

        async with running(Assistant) as stage:
            with pytest.raises(RuntimeError, match="gone"):
                await stage.agent.chat("hi", Broken())
            assert (stage.events, await stage.messages()) == ([], [])

    async def test_2_18_a_turn_that_outlives_the_app_interrupts_the_callback(self):
        gate, callback = pause(), Stoppable()
        async with running(Assistant, [gate], drain=0) as stage:
            chat = asyncio.ensure_future(stage.agent.chat("hi", callback))
            await gate.reached()
        with pytest.raises(HostClosedError):
            await chat
        assert callback.log[-1] == "on_interrupted"


class TestClientTools:
    async def test_2_21_without_a_function_the_turn_ends_with_the_call(self):
        async with running(Assistant, [call("ask_page", {"q": 1})]) as stage:
            response = await stage.agent.chat("hi", client_tools=[SCHEMA])
            assert response.finish_reason == "tool-calls"
            assert await stage.agent.has_pending_interaction()
            assert (await stage.answer())["parts"][-1]["state"] == "input-available"

    async def test_2_21_with_one_each_call_runs_inline_and_hooks_apply(self):
        async with running(Assistant, [call("ask_page", {"q": 1})], "two") as stage:
            record(stage)
            response = await stage.agent.chat(
                "hi", client_tools=[SCHEMA], on_client_tool_call=lambda c: c.arguments["q"] + 1
            )
            part = (await stage.answer())["parts"][1]
            assert (response.content, part["output"]) == ("two", 2)
            assert "hook before_tool_call" in hook_lines(stage)

    async def test_2_21_what_the_function_raises_is_the_calls_error(self):
        async with running(Assistant, [call("ask_page")], "sorry") as stage:
            response = await stage.agent.chat("hi", client_tools=[SCHEMA], on_client_tool_call=fail)
            part = (await stage.answer())["parts"][1]
            assert (response.content, part["errorText"]) == ("sorry", "The tool failed.")

    async def test_2_2_they_belong_to_this_turn_only(self):
        async with running(Assistant, "one", "two") as stage:
            await stage.agent.chat("hi", client_tools=[SCHEMA])
            await stage.agent.run("more")
            offered = [[t.name for t in r.tools] for r in stage.model.requests]
            assert offered == [["a", "ask_page"], ["a"]]
