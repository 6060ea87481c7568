"""Tools of the browser and approvals: spec/01 cases 51-62, 65 and §11.

DESIGN §8.2 replaces §11.11: a continuation goes on in the same stored message. §11.7's 50 ms are
not waited for: the continuation is accepted in the transaction that stores the last answer.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.wire.client import Frame, Stream, Tab, kinds
from tests.wire.room import LOCATE, Chat, Room, part_of, room, text_of
from thinkwell import tool
from thinkwell.messages.model_messages import ToolMessage
from thinkwell.testing import call, pause, text

CONTINUES = {"continuation": True, "done": True}


async def asked(r: Room, *tabs: Tab, **body: Any) -> None:
    """The first tab asks; the turn ends with calls that wait; every tab has read it."""
    await tabs[0].ask("where am I?", **{"clientTools": [LOCATE], **body})
    for tab in tabs:
        await tab.stream()


async def continuation(tab: Tab) -> Stream:
    """A tab that did not answer reads a continuation to its end."""
    end = await tab.until("use_chat_response", **CONTINUES)
    return tab.of(end["id"])


async def taken(tab: Tab) -> Stream:
    """The tab that answered takes the offer and reads on to the end."""
    offer = await tab.until("stream_resuming")
    await tab.ack(offer["id"])
    await tab.until("use_chat_response", id=offer["id"], done=True)
    return tab.of(offer["id"])


def results(r: Room) -> list[Any]:
    """The tool results the model read last."""
    messages = r.model.requests[-1].messages
    return [i.value for m in messages if isinstance(m, ToolMessage) for i in m.content]


class TestOneCall:
    async def test_case_51_the_turn_ends_with_the_call_open(self):
        async with room([call("locate", {"a": 1})]) as r:
            asker = await r.tab("R")
            await asked(r, asker)
            stream = asker.of("q1")
            assert {"type": "tool-input-available", "toolCallId": "call-1"}.items() <= next(
                chunk for chunk in stream.chunks if chunk["type"] == "tool-input-available"
            ).items()
            assert stream.chunks[-1] == {"type": "finish", "finishReason": "tool-calls"}
            assert part_of((await r.messages())[-1])["state"] == "input-available"

    async def test_case_51_the_result_is_shown_and_the_answer_goes_on(self):
        gate = pause()
        step = [text("You are "), gate, text("in Paris")]
        async with room(["Hm. ", call("locate")], step) as r:
            asker, other = await r.tabs()
            await asked(r, asker, other)
            message_id = (await r.messages())[-1]["id"]
            await asker.result(output=1)
            for tab in (asker, other):
                shown = await tab.expect("message_updated")
                part = part_of(shown["message"])
                assert shown["message"]["id"] == message_id
                assert (part["state"], part["output"]) == ("output-available", 1)
                assert part["preliminary"] is False
            offer = await asker.expect("stream_resuming")
            await asker.ack(offer["id"])
            await asker.part(offer["id"])
            gate.open()
            live = await continuation(other)
            assert all(frame["continuation"] for frame in live.frames)
            assert all("replay" not in frame for frame in live.frames)
            assert live.chunks[0] == {"type": "start"}
            await asker.until("use_chat_response", **CONTINUES)
            mine = asker.of(offer["id"])
            assert all(frame["continuation"] for frame in mine.frames)
            assert mine.bodies == live.bodies
            assert mine.chunk_kinds.count("start") == 1
            stored = await r.messages()
            assert [m["id"] for m in stored] == ["u-q1", message_id]
            assert text_of(stored[-1]) == "Hm. You are in Paris"
            for tab in (asker, other):
                last = [f for f in tab.heard if f["type"] == "cf_agent_chat_messages"][-1]
                assert last["messages"] == stored

    async def test_case_52_a_probe_right_after_the_result_is_never_answered_idle(self):
        gate = pause()
        async with room([call("locate")], [gate, "Paris"]) as r:
            asker = await r.tab("R")
            await asked(r, asker)
            await asker.result()
            await asker.ask_to_resume("p")
            answer = await asker.until(lambda f: f.get("probeId") == "p")
            assert kinds([answer])[0] in ("stream_pending", "stream_resuming")
            gate.open()
            assert answer["id"] == (await self._id(asker, answer))

    async def _id(self, asker: Tab, answer: Frame) -> str:
        if answer["type"] == "cf_agent_stream_pending":
            return (await asker.until("stream_resuming"))["id"]
        return answer["id"]

    async def test_case_57_the_first_result_stays(self):
        async with room([call("locate")], "one") as r:
            asker, other = await r.tabs()
            await asked(r, asker, other)
            await asker.result(output=1)
            await asker.result(output=2)
            await continuation(other)
            updates = [f for f in other.heard if f["type"] == "cf_agent_message_updated"]
            outputs = [part_of(f["message"]).get("output") for f in updates]
            assert outputs == [None, 1]  # the stored question, then its one result
            assert part_of((await r.messages())[-1])["output"] == 1
            await other.nothing_more()

    async def test_case_57_an_error_without_a_text_gets_one(self):
        async with room([call("locate")]) as r:
            asker = await r.tab("R")
            await asked(r, asker)
            await asker.result(state="output-error", autoContinue=False)
            part = part_of((await asker.expect("message_updated"))["message"])
            assert (part["state"], part["errorText"]) == (
                "output-error",
                "Tool execution denied by user",
            )

    async def test_11_3_an_error_with_a_text_keeps_it(self):
        async with room([call("locate")]) as r:
            asker = await r.tab("R")
            await asked(r, asker)
            await asker.result(state="output-error", errorText="no GPS", autoContinue=False)
            shown = await asker.expect("message_updated")
            assert part_of(shown["message"])["errorText"] == "no GPS"

    async def test_11_2_a_tool_without_a_function_needs_no_schema_of_the_client(self):
        async with room([call("ask_user")], "fine") as r:
            asker, other = await r.tabs()
            await asker.ask("hi")
            await asker.stream()
            await other.stream()
            await asker.result(output="yes")
            assert (await continuation(other)).text == "fine"
            assert results(r) == ["yes"]

    async def test_case_60_the_continuation_runs_although_its_asker_has_left(self):
        gate = pause()
        async with room([call("locate")], [gate, "Paris"]) as r:
            asker, other = await r.tabs()
            await asked(r, asker, other)
            await asker.result()
            await gate.reached()
            await asker.close()
            gate.open()
            await continuation(other)
            assert text_of((await r.messages())[-1]) == "Paris"

    @pytest.mark.parametrize(
        ("sent", "names"), [([{"name": "other"}], {"other"}), (None, {"locate"})]
    )
    async def test_case_61_the_tools_sent_last_are_those_of_the_continuation(
        self, sent: Any, names: set[str]
    ):
        async with room([call("locate")], "Paris") as r:
            asker = await r.tab("R")
            await asked(r, asker)
            again = await r.tab("R")
            await again.result(**({} if sent is None else {"clientTools": sent}))
            await taken(again)
            known = {tool.name for tool in r.model.requests[-1].tools}
            assert known - {"add", "destroy", "ask_user"} == names

    async def test_11_13_a_tab_that_reconnects_sees_the_call_and_answers_it(self):
        async with room([call("locate")], "Paris") as r:
            asker = await r.tab("R")
            await asked(r, asker)
            await asker.close()
            again = await r.tab("R")
            assert part_of(again.greeting[0]["messages"][-1])["state"] == "input-available"
            await again.result(clientTools=[LOCATE])
            await taken(again)
            assert text_of((await r.messages())[-1]) == "Paris"

    async def test_a_continuation_that_is_over_is_not_told_again(self):
        """§10.4.4 for continuations: the transcript sent at the end holds the words already, and
        a client would append them once more. The recorded reference does the same; the transcript
        that follows here takes away the empty message older clients make of a bare end.
        """
        async with room([call("locate")], "Paris") as r:
            asker = await r.tab("R")
            await asked(r, asker)
            await asker.result()
            request = (await taken(asker)).end["id"]
            await asker.before_now()
            await asker.ack(request)
            end = await asker.expect("use_chat_response", id=request, done=True, replay=True)
            assert (end["continuation"], end["outcome"]) == (True, "completed")
            await asker.expect("chat_messages", messages=await r.messages())
            await asker.nothing_more()

    async def test_case_65_a_call_the_model_repeats_is_not_told_again(self):
        """A provider that re-emits a settled call: no chunk names it and the part stays."""
        again = [call("locate", id="call-1"), "Paris"]
        async with room([call("locate", id="call-1")], again, "Paris") as r:
            asker, other = await r.tabs()
            await asked(r, asker, other)
            await asker.result(output=1)
            live = await continuation(other)
            assert not [c for c in live.chunks if c.get("toolCallId") == "call-1"]
            part = part_of((await r.messages())[-1])
            assert (part["state"], part["output"]) == ("output-available", 1)


class TestSeveralCalls:
    STEP = (call("locate"), call("locate"))

    async def test_case_54_one_continuation_after_the_last_result(self):
        async with room(self.STEP, "both") as r:
            asker, other = await r.tabs()
            await asked(r, asker, other)
            await asker.result("call-1")
            for tab in (asker, other):
                await tab.expect("message_updated")
                await tab.nothing_more()
            assert (await other.probe())["reason"] == "idle"
            await asker.result("call-2")
            await continuation(other)
            await other.nothing_more()
            assert len(r.model.requests) == 2

    async def test_case_55_an_error_may_complete_the_batch(self):
        async with room(self.STEP, "both") as r:
            asker, other = await r.tabs()
            await asked(r, asker, other)
            await asker.result("call-1")
            await asker.result("call-2", state="output-error", autoContinue=False)
            await continuation(other)
            assert len(r.model.requests) == 2

    async def test_case_55_an_error_alone_starts_nothing(self):
        async with room([call("locate")]) as r:
            asker = await r.tab("R")
            await asked(r, asker)
            await asker.result(state="output-error", autoContinue=False)
            await asker.expect("message_updated")
            assert (await asker.probe())["reason"] == "idle"
            await asker.nothing_more()

    async def test_case_56_a_result_that_comes_while_the_turn_streams_is_kept(self):
        gate = pause()
        async with room([call("locate"), gate, call("locate")], "both") as r:
            asker, other = await r.tabs()
            await asker.ask("where?", clientTools=[LOCATE])
            await asker.until(lambda f: "tool-input-available" in f.get("body", ""))
            await asker.result("call-1", output=1)
            await asker.until("message_updated")
            gate.open()
            await asker.until("use_chat_response", id="q1", done=True)
            assert part_of((await r.messages())[-1])["output"] == 1
            await asker.nothing_more()
            await asker.result("call-2", output=2)
            live = await continuation(other)
            assert live.text == "both"
            stored = (await r.messages())[-1]
            assert [part_of(stored, c)["output"] for c in ("call-1", "call-2")] == [1, 2]
            assert len(r.model.requests) == 2

    async def test_11_9_a_continuation_may_ask_the_browser_again(self):
        async with room([call("locate")], [call("locate")], "there") as r:
            asker, other = await r.tabs()
            await asked(r, asker, other)
            await asker.result("call-1", output=1)
            await continuation(other)
            await asker.result("call-2", output=2)
            assert (await continuation(other)).text == "there"
            assert [m["role"] for m in await r.messages()] == ["user", "assistant"]


class TestApprovals:
    async def test_case_58_a_reload_shows_the_request(self):
        async with room([call("destroy", {"target": "x"})]) as r:
            asker = await r.tab("R")
            await asker.ask("go")
            stream = await asker.stream()
            (request,) = [c for c in stream.chunks if c["type"] == "tool-approval-request"]
            part = part_of((await r.messages())[-1])
            assert part["state"] == "approval-requested"
            assert part["approval"] == {"id": request["approvalId"]}
            assert part_of((await r.tab()).greeting[0]["messages"][-1]) == part

    async def test_7_11_a_reload_while_the_turn_streams_shows_the_request(self):
        gate = pause()
        async with room([call("destroy", {"target": "x"}), gate]) as r:
            asker = await r.tab("R")
            await asker.ask("go")
            await gate.reached()
            await asker.until(lambda f: "tool-input-available" in f.get("body", ""))
            other = await r.tab("O")
            await other.ack("q1")
            await other.until("use_chat_response", replayComplete=True)
            gate.open()
            await other.until("use_chat_response", id="q1", done=True)
            assert "tool-approval-request" in other.of("q1").chunk_kinds

    async def test_case_58_an_allowed_call_runs_once_and_its_result_is_streamed_and_updated(self):
        """F20: no chunk of the continuation names a call it did not open (DESIGN §8.14)."""
        async with room([call("destroy", {"target": "x"})], "gone") as r:
            asker, other = await r.tabs()
            await asker.ask("go")
            await asker.stream()
            await other.stream()
            approval = part_of((await r.messages())[-1])["approval"]
            await asker.decide(approved=True)
            decided = part_of((await other.expect("message_updated"))["message"])
            assert decided["state"] == "approval-responded"
            assert decided["approval"] == {**approval, "approved": True}
            live = await continuation(other)
            about = [(c["type"], c["toolCallId"]) for c in live.chunks if "toolCallId" in c]
            call_id = decided["toolCallId"]
            assert about == [
                ("tool-input-available", call_id),
                ("tool-output-available", call_id),
            ]
            updates = [f for f in other.heard if f["type"] == "cf_agent_message_updated"]
            last = part_of(updates[-1]["message"])
            assert (last["state"], last["output"]) == ("output-available", "destroyed x")
            assert results(r) == ["destroyed x"]

    async def test_case_59_a_refused_call_does_not_run_and_the_model_goes_on(self):
        ran: list[str] = []

        class Watched(Chat, name="chat"):
            @tool(needs_approval=True)
            async def wipe(self) -> str:
                """Wipe."""
                ran.append("wipe")
                return "wiped"

        async with room([call("wipe")], "very well", cls=Watched) as r:
            asker, other = await r.tabs()
            await asker.ask("go")
            await asker.stream()
            await other.stream()
            await asker.decide(approved=False)
            decided = part_of((await other.expect("message_updated"))["message"])
            assert decided["state"] == "output-denied"
            assert decided["approval"]["approved"] is False
            assert (await continuation(other)).text == "very well"
            assert ran == []

    async def test_11_4_the_first_decision_stays(self):
        async with room([call("destroy", {"target": "x"})], "kept") as r:
            asker, other = await r.tabs()
            await asker.ask("go")
            await asker.stream()
            await other.stream()
            await asker.decide(approved=False)
            await asker.decide(approved=True)
            await continuation(other)
            assert part_of((await r.messages())[-1])["state"] == "output-denied"


class TestClear:
    async def test_case_62_takes_a_continuation_along_that_has_begun(self):
        gate = pause()
        async with room([call("locate")], [text("w1 "), gate]) as r:
            asker, other = await r.tabs()
            await asked(r, asker, other)
            await asker.result()
            await gate.reached()
            await other.clear()
            await asker.until("chat_clear")
            assert await r.messages() == []
            assert (await (await r.tab()).probe())["reason"] == "idle"
            assert await r.messages() == []

    async def test_case_62_a_tab_that_waits_for_it_is_released(self):
        gate = pause()
        async with room([call("locate"), gate], [text("never")]) as r:
            asker = await r.tab("R")
            await asker.ask("where?", clientTools=[LOCATE])
            await asker.until(lambda f: "tool-input-available" in f.get("body", ""))
            await asker.result()
            await asker.until("message_updated")
            await asker.ask("next", "q2")
            await asker.before_now()
            await asker.clear()
            gate.open()
            ends: set[str] = set()
            while ends != {"q1", "q2"}:
                ends.add((await asker.until("use_chat_response", done=True))["id"])
            await asker.expect("chat_messages", messages=[])
            await asker.nothing_more()
            assert (await asker.probe())["reason"] == "idle"
            assert len(r.model.requests) == 1
