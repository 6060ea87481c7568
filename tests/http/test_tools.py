"""Tool outputs and approvals come back with the whole list (spec/01 §14.7, case 70)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.http.support import DOWN, Client, frames_until, talking
from thinkwell.messages.fold import Fold
from thinkwell.messages.message import UIMessage, text_of, user_message
from thinkwell.testing import call, error, pause, text

ASK = call("ask", {"question": "where?"})
DELETE = call("delete", {"path": "a"})


async def go_on(client: Client, **body: Any) -> list[dict[str, Any]]:
    """Send the list with the answered calls; the client goes on with its copy of the answer."""
    stream = await client.submit(**body)
    chunks = await stream.read()
    fold = Fold(client.shown[-1])
    for chunk in chunks:
        fold.apply(chunk)
    client.shown[-1] = fold.message
    return chunks


def part_of(message: UIMessage, call_id: str = "call-1") -> dict[str, Any]:
    return next(part for part in message["parts"] if part.get("toolCallId") == call_id)


class TestClientTool:
    async def test_the_turn_waits_and_goes_on_with_the_output_in_the_same_message(self):
        """Case 70"""
        async with talking([ASK], "Paris it is") as client:
            answer = await client.say("where am I?")
            assert part_of(answer)["state"] == "input-available"
            client.settle("call-1", state="output-available", output="Paris")
            chunks = await go_on(client)
            assert chunks[0] == {"type": "start", "messageId": answer["id"]}
            assert [chunk["type"] for chunk in chunks].count("start") == 1
            stored = await client.stored()
            assert len(stored) == 2
            assert text_of(stored[1]) == text_of(client.shown[1]) == "Paris it is"
            assert part_of(stored[1])["output"] == "Paris"

    async def test_an_error_of_the_client_goes_on_too(self):
        async with talking([ASK], "never mind") as client:
            await client.say("where am I?")
            client.settle("call-1", state="output-error", errorText="no GPS")
            await go_on(client)
            assert part_of((await client.stored())[1])["errorText"] == "no GPS"

    async def test_tools_that_only_the_client_knows(self):
        """6.2: given with the request"""
        tools = [{"name": "locate", "parameters": {"type": "object"}}]
        async with talking([call("locate")], "ok") as client:
            await client.say("where am I?", clientTools=tools)
            client.settle("call-1", state="output-available", output={"lat": 1})
            await go_on(client, clientTools=tools)
            assert text_of((await client.stored())[1]) == "ok"

    async def test_with_calls_still_open_the_stream_says_nothing(self):
        """11.8: the barrier"""
        async with talking([ASK, call("ask", {"question": "when?"})], "both") as client:
            answer = await client.say("where and when?")
            client.settle("call-1", state="output-available", output="here")
            chunks = await go_on(client)
            assert chunks == [{"type": "start", "messageId": answer["id"]}, {"type": "finish"}]
            client.settle("call-2", state="output-available", output="now")
            await go_on(client)
            assert text_of((await client.stored())[1]) == "both"
            client.model.assert_complete()

    async def test_an_output_that_was_given_before_stays(self):
        """11.5: and the client is told which one that was"""
        gate = pause()
        async with talking([ASK], [gate, text("ok")]) as client:
            await client.say("where am I?")
            tab = await client.socket()
            await frames_until(tab, "cf_agent_identity")
            first = {"toolCallId": "call-1", "toolName": "ask", "output": "Rome"}
            await tab.send_json({"type": "cf_agent_tool_result", **first, "autoContinue": True})
            await gate.reached()
            client.settle("call-1", state="output-available", output="Paris")
            stream = await client.submit()
            gate.open()
            chunks = await stream.read()
            told = [c for c in chunks if c["type"] == "tool-output-available"]
            assert [chunk["output"] for chunk in told] == ["Rome"]
            assert part_of((await client.stored())[1])["output"] == "Rome"
            client.model.assert_complete()

    async def test_a_client_that_missed_the_rest_is_brought_up_to_date(self):
        """The same list twice: the second time there is nothing to do but to tell."""
        async with talking([ASK], "Paris it is") as client:
            await client.say("where am I?")
            client.settle("call-1", state="output-available", output="Paris")
            await (await client.submit()).read()
            await go_on(client)
            assert text_of(client.shown[1]) == "Paris it is"
            assert len(await client.stored()) == 2
            client.model.assert_complete()

    async def test_the_same_list_twice_at_once_goes_on_once(self):
        gate = pause()
        async with talking([ASK], [text("on "), gate, text("ce")]) as client:
            await client.say("where am I?")
            client.settle("call-1", state="output-available", output="Paris")
            streams = [await client.submit() for _ in range(3)]
            await gate.reached()
            gate.open()
            for stream in streams:
                await stream.read()
                assert stream.text() == "on ce"
            client.model.assert_complete()

    async def test_an_output_that_was_applied_without_going_on_can_be_gone_on_with(self):
        """11.6: `autoContinue: false`, then a request of its own"""
        async with talking([ASK], "Paris it is") as client:
            await client.say("where am I?")
            tab = await client.socket()
            await frames_until(tab, "cf_agent_identity")
            result = {"toolCallId": "call-1", "toolName": "ask", "output": "Paris"}
            await tab.send_json({"type": "cf_agent_tool_result", **result, "autoContinue": False})
            await frames_until(tab, "cf_agent_message_updated")
            client.settle("call-1", state="output-available", output="Paris")
            await go_on(client)
            assert text_of((await client.stored())[1]) == "Paris it is"

    async def test_after_a_failure_the_client_can_try_again(self):
        async with talking([ASK], [error(DOWN)], "now") as client:
            await client.say("where am I?")
            client.settle("call-1", state="output-available", output="Paris")
            chunks = await (await client.submit()).read()
            assert chunks[-1]["type"] == "error"


class TestApproval:
    async def ask(self, client: Client) -> str:
        """Ask for something that needs a yes; the approval's id."""
        answer = await client.say("clean up")
        part = part_of(answer)
        assert part["state"] == "approval-requested"
        return part["approval"]["id"]

    async def test_a_yes_runs_the_tool_and_its_output_is_in_the_stream(self):
        async with talking([DELETE], "done") as client:
            approval = await self.ask(client)
            client.settle(
                "call-1", state="approval-responded", approval={"id": approval, "approved": True}
            )
            chunks = await go_on(client)
            kinds = [chunk["type"] for chunk in chunks]
            assert kinds[:3] == ["start", "tool-output-available", "start-step"]
            assert await client.runs() == ["a"]
            assert part_of(client.shown[1])["output"] == "deleted a"
            assert client.shown[1]["id"] == (await client.stored())[1]["id"]
            assert text_of(client.shown[1]) == "done"

    async def test_a_no_is_told_and_the_tool_does_not_run(self):
        async with talking([DELETE], "as you wish") as client:
            approval = await self.ask(client)
            said = {"id": approval, "approved": False, "reason": "mine"}
            client.settle("call-1", state="approval-responded", approval=said)
            chunks = await go_on(client)
            assert chunks[1] == {"type": "tool-output-denied", "toolCallId": "call-1"}
            assert await client.runs() == []
            part = part_of((await client.stored())[1])
            assert (part["state"], part["approval"]["reason"]) == ("output-denied", "mine")
            assert text_of(client.shown[1]) == "as you wish"

    @pytest.mark.parametrize("approved", [None, "yes", 1])
    async def test_what_is_neither_yes_nor_no_runs_nothing(self, approved: Any):
        async with talking([DELETE]) as client:
            approval = await self.ask(client)
            said = {"id": approval, "approved": approved}
            client.settle("call-1", state="approval-responded", approval=said)
            assert [chunk["type"] for chunk in await go_on(client)] == ["start", "finish"]
            assert await client.runs() == []

    async def test_joining_the_continuation_shows_the_whole_answer(self):
        """14.5: a reload in the middle"""
        gate = pause()
        async with talking([text("Let me. "), DELETE], [gate, text("done")]) as client:
            approval = await self.ask(client)
            client.settle(
                "call-1", state="approval-responded", approval={"id": approval, "approved": True}
            )
            async with await client.submit():
                await gate.reached()
            joined = await client.resume()
            assert joined is not None
            gate.open()
            await joined.read()
            stored = (await client.stored())[1]
            shown = joined.message()
            assert shown["id"] == stored["id"]
            assert text_of(shown) == text_of(stored) == "Let me. done"
            assert part_of(shown)["output"] == part_of(stored)["output"] == "deleted a"


class TestRefused:
    async def test_an_old_copy_answers_no_newer_call_with_the_same_id(self):
        """11.3: providers use ids again; a copy says something about its own calls only"""
        again = call("ask", {"question": "when?"}, id="call-1")
        async with talking([ASK], "first", [again]) as client:
            await client.say("where am I?")
            client.settle("call-1", state="output-available", output="Paris")
            await go_on(client)
            behind = list(client.shown)
            await client.say("and when?")
            answer = await client.post("chat", {"messages": behind})
            assert answer.status == 409
            part = part_of((await client.stored())[3])
            assert (part["input"], part["state"]) == ({"question": "when?"}, "input-available")

    async def test_an_answer_that_is_not_the_last_word_any_more(self):
        async with talking([ASK], "first", "second") as client:
            await client.say("where am I?")
            behind = list(client.shown)
            client.settle("call-1", state="output-available", output="Paris")
            await go_on(client)
            await client.say("and now?")
            client.shown = behind
            answer = await client.post("chat", {"messages": client.shown})
            assert answer.status == 409
            assert "moved on" in await answer.text()

    async def test_an_answer_nobody_knows(self):
        async with talking() as client:
            stranger = {"id": "a9", "role": "assistant", "parts": []}
            messages = [user_message("u0", "hi"), stranger]
            answer = await client.post("chat", {"messages": messages})
            assert answer.status == 409
            assert await client.stored() == []

    async def test_an_output_that_is_nested_too_deeply(self):
        async with talking([ASK]) as client:
            await client.say("where am I?")
            deep: Any = 1
            for _ in range(80):
                deep = [deep]
            client.settle("call-1", state="output-available", output=deep)
            answer = await client.post("chat", {"messages": client.shown})
            assert answer.status == 400
            assert "nested deeper" in await answer.text()
