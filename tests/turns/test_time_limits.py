"""Time limits and the stall watchdog (spec/02 §8.1, §8.5, §9.12; AC86)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.turns.configured import Two, configured
from tests.turns.support import part_of
from thinkwell import ChatRecovery, tool
from thinkwell.messages.message import text_of
from thinkwell.testing import call, pause, text


class TestTimeLimits:
    @pytest.mark.parametrize(
        ("limit", "words"),
        [
            ("step", "longer than"),
            ("first_chunk", "before its first word"),
            ("total", "turn took longer"),
        ],
    )
    async def test_8_1_a_silent_model_runs_into_its_limit(self, limit: str, words: str):
        config = {"timeout": {limit: 0.01}, "max_retries": 0}
        async with configured(config, [pause()]) as stage:
            result = await stage.agent.run("hi")
            assert (result.status, words in (result.error or "")) == ("error", True)

    async def test_8_1_a_model_that_falls_silent_between_chunks_is_asked_to_go_on(self):
        config = {"timeout": {"chunk": 0.05}}
        async with configured(config, [text("x"), pause()], "y") as stage:
            assert (await stage.agent.run("hi")).status == "completed"
            assert text_of(await stage.answer()) == "xy"
            assert len(stage.fields("chat:stream:stalled")) == 1

    @pytest.mark.parametrize("config", [{"tool": 0.01}, {"tools": {"hangs": 0.01}, "tool": 60}])
    async def test_9_12_a_tool_over_its_limit_is_a_tool_error(self, config: Any):
        class Hangs(Two):
            @tool
            async def hangs(self) -> str:
                """Never ends."""
                await asyncio.Event().wait()
                return ""

        async with configured({"timeout": config}, [call("hangs")], "ok", cls=Hangs) as stage:
            assert (await stage.agent.run("hi")).text == "ok"
            assert part_of(await stage.answer())["state"] == "output-error"

    async def test_8_1_a_number_limits_the_whole_turn_tools_included(self):
        class Hangs(Two):
            @tool
            async def hangs(self) -> str:
                """Never ends."""
                await asyncio.Event().wait()
                return ""

        async with configured({"timeout": 0.02}, [call("hangs")], cls=Hangs) as stage:
            result = await stage.agent.run("hi")
            assert (result.status, "turn took" in (result.error or "")) == ("error", True)
            assert part_of(await stage.answer())["state"] == "output-error"

    async def test_8_1_an_unknown_limit_fails_the_turn_and_names_it(self):
        async with configured({"timeout": {"stpe": 1}}, "never") as stage:
            assert "stpe" in ((await stage.agent.run("hi")).error or "")


class TestStall:
    async def test_ac86_a_stall_makes_another_attempt_in_the_same_turn(self):
        steps = [text("Hel"), pause()], "lo"
        async with configured({"chat_stream_stall_timeout": 0.3}, *steps) as stage:
            client = await stage.connect()
            await client.ask("hi")
            end = await client.until_end()
            assert (end.get("error"), len(client.ends())) == (None, 1)
            assert len(stage.fields("chat:stream:stalled")) == 1
            assert text_of(await stage.answer()) == "Hello"
            assert stage.log.count("accepted") == 1

    async def test_ac86_a_slow_tool_and_a_slow_hook_are_no_stall(self):
        class Slow(Two):
            @tool
            async def slow(self) -> str:
                """Takes longer than the watchdog waits."""
                await asyncio.sleep(0.45)
                return "done"

        async def slow_hook(ctx: Any) -> None:
            if ctx.chunk["type"] == "text-start":
                await asyncio.sleep(0.45)

        config = {"chat_stream_stall_timeout": 0.3}
        async with configured(config, [call("slow")], "ok", cls=Slow) as stage:
            stage.agent.add_hook("on_chunk", slow_hook)
            assert (await stage.agent.run("hi")).text == "ok"
            assert stage.fields("chat:stream:stalled") == []

    async def test_8_5_stalls_that_add_nothing_end_the_turn_when_the_budget_is_used_up(self):
        class Patient(Two):
            chat_stream_stall_timeout = 0.01
            chat_recovery = ChatRecovery(max_attempts=2)

        async with configured(None, *([pause()] for _ in range(3)), cls=Patient) as stage:
            result = await stage.agent.run("hi")
            assert (result.status, len(stage.model.requests)) == ("error", 3)
            assert stage.fields("chat:request:failed")[0]["stage"] == "recovery"
