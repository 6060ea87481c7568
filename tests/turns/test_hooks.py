"""Registering hooks, what a raise does, and frozen contexts (spec/02 §5.0; AC69-AC72, AC96)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.turns.recorder import Recorder, recording
from tests.turns.support import loosely, part_of, running
from thinkwell import Allow, Think, tool
from thinkwell.messages.message import text_of
from thinkwell.messages.model_messages import ToolMessage
from thinkwell.testing import call, error, pause

EVENTS = ("on_chat_response", "on_chat_error")


class Plain(Think):
    time_limits = {"grace": 0.0}


def step(event: str) -> Any:
    """A scripted step after which `event` fires."""
    return [error(RuntimeError("boom"))] if event == "on_chat_error" else "fine"


class TestRegistration:
    @pytest.mark.parametrize("event", EVENTS)
    async def test_ac69_each_disposer_removes_its_own_registration_once(self, event: str):
        calls: list[Any] = []
        async with running(Plain, step(event)) as stage:

            def hook(*_: Any) -> None:
                calls.append(1)

            first = loosely(stage.agent).add_hook(event, hook)
            loosely(stage.agent).add_hook(event, hook)
            first()
            first()
            await stage.agent.run("hi")
            assert calls == [1]

    @pytest.mark.parametrize("event", EVENTS)
    async def test_ac70_a_hook_that_disposes_itself_leaves_its_neighbour(self, event: str):
        calls: list[str] = []
        async with running(Plain, step(event), step(event)) as stage:

            def once(*_: Any) -> None:
                calls.append("once")
                dispose()
                loosely(stage.agent).add_hook(event, lambda *_: calls.append("added"))

            dispose = loosely(stage.agent).add_hook(event, once)
            loosely(stage.agent).add_hook(event, lambda *_: calls.append("neighbour"))
            await stage.agent.run("one")
            assert calls == ["once", "neighbour"]
            await stage.agent.run("two")
            assert calls[2:] == ["neighbour", "added"]

    async def test_5_0_3_a_hook_disposed_by_an_earlier_one_is_skipped(self):
        calls: list[str] = []
        async with running(Plain, "fine") as stage:
            stage.agent.add_hook("on_chat_response", lambda _: later())
            later = stage.agent.add_hook("on_chat_response", lambda _: calls.append("later"))
            await stage.agent.run("hi")
            assert calls == []

    async def test_5_0_2_an_unknown_event_is_an_error_that_lists_the_known_ones(self):
        async with running(Plain) as stage:
            with pytest.raises(ValueError, match="on_chat_response"):
                loosely(stage.agent).add_hook("on_chat_respnse", print)


class TestRaising:
    @pytest.mark.parametrize("problem", [RuntimeError("no"), asyncio.CancelledError()])
    @pytest.mark.parametrize(
        "event", ["on_chunk", "after_tool_call", "on_step_finish", "on_chat_response"]
    )
    async def test_ac71_an_observer_that_raises_is_reported_and_changes_nothing(
        self, event: str, problem: BaseException
    ):
        calls: list[Any] = []

        def broken(_: Any) -> None:
            raise problem

        async with recording(Recorder, [call("a")], "ok") as stage:
            loosely(stage.agent).add_hook(event, broken, name="broken one")
            loosely(stage.agent).add_hook(event, calls.append)
            result = await stage.agent.run("hi")
            assert (result.status, result.text) == ("completed", "ok")
            reports = stage.fields("hook:error")
            assert {(r["event"], r["hook"], r["error"]) for r in reports} == {
                (event, "broken one", problem)
            }
            assert len(calls) == len(reports) > 0

    @pytest.mark.parametrize("event", ["before_turn", "before_step"])
    @pytest.mark.parametrize("is_async", [False, True])
    async def test_5_0_6_an_interceptor_that_raises_cancelled_fails_the_turn_once(
        self, event: str, is_async: bool
    ):
        async with running(Plain, "next") as stage:
            dispose = loosely(stage.agent).add_hook(event, cancelled(is_async=is_async))
            assert (await stage.agent.run("hi")).status == "error"
            dispose()
            assert (await stage.agent.run("again")).status == "completed"

    @pytest.mark.parametrize("is_async", [False, True])
    async def test_5_0_6_a_tool_policy_that_raises_cancelled_is_a_tool_error(self, is_async: bool):
        async with recording(Recorder, [call("a")], "ok") as stage:
            stage.agent.add_hook("before_tool_call", cancelled(is_async=is_async))
            assert (await stage.agent.run("hi")).status == "completed"
            assert part_of(await stage.answer())["state"] == "output-error"
            assert "ran a" not in stage.log

    @pytest.mark.parametrize("is_async", [False, True])
    async def test_5_0_6_an_error_hook_that_raises_cancelled_keeps_the_error(self, is_async: bool):
        async with running(Plain, [error(RuntimeError("boom"))], "next") as stage:
            stage.agent.add_hook("on_chat_error", cancelled(is_async=is_async))
            assert (await stage.agent.run("hi")).error == "boom"
            assert (await stage.agent.run("again")).status == "completed"

    async def test_4_5_a_slow_response_hook_does_not_hold_the_slot(self):
        release = asyncio.Event()
        async with running(Plain, "one", "two") as stage:

            async def slow(ctx: Any) -> None:
                if text_of(ctx.message) == "one":
                    await release.wait()

            stage.agent.add_hook("on_chat_response", slow)
            first = asyncio.ensure_future(stage.agent.run("1"))
            await stage.log.until("accepted")
            second = await stage.agent.run("2")
            assert (second.text, first.done()) == ("two", False)
            release.set()
            assert (await first).text == "one"


class TestExactlyOnce:
    @pytest.mark.parametrize(
        ("steps", "errors", "status"),
        [
            (["fine"], 0, "completed"),
            ([[]], 0, "completed"),
            ([[call("nope")], "ok"], 0, "completed"),
            ([[error(RuntimeError("boom"))]], 1, "error"),
            ([["half", error(RuntimeError("boom"))]], 1, "error"),
        ],
    )
    async def test_ac72_a_finished_turn_is_told_once(
        self, steps: list[Any], errors: int, status: str
    ):
        async with recording(Recorder, *steps) as stage:
            await stage.agent.run("hi")
            assert sum(line.startswith("on_chat_error ") for line in stage.log) == errors
            told = [line for line in stage.log if line.startswith("on_chat_response ")]
            assert told == [f"on_chat_response {status}"]

    async def test_ac72_a_stopped_turn_has_no_error(self):
        gate = pause()
        async with recording(Recorder, [gate]) as stage:
            turn = asyncio.ensure_future(stage.agent.run("hi"))
            await gate.reached()
            await stage.agent.cancel_chat()
            await turn
            assert not [line for line in stage.log if line.startswith("on_chat_error")]
            assert stage.log.count("on_chat_response aborted") == 1


class TestFrozenContexts:
    @pytest.mark.parametrize(
        ("event", "field"),
        [
            ("before_turn", "tools"),
            ("before_turn", "body"),
            ("before_step", "tools"),
            ("before_tool_call", "input"),
            ("before_tool_call", "original_input"),
            ("on_chunk", "chunk"),
        ],
    )
    async def test_ac96_a_collection_of_a_context_cannot_be_changed(self, event: str, field: str):
        raised: list[BaseException] = []

        def spoil(ctx: Any) -> None:
            try:
                getattr(ctx, field)["spoiled"] = True
            except TypeError as problem:
                raised.append(problem)

        async with running(Echo, [call("echo", {"value": {"n": 1}})], "ok") as stage:
            loosely(stage.agent).add_hook(event, spoil)
            client = await stage.connect()
            await client.ask("hi", theme="dark")
            await client.until_end()
            assert raised
            assert part_of(await stage.answer())["output"] == {"n": 1}
            assert "spoiled" not in str(client.chunks())

    @pytest.mark.parametrize("event", ["before_turn", "before_step", "on_chat_response"])
    async def test_ac96_a_field_of_a_context_cannot_be_set(self, event: str):
        async with running(Plain, "ok") as stage:
            raised: list[BaseException] = []

            def spoil(ctx: Any) -> None:
                try:
                    ctx.request_id = "other"
                except (AttributeError, TypeError) as problem:
                    raised.append(problem)

            loosely(stage.agent).add_hook(event, spoil)
            await stage.agent.run("hi")
            assert raised

    @pytest.mark.parametrize(
        ("event", "spoil"),
        [
            ("after_tool_call", lambda ctx: ctx.output.update(n=2)),
            ("on_step_finish", lambda ctx: ctx.content[-1].update(output="spoiled")),
            ("on_chat_response", lambda ctx: ctx.message["parts"].clear()),
        ],
    )
    async def test_ac96_what_a_hook_does_to_nested_data_does_not_reach_the_turn(
        self, event: str, spoil: Any
    ):
        async with running(Echo, [call("echo", {"value": {"n": 1}})], "ok") as stage:
            loosely(stage.agent).add_hook(event, spoil)
            result = await stage.agent.run("hi")
            assert part_of(await stage.answer())["output"] == {"n": 1}
            assert result.message == await stage.answer()
            (told,) = [m for m in stage.model.requests[1].messages if isinstance(m, ToolMessage)]
            assert told.content[0].value == {"n": 1}

    async def test_ac96_a_hook_that_writes_into_the_input_does_not_let_the_tool_run(self):
        """Neither with the old input, which the hook believes changed, nor with a half new one."""
        async with running(Echo, [call("echo", {"value": {"n": 1}})], "ok") as stage:
            loosely(stage.agent).add_hook(
                "before_tool_call", lambda ctx: ctx.input["value"].update(n=2)
            )
            await stage.agent.run("hi")
            assert part_of(await stage.answer())["state"] == "output-error"

    async def test_an_input_made_of_the_old_one_is_the_tools_own(self):
        class Writer(Plain):
            @tool
            async def write(self, value: dict[str, Any]) -> dict[str, Any]:
                """Changes what it gets."""
                value["list"].append(2)
                return value

        async with running(Writer, [call("write", {"value": {"list": [1]}})], "ok") as stage:
            loosely(stage.agent).add_hook(
                "before_tool_call", lambda ctx: Allow(input={"value": {**ctx.input["value"]}})
            )
            await stage.agent.run("hi")
            assert part_of(await stage.answer())["output"] == {"list": [1, 2]}


class Echo(Plain):
    @tool
    async def echo(self, value: dict[str, int]) -> dict[str, int]:
        """Gives back what it gets."""
        return dict(value)


def cancelled(*, is_async: bool) -> Any:
    """A hook that raises what a cancelled task raises."""

    def hook(*_: Any) -> None:
        raise asyncio.CancelledError

    async def async_hook(*_: Any) -> None:
        raise asyncio.CancelledError

    return async_hook if is_async else hook
