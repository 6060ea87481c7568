"""Turns that fail (spec/02 §5.12, §7.11, §7.12, §11; AC41-AC43, AC89, AC90, AC95)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.turns.recorder import Recorder, recording
from tests.turns.support import Stage, folded, part_of, running
from thinkwell import Think, tool
from thinkwell.messages.message import text_of
from thinkwell.models.base import Failure, TextDelta, TextEnd, TextStart, ToolInputStart
from thinkwell.testing import call, error, text


class Open(Recorder):
    expose_errors = True


BOOM = RuntimeError("boom")


class TestModelErrors:
    async def test_ac41_an_error_after_text_keeps_the_partial_and_ends_once(self):
        async with recording(Open, [text("par", "tial"), error(BOOM), "ignored"]) as stage:
            seen: list[Any] = []
            stage.agent.add_hook("on_chat_error", lambda _, ctx: seen.append(ctx.partial))
            client = await stage.connect()
            await client.ask("hi")
            end = await client.until_end()
            assert (end["error"], end["body"], end["outcome"]) == (True, "boom", "error")
            assert len(client.ends()) == 1
            assert text_of(await stage.answer()) == "partial"
            assert [text_of(partial) for partial in seen] == ["partial"]
            (failed,) = stage.fields("chat:request:failed")
            assert (failed["request_id"], failed["stage"]) == ("q1", "stream")
            assert failed["messages_persisted"] is True
            assert stage.log.count("on_chat_error stream") == 1

    async def test_an_error_before_any_text_stores_no_answer(self):
        async with recording(Open, [error(BOOM)]) as stage:
            result = await stage.agent.run("hi")
            assert (result.status, result.error, result.message) == ("error", "boom", None)
            assert [m["role"] for m in await stage.messages()] == ["user"]

    @pytest.mark.parametrize(
        "events",
        [
            [TextStart("t"), TextDelta("t", "cut")],
            [],
        ],
        ids=["in mid text", "before anything"],
    )
    async def test_a_stream_that_ends_without_a_word_is_an_error(self, events: list[Any]):
        async with running(silent(events)) as stage:
            result = await stage.agent.run("hi")
            assert (result.status, result.steps) == ("error", 0)

    async def test_a_model_that_raises_is_an_error_of_the_stream(self):
        class Raises(Think):
            def get_model(self) -> Any:
                return Broken()

        async with running(Raises) as stage:
            result = await stage.agent.run("hi")
            assert (result.status, result.error) == ("error", "the adapter has a bug")
            assert stage.fields("chat:request:failed")[0]["stage"] == "stream"

    async def test_a_call_cut_by_an_error_gets_a_result_that_clients_saw_too(self):
        cut = [ToolInputStart("call-1", "a"), error(BOOM)]
        async with recording(Recorder, cut) as stage:
            client = await stage.connect()
            await client.ask("hi")
            await client.until_end()
            assert part_of(await stage.answer())["state"] == "output-error"
            assert folded(client.chunks()) == await stage.answer()

    @pytest.mark.parametrize("delta", ["\ud83d", "a\udc00b"])
    async def test_a_text_utf8_cannot_hold_ends_the_turn_once(self, delta: str):
        step = [TextStart("t"), TextDelta("t", "fine"), TextDelta("t", delta), TextEnd("t")]
        async with recording(Recorder, step, "next") as stage:
            client = await stage.connect()
            await client.ask("hi")
            await client.until_end()
            assert folded(client.chunks()) == await stage.answer()
            assert (await stage.agent.run("again")).status == "completed"

    async def test_11_9_the_next_turn_works_normally(self):
        async with recording(Recorder, [error(BOOM)], "fine") as stage:
            await stage.agent.run("one")
            assert (await stage.agent.run("two")).text == "fine"


class TestTheErrorHook:
    @pytest.mark.parametrize("path", ["socket", "save_messages", "submit", "stream"])
    async def test_ac42_a_before_turn_that_raises_reaches_the_hooks_once_on_every_path(
        self, path: str
    ):
        async with recording(Open) as stage:
            seen: list[Any] = []
            stage.agent.add_hook("before_turn", raiser(BOOM))
            stage.agent.add_hook("on_chat_error", lambda _, ctx: seen.append(ctx))
            request_id = await start(stage, path)
            await stage.log.until("on_chat_response'")
            assert [(c.stage, c.request_id) for c in seen] == [("turn", request_id)]
            assert stage.log.count("on_chat_response error") == 1
            assert [m["role"] for m in await stage.messages()] == ["user"]

    async def test_ac43_returning_nothing_keeps_the_text(self):
        assert await told(Open, lambda *_: None) == ("boom", "boom")

    async def test_ac43_a_hook_that_raises_keeps_the_text_and_is_reported(self):
        async with recording(Open, [error(BOOM)]) as stage:
            stage.agent.add_hook("on_chat_error", raiser(ValueError("hook broke")))
            assert (await stage.agent.run("hi")).error == "boom"
            (report,) = stage.fields("hook:error")
            assert (report["event"], str(report["error"])) == ("on_chat_error", "hook broke")

    @pytest.mark.parametrize("answer", ["Sorry!", ValueError("Sorry!")])
    async def test_5_12_2_the_replaced_text_goes_to_frames_and_result(self, answer: Any):
        assert await told(Recorder, lambda *_: answer) == ("Sorry!", "Sorry!")

    async def test_5_12_2_each_hook_sees_what_the_one_before_made_of_it(self):
        async with recording(Open, [error(BOOM)]) as stage:
            stage.agent.add_hook("on_chat_error", lambda error, _: f"{error}!")
            stage.agent.add_hook("on_chat_error", lambda error, _: f"{error}?")
            client = await stage.connect()
            await client.ask("hi")
            assert (await client.until_end())["body"] == "boom!?"

    async def test_11_8_clients_read_a_safe_text_unless_errors_are_exposed(self):
        body, error_text = await told(Recorder, lambda *_: None)
        assert "boom" not in body
        assert error_text == "boom"

    @pytest.mark.parametrize(
        "odd", [RuntimeError("\ud83d"), RuntimeError(""), type("E", (Exception,), {"__str__": 1})()]
    )
    async def test_an_error_without_a_readable_text_still_ends_the_turn_once(self, odd: Exception):
        async with recording(Open, [error(odd)], "next") as stage:
            client = await stage.connect()
            await client.ask("hi")
            end = await client.until_end()
            assert end["body"]
            assert stage.log.count("settled error") == 1
            assert (await stage.agent.run("again")).status == "completed"


class TestNothingToRun:
    async def test_ac89_an_agent_without_a_model_fails_at_stage_turn(self):
        class NoModel(Think):
            expose_errors = True

            def get_model(self) -> Any:
                return Think.get_model(self)

        async with running(NoModel) as stage:
            stage.agent.__dict__.pop("model")
            client = await stage.connect()
            await client.ask("hi")
            end = await client.until_end()
            assert end["error"] is True
            assert "get_model" in end["body"]
            assert len(client.ends()) == 1
            assert stage.fields("chat:request:failed")[0]["stage"] == "turn"
            assert [m["role"] for m in await stage.messages()] == ["user"]

    @pytest.mark.parametrize(
        ("path", "trigger"),
        [("socket", "ws-chat"), ("save_messages", "programmatic"), ("submit", "submission")],
    )
    async def test_ac90_the_end_event_says_error_on_every_path(self, path: str, trigger: str):
        async with recording(Recorder, [error(BOOM)]) as stage:
            await start(stage, path)
            await stage.log.until("on_chat_response'")
            (began,) = stage.fields("chat:turn:start")
            (ended,) = stage.fields("chat:turn:finish")
            assert (began["trigger"], ended["trigger"]) == (trigger, trigger)
            assert (ended["status"], ended["duration_ms"] >= 0) == ("error", True)
            assert ended["error"] is not None

    async def test_ac95_an_empty_answer_stores_nothing_and_is_told(self):
        seen: list[Any] = []
        async with recording(Recorder, []) as stage:
            stage.agent.add_hook("on_chat_response", seen.append)
            result = await stage.agent.run("hi")
            assert (result.status, result.message) == ("completed", None)
            assert [m["role"] for m in await stage.messages()] == ["user"]
            assert [(r.status, r.message["parts"]) for r in seen] == [("completed", [])] or [
                part["type"] for part in seen[0].message["parts"]
            ] == ["step-start"]

    async def test_10_11_a_turn_without_any_message_is_an_error(self):
        async with recording(Recorder, "never") as stage:
            result = await stage.agent.save_messages([])
            assert (result.status, stage.model.requests) == ("error", [])
            assert stage.fields("chat:request:failed")[0]["stage"] == "turn"

    async def test_2_27_a_tool_list_that_cannot_be_is_an_error_at_stage_turn(self):
        class Clash(Recorder):
            @tool
            async def c(self) -> str:
                """One."""
                return ""

            def get_tools(self) -> Any:
                return {"c": tool(_plain)}

        async with recording(Clash) as stage:
            assert (await stage.agent.run("hi")).status == "error"
            assert stage.fields("chat:request:failed")[0]["stage"] == "turn"


class TestTools:
    async def test_11_3_a_call_that_fails_is_no_failure_of_the_turn(self):
        async with recording(Recorder, [call("fails")], "ok") as stage:
            assert (await stage.agent.run("hi")).status == "completed"
            assert stage.fields("chat:request:failed") == []


async def start(stage: Stage[Any], path: str) -> str:
    """Start a turn on one of the ways in; returns its request id."""
    match path:
        case "socket":
            await (await stage.connect()).ask("hi")
            return "q1"
        case "submit":
            return (await stage.agent.submit("hi")).request_id
        case "stream":
            chunks = [chunk async for chunk in stage.agent.stream("hi")]
            assert [chunk["type"] for chunk in chunks] == ["error"]
            return stage.fields("chat:turn:start")[0]["request_id"]
        case _:
            message: Any = {"id": "u", "role": "user", "parts": [{"type": "text", "text": "hi"}]}
            return (await stage.agent.save_messages([message])).request_id


async def told(cls: type[Recorder], hook: Any) -> tuple[str, str]:
    """What clients read and what the turn's row says after a model error."""
    async with recording(cls, [error(BOOM)]) as stage:
        stage.agent.add_hook("on_chat_error", hook)
        client = await stage.connect()
        await client.ask("hi")
        end = await client.until_end()
        return end["body"], (await stage.agent.get_turn("q1")).error or ""


def raiser(problem: Exception) -> Any:
    def hook(*_: Any) -> None:
        raise problem

    return hook


async def _plain() -> str:
    """A tool."""
    return ""


class Broken:
    """A model with a bug of its own."""

    provider = "broken"
    model_id = "broken"

    async def stream(self, request: Any, signal: Any) -> AsyncIterator[Any]:
        raise RuntimeError("the adapter has a bug")
        yield Failure(BOOM)


def silent(events: list[Any]) -> type[Think]:
    """An agent whose model just stops talking."""

    class Silent:
        provider = "silent"
        model_id = "silent"

        async def stream(self, request: Any, signal: Any) -> AsyncIterator[Any]:
            for event in events:
                yield event

    class Agent(Think):
        def get_model(self) -> Any:
            return Silent()

    return Agent
