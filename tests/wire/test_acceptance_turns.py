"""One turn over real sockets: spec/01 cases 19-25, 64 and §3.4.3-4, §6, §18.

`R` is the tab that asks, `O` another one.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.wire.client import Tab, chunk_of, kinds
from tests.wire.room import LOCATE, Chat, room, text_of, with_settings
from thinkwell import TurnConfig, tool
from thinkwell.testing import call, error, pause, text

USER = {"id": "u-q1", "role": "user", "parts": [{"type": "text", "text": "hi"}]}


def without_metadata(messages: list[Any]) -> list[Any]:
    return [{k: v for k, v in message.items() if k != "metadata"} for message in messages]


class TestATurn:
    async def test_case_19_the_other_tab_sees_the_question_and_both_see_the_answer(self):
        async with room([text("Hel", "lo")]) as r:
            asker, other = await r.tabs()
            await asker.ask("hi")
            snapshot = await other.expect("chat_messages")
            assert without_metadata(snapshot["messages"]) == [USER]
            streams = [await asker.stream(), await other.stream()]
            for tab, stream in zip((asker, other), streams, strict=True):
                assert [frame["seq"] for frame in stream.frames[:-1]] == list(range(8))
                assert stream.end == {
                    "type": "cf_agent_use_chat_response",
                    "id": "q1",
                    "body": "",
                    "done": True,
                    "messageIds": ["u-q1"],
                    "outcome": "completed",
                }
                assert kinds(tab.heard)[-2:] == ["message_updated", "use_chat_response"]
                await tab.nothing_more()
            first = asker.heard[len(asker.greeting)]
            assert first == streams[0].frames[0]  # its own question is not shown to it again
            assert streams[0].bodies == streams[1].bodies
            message_id = streams[0].chunks[0]["messageId"]
            assert (await r.messages())[-1]["id"] == message_id

    async def test_6_5_the_stored_answer_comes_before_done(self):
        async with room("Hello") as r:
            asker = await r.tab()
            await asker.ask("hi")
            await asker.stream()
            answer = (await r.messages())[-1]
            assert asker.heard[-2] == {"type": "cf_agent_message_updated", "message": answer}

    async def test_case_20_the_first_chunk_names_the_message_it_is_stored_under(self):
        """No model of ours sends a `start` of its own, so there is never an id to adopt."""
        async with room("Hello") as r:
            asker = await r.tab()
            await asker.ask("hi")
            stream = await asker.stream()
            assert stream.chunks[0].keys() == {"type", "messageId"}
            assert stream.chunks[0]["messageId"] == (await r.messages())[-1]["id"]

    async def test_case_21_plain_text_is_one_part(self):
        async with room("Hello") as r:
            asker = await r.tab()
            await asker.ask("hi")
            stream = await asker.stream()
            assert stream.chunk_kinds == [
                *("start", "start-step", "text-start", "text-delta"),
                *("text-end", "finish-step", "finish"),
            ]
            assert len({chunk["id"] for chunk in stream.chunks[2:5]}) == 1
            parts = (await r.messages())[-1]["parts"]
            assert parts == [
                {"type": "step-start"},
                {"type": "text", "text": "Hello", "state": "done"},
            ]

    async def test_6_11_a_turn_of_the_server_reaches_every_tab_without_a_handshake(self):
        async with room("Hello") as r:
            asker, other = await r.tabs()
            result = await r.agent.run("hi")
            for tab in (asker, other):
                await tab.expect("chat_messages")
                stream = await tab.stream(result.request_id)
                assert stream.text == "Hello"
                assert stream.end["outcome"] == "completed"
                assert "messageIds" not in stream.end

    async def test_case_64_a_growing_result_is_stored_as_its_last_value(self):
        class Slow(Chat, name="chat"):
            @tool
            async def grow(self) -> Any:
                """Grow."""
                yield "p1"
                yield "p2"
                yield "f"

        async with room([call("grow")], "done", cls=Slow) as r:
            asker = await r.tab()
            await asker.ask("hi")
            stream = await asker.stream()
            outputs = [c for c in stream.chunks if c["type"] == "tool-output-available"]
            seen = [(c["output"], c.get("preliminary")) for c in outputs]
            assert seen[:2] == [("p1", True), ("p2", True)]
            assert seen[-1] == ("f", False)  # stock clients that watch keep `true` otherwise
            (part,) = [p for p in (await r.messages())[-1]["parts"] if p["type"] == "tool-grow"]
            assert (part["state"], part["output"]) == ("output-available", "f")
            assert not part.get("preliminary")


class TestAStop:
    async def test_case_22_ends_once_without_an_error_and_keeps_what_was_said(self):
        gate = pause()
        async with room([text("Hel"), gate, text("lo")]) as r:
            asker, other = await r.tabs()
            await asker.ask("hi")
            await asker.until(lambda f: f.get("body", "").find('"Hel"') > 0)
            await asker.cancel()
            for tab in (asker, other):
                end = (await tab.stream()).end
                assert (end["body"], end["outcome"]) == ("", "aborted")
                assert "error" not in end
                await tab.nothing_more()
            assert await r.texts() == ["hi", "Hel"]

    async def test_8_2_any_tab_may_stop_it(self):
        gate = pause()
        async with room([text("Hel"), gate]) as r:
            asker, other = await r.tabs()
            await asker.ask("hi")
            await gate.reached()
            await other.cancel()
            assert (await asker.stream()).end["outcome"] == "aborted"

    async def test_8_2_d13_a_turn_that_waits_can_be_stopped(self):
        gate = pause()
        async with room([text("one"), gate]) as r:
            asker = await r.tab()
            await asker.ask("first", "q1")
            await gate.reached()
            await asker.ask("second", "q2")
            await asker.cancel("q2")
            await asker.before_now()  # the server has read it
            gate.open()
            await asker.until("use_chat_response", id="q2", done=True)
            assert asker.of("q1").end["outcome"] == "completed"
            assert asker.of("q2").end["outcome"] == "aborted"
            assert asker.of("q2").chunks == []
            assert len(r.model.requests) == 1

    async def test_2_8_a_tab_that_leaves_stops_nothing(self):
        gate = pause()
        async with room([text("Hel"), gate, text("lo")]) as r:
            asker, other = await r.tabs()
            await asker.ask("hi")
            await gate.reached()
            await asker.close()
            gate.open()
            stream = await other.stream()
            assert (stream.text, stream.end["outcome"]) == ("Hello", "completed")


class TestAnError:
    """§6.7: one frame, where the reference sends two and leaves an empty bubble (D1)."""

    async def test_case_23_is_one_frame_after_what_was_said(self):
        broken = error(RuntimeError("the model broke"))
        cls = with_settings(Chat, expose_errors=True, max_retries=0)
        async with room([text("a", "b"), broken], cls=cls) as r:
            asker, other = await r.tabs()
            await asker.ask("hi")
            for tab in (asker, other):
                stream = await tab.stream()
                assert stream.text == "ab"
                assert "error" not in stream.chunk_kinds
                end = {k: stream.end[k] for k in ("body", "error", "done", "messageIds")}
                assert end == {
                    "body": "the model broke",
                    "error": True,
                    "done": True,
                    "messageIds": ["u-q1"],
                }
                assert kinds(tab.heard)[-2] == "chat_messages"
                await tab.nothing_more()
            assert await r.texts() == ["hi", "ab"]

    async def test_case_24_before_any_chunk_everybody_hears_it_and_the_next_turn_works(self):
        class Refusing(Chat, name="chat"):
            expose_errors = True

            def before_turn(self, ctx: Any) -> None:
                if len(ctx.messages) == 1:
                    raise RuntimeError("not today")

        async with room("fine", cls=Refusing) as r:
            asker, other = await r.tabs()
            await asker.ask("hi")
            for tab in (asker, other):
                end = (await tab.stream()).end
                assert (end["error"], end["body"]) == (True, "not today")
            await asker.ask("again", "q2")
            assert (await asker.stream("q2")).text == "fine"

    async def test_6_8_internals_are_not_shown(self):
        broken = error(RuntimeError("password=hunter2"))
        async with room([broken], cls=with_settings(Chat, max_retries=0)) as r:
            asker = await r.tab()
            await asker.ask("hi")
            end = (await asker.stream()).end
            assert "hunter2" not in end["body"]
            assert end["body"]

    @pytest.mark.parametrize("body", ["{not json", "", "[]", '{"messages": 1}', '"text"'])
    async def test_case_25_a_body_that_cannot_be_read_is_refused_and_nothing_stored(
        self, body: str
    ):
        """★ §3.3: the references stay silent and the client would wait for ever."""
        async with room() as r:
            asker, other = await r.tabs()
            init = {"method": "POST", "body": body}
            await asker.send(type="cf_agent_use_chat_request", id="q1", init=init)
            end = await asker.expect("use_chat_response", id="q1", done=True, error=True)
            assert end["body"]
            await asker.nothing_more()
            await other.nothing_more()
            assert await r.messages() == []


class TestNumbers:
    async def test_3_4_3_every_chunk_of_a_turn_with_tools_is_numbered_from_zero(self):
        async with room([call("add", {"a": 1, "b": 2})], "three") as r:
            asker = await r.tab()
            await asker.ask("1+2")
            stream = await asker.stream()
            assert [f.get("seq") for f in stream.frames] == [*range(len(stream.bodies)), None]

    async def test_3_4_4_message_ids_are_the_trailing_run_of_questions(self):
        async with room("one", "two") as r:
            asker = await r.tab()
            await asker.ask("hi")
            await asker.stream()
            shown = await r.messages()
            more = {"id": "u-more", "role": "user", "parts": [{"type": "text", "text": "more"}]}
            await asker.ask("and?", "q2", after=[*shown, more])
            assert (await asker.stream("q2")).end["messageIds"] == ["u-more", "u-q2"]

    async def test_0_5_flags_that_are_not_set_are_not_sent(self):
        async with room([call("add", {"a": 1, "b": 2})], "three") as r:
            asker = await r.tab()
            await asker.ask("1+2")
            stream = await asker.stream()
            allowed = {"type", "id", "body", "done", "seq"}
            assert all(frame.keys() == allowed for frame in stream.frames[:-1])
            assert all(None not in chunk.values() for chunk in stream.chunks)


async def test_6_9_a_turn_without_output_ends_for_its_asker():
    """An empty answer still has `start` and `finish`; there is one end and the tab is ready."""
    async with room([]) as r:
        asker = await r.tab()
        await asker.ask("hi")
        assert (await asker.stream()).end["outcome"] == "completed"
        await asker.nothing_more()


async def test_3_2_1_the_body_of_a_chunk_is_its_json_in_a_string():
    async with room("Ünï „x“ \n") as r:
        asker = await r.tab()
        await asker.ask("hi")
        stream = await asker.stream()
        assert all(isinstance(frame["body"], str) for frame in stream.frames)
        assert stream.text == "Ünï „x“ \n"
        assert json.loads(stream.bodies[0]) == chunk_of(stream.frames[0])


async def test_8_1_questions_asked_back_to_back_are_answered_in_order():
    gate = pause()
    async with room([text("one"), gate], "two") as r:
        asker = await r.tab()
        await asker.ask("first", "q1")
        await asker.ask("second", "q2")
        await gate.reached()
        gate.open()
        await asker.until("use_chat_response", id="q2", done=True)
        assert [asker.of("q1").text, asker.of("q2").text] == ["one", "two"]
        assert text_of((await r.messages())[-1]) == "two"


async def test_10_7_two_tabs_that_ask_at_once_are_both_answered():
    async with room("one", "two") as r:
        tabs: tuple[Tab, Tab] = await r.tabs()
        await asyncio.gather(tabs[0].ask("first", "q1"), tabs[1].ask("second", "q2"))
        for tab in tabs:
            ends: set[str] = set()
            while len(ends) < 2:
                ends.add((await tab.until("use_chat_response", done=True))["id"])
            await tab.nothing_more()
        assert len(await r.messages()) == 4


class TestWhatARequestBrings:
    """§6.2: tools and body of the accepted request, kept for what follows it."""

    async def test_6_2_the_clients_tools_stay_until_they_are_replaced_or_cleared(self):
        async with room("1", "2", "3") as r:
            asker = await r.tab()
            for request, body in (("q1", [LOCATE]), ("q2", None), ("q3", [])):
                more = {} if body is None else {"clientTools": body}
                await asker.ask("hi", request, **more)
                await asker.stream(request)
            known = [{tool.name for tool in request.tools} for request in r.model.requests]
            assert ["locate" in names for names in known] == [True, True, False]

    async def test_6_2_the_body_is_that_of_the_request_and_goes_on_with_its_continuation(self):
        seen: list[Any] = []

        class Reading(Chat, name="chat"):
            def before_turn(self, ctx: Any) -> None:
                seen.append((ctx.continuation, ctx.body))

        async with room([call("locate")], "Paris", "later", cls=Reading) as r:
            asker, other = await r.tabs()
            await asker.ask("where?", clientTools=[LOCATE], mood="good")
            await asker.stream()
            await asker.result()
            await other.until("use_chat_response", continuation=True, done=True)
            await asker.ask("and now?", "q2")
            await other.until("use_chat_response", id="q2", done=True)
            mood = {"mood": "good"}
            assert seen == [(False, mood), (True, mood), (False, None)]


class TestDataParts:
    async def test_case_63_data_is_told_and_stored_as_its_last_value_unless_it_is_transient(self):
        """No model of ours makes data chunks; a transform of the turn does here."""
        parts = [
            {"type": "data-x", "id": "1", "data": 1},
            {"type": "data-x", "id": "1", "data": 2},
            {"type": "data-y", "transient": True, "data": 3},
        ]

        def as_data(chunk: Any) -> Any:
            is_data = chunk["type"] == "text-delta" and chunk["delta"].startswith("{")
            return json.loads(chunk["delta"]) if is_data else chunk

        class Showing(Chat, name="chat"):
            def before_turn(self, ctx: Any) -> TurnConfig:
                return TurnConfig(transforms=as_data)

        async with room([text(*map(json.dumps, parts), "end")], cls=Showing) as r:
            asker, other = await r.tabs()
            await asker.ask("hi")
            for tab in (asker, other):
                chunks = (await tab.stream()).chunks
                assert [c for c in chunks if c["type"].startswith("data-")] == parts
            stored = (await r.messages())[-1]["parts"]
            data = [part for part in stored if part["type"].startswith("data-")]
            assert data == [{"type": "data-x", "id": "1", "data": 2}]
            await other.ack("q1")
            again = (await other.stream()).chunks
            assert [c for c in again if c["type"].startswith("data-")] == parts
