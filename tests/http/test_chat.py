"""`POST chat`: an answer as a stream of events (spec/01 §14.1-14.4, 14.8, case 68)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.http.support import DOWN, Guide, file_store, frames_until, talking
from thinkwell.features.http_chat import tail
from thinkwell.messages.chunks import check_chunk
from thinkwell.messages.message import text_of, user_message
from thinkwell.testing import call, error, pause, reasoning, text

HEADERS = {
    "content-type": "text/event-stream",
    "cache-control": "no-cache",
    "connection": "keep-alive",
    "x-vercel-ai-ui-message-stream": "v1",
    "x-accel-buffering": "no",
}


async def test_an_answer_is_a_stream_with_the_headers_clients_look_for(tmp_path: Path):
    """14.2, case 68"""
    async with talking("one two three", store=file_store(tmp_path)) as client:
        stream = await client.send("hi")
        assert HEADERS.items() <= {k.lower(): v for k, v in stream.answer.headers.items()}.items()
        chunks = await stream.read()
        assert [check_chunk(chunk) for chunk in chunks if check_chunk(chunk)] == []
        assert (chunks[0]["type"], chunks[-1]["type"]) == ("start", "finish")
        stored = await client.stored()
        assert [message["role"] for message in stored] == ["user", "assistant"]
        assert chunks[0]["messageId"] == stored[1]["id"]
        assert stream.message() == stored[1]


async def test_reasoning_and_tools_are_streamed_and_stored_alike():
    steps = ([reasoning("hm, sum"), call("add", {"a": 1, "b": 2})], "three")
    async with talking(*steps) as client:
        answer = await client.say("1+2?")
        assert answer == (await client.stored())[1]
        part = next(part for part in answer["parts"] if part["type"] == "tool-add")
        assert (part["state"], part["output"]) == ("output-available", 3)


async def test_chunks_come_while_the_model_speaks():
    gate = pause()
    async with talking([text("one "), gate, text("two")]) as client:
        stream = await client.send("hi")
        await stream.until("text-end")
        assert stream.text() == "one "
        gate.open()
        await stream.read()
        assert stream.text() == "one two"


async def test_a_tab_on_a_socket_sees_the_same_turn():
    """14.8, case 68"""
    gate = pause()
    async with talking([text("one "), gate, text("two")]) as client:
        tab = await client.socket()
        await frames_until(tab, "cf_agent_identity")
        stream = await client.send("hi")
        frames = await frames_until(tab, "cf_agent_chat_messages")
        assert [message["id"] for message in frames[-1]["messages"]] == ["u0"]
        gate.open()
        chunks = await stream.read()
        frames = await frames_until(tab, "cf_agent_use_chat_response", done=True)
        told = [f["body"] for f in frames if f["type"] == "cf_agent_use_chat_response"]
        assert len(told) == len(chunks) + 1
        assert frames[-1]["outcome"] == "completed"


async def test_the_next_question_follows_the_answer():
    async with talking("first", "second") as client:
        await client.say("a")
        await client.say("b")
        stored = await client.stored()
        assert [text_of(message) for message in stored] == ["a", "first", "b", "second"]
        assert len(client.model.requests[1].messages) == 3


async def test_regenerate_answers_the_same_question_again():
    """8.4"""
    async with talking("first", "second") as client:
        old = await client.say("a")
        client.shown.pop()
        stream = await client.submit("regenerate-message", messageId=old["id"])
        await stream.read()
        stored = await client.stored()
        assert [text_of(message) for message in stored] == ["a", "second"]
        assert stream.chunks[0]["messageId"] == stored[1]["id"] != old["id"]


async def test_an_edited_question_is_answered_beside_the_old_one():
    """8.5"""
    async with talking("first", "second") as client:
        await client.say("a")
        client.shown = [user_message("u0", "b")]
        await (await client.submit(messageId="u0")).read()
        assert [text_of(message) for message in await client.stored()] == ["b", "second"]


async def test_fields_of_the_apps_own_reach_the_turn():
    class Curious(Guide):
        def before_turn(self, ctx: Any) -> None:
            self.runs.append(str(dict(ctx.body or {})))

    async with talking("ok", cls=Curious) as client:
        await client.say("hi", mood="good")
        assert await client.runs() == ["{'mood': 'good'}"]


async def test_the_stream_says_when_a_turn_fails():
    """14.4: what went wrong inside stays inside"""
    async with talking([text("half "), error(DOWN)], "again") as client:
        stream = await client.send("hi")
        chunks = await stream.read()
        assert stream.text() == "half "
        assert chunks[-1]["type"] == "error"
        assert "down" not in chunks[-1]["errorText"]
        assert text_of(await client.say("once more")) == "again"


async def test_a_hook_decides_the_text_of_a_failure():
    class Polite(Guide):
        def on_chat_error(self, error: Exception | str, ctx: Any) -> Any:
            return "Come back tomorrow."

    async with talking([error(DOWN)], cls=Polite) as client:
        chunks = await (await client.send("hi")).read()
        assert chunks[-1] == {"type": "error", "errorText": "Come back tomorrow."}


async def test_a_silent_stream_shows_that_it_lives(monkeypatch: pytest.MonkeyPatch):
    """14.2"""
    monkeypatch.setattr(tail, "KEEP_ALIVE", 0.01)
    gate = pause()
    async with talking([gate, text("one")]) as client:
        stream = await client.send("hi")
        while len(stream.comments) < 3:
            assert await stream.next()
        gate.open()
        await stream.read()
        assert set(stream.comments) == {": keep-alive"}
        assert stream.text() == "one"


async def test_a_client_that_leaves_stops_nothing():
    """14.6"""
    gate = pause()
    async with talking([text("one "), gate, text("two")]) as client:
        async with await client.send("hi") as stream:
            await stream.until("text-delta")
        gate.open()
        while len(stored := await client.stored()) < 2:
            joined = await client.resume()
            if joined is not None:
                await joined.read()
        assert text_of(stored[1]) == "one two"


class TestStop:
    """14.6"""

    async def test_it_ends_the_stream_and_keeps_what_was_said(self):
        gate = pause()
        async with talking([text("one "), gate, text("two")]) as client:
            stream = await client.send("hi")
            await stream.until("text-end")
            answer = await client.post("chat/stop")
            assert (answer.status, await answer.read()) == (204, b"")
            assert (await stream.read())[-1] == {"type": "abort"}
            assert text_of((await client.stored())[1]) == "one "

    async def test_with_nothing_to_stop_it_does_nothing(self):
        asked: list[tuple[str, str | None]] = []

        class Asking(Guide):
            def authorize(self, action: Any, principal: Any, subject: Any) -> bool:
                asked.append((action, subject.request_id))
                return True

        async with talking(cls=Asking) as client:
            assert (await client.post("chat/stop")).status == 204
        assert asked == [("cancel", None)]


class TestBusy:
    """8.1: the policies hold here as on the socket"""

    async def test_by_default_messages_wait_in_line(self):
        gate = pause()
        async with talking([gate, text("first")], "second") as client:
            first = await client.send("a")
            second = await client.send("b")
            gate.open()
            await first.read()
            await second.read()
            assert (first.text(), second.text()) == ("first", "second")

    async def test_drop_refuses_and_stores_nothing(self):
        class Dropping(Guide):
            message_concurrency = "drop"

        gate = pause()
        async with talking([gate, text("first")], cls=Dropping) as client:
            stream = await client.send("a")
            await gate.reached()
            body = {"messages": [*client.shown, user_message("u9", "b")]}
            answer = await client.post("chat", body)
            assert answer.status == 409
            assert "busy" in await answer.text()
            gate.open()
            await stream.read()
            assert len(await client.stored()) == 2

    async def test_a_superseded_message_gets_an_empty_stream(self):
        class Latest(Guide):
            message_concurrency = "latest"

        gate = pause()
        async with talking([gate, text("first")], "third", cls=Latest) as client:
            first = await client.send("a")
            await gate.reached()
            second = await client.send("b")
            third = await client.send("c")
            assert await second.read() == []
            gate.open()
            await first.read()
            await third.read()
            assert third.text() == "third"


class TestRefused:
    """14.4: before anything is stored, with a text that becomes the client's error"""

    @pytest.mark.parametrize(
        ("body", "text"),
        [
            (b"", "The body is not JSON."),
            (b"{", "The body is not JSON."),
            (b"\xff", "The body is not JSON."),
            (b"[]", "The body must be a JSON object."),
            (b"[" * 100_000, "The body is nested too deeply."),
            (b"{}", "The body needs a list `messages`."),
            (b'{"messages":[]}', "there is nothing to answer"),
            (b'{"messages":[7]}', "a message must be an object, not int"),
            (b'{"messages":[{"id":"a","role":"user"}]}', "needs a list of `parts`"),
        ],
    )
    async def test_a_bad_request(self, body: bytes, text: str):
        async with talking() as client:
            answer = await client.post("chat", body)
            assert answer.status == 400
            assert text in await answer.text()
            assert await client.stored() == []

    async def test_half_an_emoji_does_not_lose_the_message(self):
        async with talking("ok") as client:
            parts = rb'[{"type":"text","text":"x\ud83d"}]'
            body = b'{"messages":[{"id":"a","role":"user","parts":%b}]}' % parts
            answer = await client.post("chat", body)
            assert answer.status == 200
            await answer.read()
            assert text_of((await client.stored())[0]) == "x�"

    async def test_another_content_type(self):
        """A page of another site can send these without asking first."""
        async with talking() as client:
            answer = await client.post("chat", {"messages": []}, content_type="text/plain")
            assert answer.status == 415

    async def test_a_picture_that_is_too_large(self):
        """7.7"""
        picture = {"type": "file", "mediaType": "image/png", "url": "data:," + "A" * 2_000_000}
        async with talking() as client:
            message = {"id": "u", "role": "user", "parts": [picture]}
            answer = await client.post("chat", {"messages": [message]})
            assert answer.status == 413
            assert "Send large files as http URLs." in await answer.text()
            assert await client.stored() == []

    async def test_one_too_large_that_is_not_the_last(self):
        """7.7: also when the client asked again behind it, as after a failed request"""
        picture = {"type": "file", "mediaType": "image/png", "url": "data:," + "A" * 2_000_000}
        async with talking() as client:
            stored = {"id": "a", "role": "assistant", "parts": [{"type": "text", "text": "hm"}]}
            large = {"id": "u", "role": "user", "parts": [picture]}
            messages = [large, stored, user_message("u2", "and now?")]
            answer = await client.post("chat", {"messages": messages})
            assert answer.status == 413
            assert "Send large files as http URLs." in await answer.text()
            assert await client.stored() == []

    async def test_a_hook_decides_what_is_said(self):
        """AC87: for every refusal of messages, the large ones too"""

        class Polite(Guide):
            def on_chat_error(self, error: Exception | str, ctx: Any) -> Any:
                return f"Sorry ({ctx.stage}, {ctx.trigger})."

        large = user_message("u", "A" * 2_000_000)
        picture = {"type": "file", "mediaType": "image/png", "url": "data:," + "A" * 2_000_000}
        async with talking(cls=Polite) as client:
            for messages, status in (([7], 400), ([{**large, "parts": [picture]}], 413)):
                answer = await client.post("chat", {"messages": messages})
                assert (answer.status, await answer.text()) == (status, "Sorry (parse, http-chat).")

    async def test_another_method(self):
        async with talking() as client:
            answer = await client.get("chat")
            assert (answer.status, answer.headers["allow"]) == (405, "POST")


async def test_many_readers_of_one_turn_each_get_all_of_it():
    gate = pause()
    async with talking([text("one "), gate, text("two")]) as client:
        streams = [await client.send("hi")]
        await streams[0].until("text-end")
        for _ in range(5):
            joined = await client.resume()
            assert joined is not None
            streams.append(joined)
        gate.open()
        read = await asyncio.gather(*(stream.read() for stream in streams))
        assert all(chunks == read[0] for chunks in read)
