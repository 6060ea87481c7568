"""Client tools: the turn ends, the answer comes from outside, a continuation goes on.

spec/01 §11 and cases 51-57, 60-61; spec/02 §3.9, §3.11-3.12, §7.8, AC30-AC33, AC88; DESIGN §8.2.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.turns.support import Client, Stage, name_of, part_of, running
from thinkwell import Think, tool
from thinkwell.messages.message import UIMessage, text_of
from thinkwell.messages.model_messages import ToolMessage
from thinkwell.testing import call, pause, text
from thinkwell.tools.tool import client_tool

LOCATE: dict[str, Any] = {"name": "locate", "parameters": {"type": "object"}}


class Guide(Think):
    """The browser runs `locate` and `ask`; the server runs `add`."""

    time_limits = {"grace": 0.0}

    @tool
    async def add(self, a: int, b: int) -> int:
        """Add."""
        return a + b

    def get_tools(self) -> Any:
        return {"ask": client_tool("ask")}


async def ask(stage: Stage[Any], client: Client, **body: Any) -> str:
    """Ask something that ends with open calls; the id of the answer."""
    await client.ask("where am I?", clientTools=[LOCATE], **body)
    await client.until_end()
    return (await stage.answer())["id"]


async def answer(client: Client, call_id: str = "call-1", **fields: Any) -> None:
    frame = {"toolCallId": call_id, "toolName": "locate", "output": "Paris", "autoContinue": True}
    await client.send(type="cf_agent_tool_result", **{**frame, **fields})


async def continuation_of(client: Client) -> str:
    """The request id of the continuation this connection is offered."""
    offer = await client.until(lambda frame: frame["type"] == "cf_agent_stream_resuming")
    return str(offer["id"])


async def idle(stage: Stage[Any]) -> None:
    await stage.agent._turns.wait_until_idle()


def updates(client: Client) -> list[UIMessage]:
    frames = [f for f in client.frames if f["type"] == "cf_agent_message_updated"]
    return [frame["message"] for frame in frames]


def results(stage: Stage[Any], request: int = -1) -> list[Any]:
    """What the model read as tool results."""
    messages = stage.model.requests[request].messages
    tools = [message for message in messages if isinstance(message, ToolMessage)]
    return [item.value for message in tools for item in message.content]


class TestTheTurnThatAsks:
    async def test_ac30_the_server_tool_runs_and_the_turn_ends_with_the_client_call_open(self):
        step = [call("locate", {}), call("add", {"a": 1, "b": 2})]
        async with running(Guide, step) as stage:
            client = await stage.connect()
            await ask(stage, client)
            stored = await stage.answer()
            assert part_of(stored)["state"] == "input-available"
            assert part_of(stored, "call-2")["output"] == 3
            assert (await stage.agent.get_turn("q1")).stop_reason == "client_tool"

    async def test_11_2_a_tool_the_server_declares_without_a_function_is_a_client_tool(self):
        async with running(Guide, [call("ask", {})], "fine") as stage:
            result = await stage.agent.run("hi")
            assert result.stop_reason == "client_tool"
            assert await stage.agent.add_tool_result("call-1", output="yes")
            await idle(stage)
            assert results(stage) == ["yes"]

    async def test_3_9_the_call_is_a_pending_interaction_until_it_is_answered(self):
        async with running(Guide, [call("locate", {})], "Paris") as stage:
            client = await stage.connect()
            await ask(stage, client)
            assert await stage.agent.has_pending_interaction()
            await answer(client)
            await idle(stage)
            assert not await stage.agent.has_pending_interaction()

    async def test_ac88_a_client_tool_named_like_a_server_tool_is_left_out(self):
        async with running(Guide, [call("add", {"a": 1, "b": 1})], "two") as stage:
            client = await stage.connect()
            await client.ask("1+1", clientTools=[{"name": "add"}])
            await client.until_end()
            assert part_of(await stage.answer())["output"] == 2
            assert stage.fields("tools:shadowed")[0]["name"] == "add"


class TestTheAnswer:
    async def test_case_51_is_shown_and_continued_in_the_same_message(self):
        async with running(Guide, ["Locating", call("locate", {})], "You are in Paris") as stage:
            client, other = await stage.connect(), await stage.connect("other")
            message_id = await ask(stage, client)
            await answer(client)
            request_id = await continuation_of(client)
            await other.until_end(request_id)
            shown = part_of(updates(other)[1])  # the first one is the end of the turn before
            assert (shown["state"], shown["preliminary"]) == ("output-available", False)
            assert other.chunks(request_id)[0] == {"type": "start"}
            frames = [frame for frame in other.frames if frame.get("id") == request_id]
            assert all(frame["continuation"] for frame in frames)
            messages = await stage.messages()
            assert [m["id"] for m in messages] == ["u-q1", message_id]
            assert text_of(messages[-1]) == "LocatingYou are in Paris"

    async def test_10_3_1_its_sender_takes_the_stream_and_gets_it_from_the_start(self):
        gate = pause()
        async with running(Guide, [call("locate", {})], [text("You"), gate, text("are")]) as stage:
            client = await stage.connect()
            await ask(stage, client)
            await answer(client)
            request_id = await continuation_of(client)
            await gate.reached()
            await client.send(type="cf_agent_stream_resume_ack", id=request_id)
            gate.open()
            await client.until_end(request_id)
            kinds = [chunk["type"] for chunk in client.chunks(request_id)]
            assert (kinds[0], kinds.count("start"), kinds[-1]) == ("start", 1, "finish")

    async def test_case_52_a_probe_sent_right_after_it_is_never_answered_idle(self):
        async with running(Guide, [call("locate", {})], "Paris") as stage:
            client = await stage.connect()
            await ask(stage, client)
            await answer(client)
            await client.send(type="cf_agent_stream_resume_request", probeId="p")
            reply = await client.until(lambda frame: frame.get("probeId") == "p")
            assert name_of(reply) in ("stream_pending", "stream_resuming")
            await idle(stage)

    async def test_case_53_the_continuation_belongs_to_its_sender_while_that_is_open(self):
        gate = pause()
        async with running(Guide, [call("locate", {})], ["Par", gate, "is"]) as stage:
            client, other = await stage.connect(), await stage.connect("other")
            await ask(stage, client)
            await answer(client)
            await gate.reached()
            await other.until(lambda frame: frame.get("continuation") is True)
            await other.send(type="cf_agent_stream_resume_request", probeId="p")
            assert other.frames[-1]["reason"] == "continuation-owned"
            assert client.connection is not None
            await client.connection.close()
            await other.send(type="cf_agent_stream_resume_request", probeId="p2")
            assert name_of(other.frames[-1]) == "stream_resuming"
            gate.open()

    async def test_ac31_hooks_hear_of_it_and_of_the_continuation(self):
        async with running(Guide, [call("locate", {})], "Paris") as stage:
            heard: list[Any] = []
            stage.agent.add_hook("after_tool_call", lambda ctx: heard.append(ctx.outcome))
            stage.agent.add_hook("before_turn", lambda ctx: heard.append(ctx.continuation))
            client = await stage.connect()
            await ask(stage, client)
            await answer(client)
            await idle(stage)
            assert heard == [False, "client", True]
            assert results(stage) == ["Paris"]

    async def test_case_57_the_first_answer_stays_for_ever(self):
        async with running(Guide, [call("locate", {}), call("locate", {})]) as stage:
            client = await stage.connect()
            await ask(stage, client)
            await answer(client)
            await answer(client, output="Rome")
            assert len(updates(client)) == 2  # the stored question, and its one answer
            assert part_of(await stage.answer())["output"] == "Paris"

    async def test_case_57_an_error_without_a_text_gets_one(self):
        async with running(Guide, [call("locate", {})]) as stage:
            client = await stage.connect()
            await ask(stage, client)
            await answer(client, state="output-error", autoContinue=False)
            part = part_of(await stage.answer())
            assert part["errorText"] == "Tool execution denied by user"
            await idle(stage)
            assert len(stage.model.requests) == 1

    async def test_3_12_an_unknown_call_changes_nothing(self):
        async with running(Guide, "hi") as stage:
            await stage.agent.run("hello")
            assert not await stage.agent.add_tool_result("nowhere", output=1)

    @pytest.mark.parametrize("given", [{}, {"output": 1, "error": "no"}])
    async def test_it_is_an_output_or_an_error(self, given: dict[str, Any]):
        async with running(Guide) as stage:
            with pytest.raises(ValueError, match="exactly one"):
                await stage.agent.add_tool_result("call-1", **given)

    async def test_case_60_its_sender_may_leave(self):
        gate = pause()
        async with running(Guide, [call("locate", {})], [gate, "Paris"]) as stage:
            client = await stage.connect()
            await ask(stage, client)
            await answer(client)
            assert client.connection is not None
            await client.connection.close()
            gate.open()
            await idle(stage)
            assert text_of(await stage.answer()) == "Paris"

    @pytest.mark.parametrize("again", [None, [{"name": "zoom"}]])
    async def test_case_61_the_continuation_has_the_tools_the_client_named_last(self, again: Any):
        async with running(Guide, [call("locate", {})], "Paris") as stage:
            client = await stage.connect()
            await ask(stage, client)
            await answer(client, clientTools=again)
            await idle(stage)
            offered = [spec.name for spec in stage.model.requests[-1].tools]
            assert offered[-1] == ("locate" if again is None else "zoom")


class TestSeveralCalls:
    TWO = (call("locate", {}), call("locate", {}))

    @pytest.mark.parametrize("last", [True, False])
    async def test_ac32_one_continuation_once_all_are_answered(self, last: bool):
        async with running(Guide, self.TWO, "both") as stage:
            client = await stage.connect()
            await ask(stage, client)
            await answer(client)
            await idle(stage)
            assert len(stage.model.requests) == 1
            await answer(client, "call-2", autoContinue=last)
            await idle(stage)
            assert results(stage) == ["Paris", "Paris"]
            assert len(stage.model.requests) == 2

    async def test_ac32_holds_for_tools_the_server_declares_in_get_tools(self):
        async with running(Guide, [call("ask", {}), call("ask", {})], "both") as stage:
            await stage.agent.run("hi")
            await stage.agent.add_tool_result("call-2", output=2)
            await idle(stage)
            assert len(stage.model.requests) == 1
            await stage.agent.add_tool_result("call-1", output=1)
            await idle(stage)
            assert results(stage) == [1, 2]

    async def test_case_55_an_error_may_be_the_last_answer(self):
        async with running(Guide, self.TWO, "one") as stage:
            client = await stage.connect()
            await ask(stage, client)
            await answer(client)
            await answer(client, "call-2", state="output-error", errorText="no", autoContinue=False)
            await idle(stage)
            assert results(stage) == ["Paris", "no"]

    async def test_answers_that_come_at_once_start_one_continuation(self):
        async with running(Guide, self.TWO, "both", suspends=True) as stage:
            one, two = await stage.connect("one"), await stage.connect("two")
            await ask(stage, one)
            await asyncio.gather(answer(one), answer(two, "call-2"))
            await idle(stage)
            assert len(stage.model.requests) == 2

    async def test_11_9_a_continuation_may_ask_the_client_again(self):
        steps = [[call("locate", {})], [call("locate", {})], "done"]
        async with running(Guide, *steps) as stage:
            client = await stage.connect()
            message_id = await ask(stage, client)
            await answer(client)
            await idle(stage)
            await answer(client, "call-2", output="Rome")
            await idle(stage)
            assert results(stage) == ["Paris", "Rome"]
            assert (await stage.answer())["id"] == message_id


class TestWhileTheTurnStreams:
    async def start(self, stage: Stage[Any], client: Client) -> None:
        await client.ask("where?", clientTools=[LOCATE])
        await client.until(lambda frame: "tool-input-available" in str(frame.get("body")))

    async def test_ac33_the_answer_is_stored_and_the_continuation_follows_the_stream(self):
        gate = pause()
        async with running(Guide, [call("locate", {}), gate], "Paris") as stage:
            client = await stage.connect()
            await self.start(stage, client)
            await answer(client)
            assert len(stage.model.requests) == 1
            gate.open()
            await client.until_end()
            await idle(stage)
            assert part_of(await stage.answer())["output"] == "Paris"
            assert (await stage.agent.get_turn("q1")).stop_reason == "client_tool"
            assert len(stage.model.requests) == 2

    async def test_without_auto_continue_nobody_goes_on(self):
        gate = pause()
        async with running(Guide, [call("locate", {}), gate]) as stage:
            client = await stage.connect()
            await self.start(stage, client)
            await answer(client, autoContinue=False)
            gate.open()
            await client.until_end()
            await idle(stage)
            assert len(stage.model.requests) == 1

    async def test_case_56_the_second_call_is_answered_after_the_stream(self):
        gate = pause()
        step = [call("locate", {}), gate, call("locate", {})]
        async with running(Guide, step, "both") as stage:
            client = await stage.connect()
            await self.start(stage, client)
            await answer(client)
            gate.open()
            await client.until_end()
            assert len(stage.model.requests) == 1
            await answer(client, "call-2", output="Rome", autoContinue=False)
            await idle(stage)
            assert results(stage) == ["Paris", "Rome"]

    async def test_an_answer_at_the_moment_of_the_end_is_not_lost(self):
        async with running(Guide, [call("locate", {})], "Paris", suspends=True) as stage:
            client = await stage.connect()
            await client.ask("where?", clientTools=[LOCATE])
            await stage.log.until("committed tool-input-available")
            while not await stage.agent.add_tool_result("call-1", output="Paris"):
                await asyncio.sleep(0)
            await client.until_end()
            await idle(stage)
            assert results(stage) == ["Paris"]
            assert text_of(await stage.answer()) == "Paris"


async def test_a_new_message_says_of_a_client_tool_that_nobody_answered():
    async with running(Guide, [call("ask")], "something else") as stage:
        await stage.agent.run("ask me")
        await stage.agent.run("never mind")
        part = part_of((await stage.messages())[1])
        assert part["errorText"] == "Not answered: the conversation went on."
