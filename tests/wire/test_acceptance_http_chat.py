"""Plain `useChat` over HTTP: spec/01 cases 68-70 and §14."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from tests.wire.room import LOCATE, Chat, Room, part_of, room, text_of, with_settings
from thinkwell.messages.chunks import check_chunk
from thinkwell.messages.message import user_message
from thinkwell.testing import call, error, pause, text

HEADERS = {
    "cache-control": "no-cache",
    "connection": "keep-alive",
    "x-vercel-ai-ui-message-stream": "v1",
    "x-accel-buffering": "no",
}
DONE = "[DONE]"


class Events:
    """The events of one response, as they come."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self.answer = answer
        self.chunks: list[dict[str, Any]] = []

    async def next(self) -> dict[str, Any] | None:
        """The next chunk; None at the end, which has to be `[DONE]` and nothing after it."""
        async with asyncio.timeout(30):
            while True:
                line = (await self.answer.content.readline()).decode()
                assert line, "the stream ended without [DONE]"
                if line.startswith("data: "):
                    break
                assert line == "\n" or line.startswith(":"), line
            data = line.removeprefix("data: ").rstrip("\n")
            if data == DONE:
                assert (await self.answer.content.read()).strip() == b""
                return None
        chunk = json.loads(data)
        assert check_chunk(chunk) is None, chunk
        self.chunks.append(chunk)
        return chunk

    async def until(self, kind: str) -> dict[str, Any]:
        """Read on to a chunk of that kind."""
        while (chunk := await self.next()) is not None:
            if chunk["type"] == kind:
                return chunk
        raise AssertionError(f"no {kind} came")

    async def all(self) -> list[dict[str, Any]]:
        """Read on to the end."""
        while await self.next() is not None:
            pass
        return self.chunks

    @property
    def text(self) -> str:
        return "".join(c["delta"] for c in self.chunks if c["type"] == "text-delta")


@asynccontextmanager
async def post(r: Room, messages: list[Any], **body: Any) -> AsyncIterator[Events]:
    """What `DefaultChatTransport` sends, and the stream that answers it."""
    full = {"id": "chat-1", "messages": messages, "trigger": "submit-message", **body}
    url = f"{r.browser.url}{r.path}/chat"
    async with r.browser.session.post(url, json=full) as answer:
        assert answer.status == 200, await answer.text()
        yield Events(answer)


@asynccontextmanager
async def resumed(r: Room, chat: str = "chat-1") -> AsyncIterator[Events]:
    url = f"{r.browser.url}{r.path}/chat/{chat}/stream"
    async with r.browser.session.get(url) as answer:
        yield Events(answer)


class TestASend:
    async def test_case_68_the_answer_is_a_stream_and_other_tabs_see_the_turn(self):
        async with room("Hello") as r:
            tab = await r.tab()
            async with post(r, [user_message("u1", "hi")]) as events:
                assert events.answer.content_type == "text/event-stream"
                assert {k: events.answer.headers.get(k) for k in HEADERS} == HEADERS
                chunks = await events.all()
            await tab.expect("chat_messages")
            end = await tab.until("use_chat_response", done=True)
            seen = tab.of(end["id"])
            assert seen.chunks == chunks
            assert (events.text, chunks[0]["type"], chunks[-1]["type"]) == (
                "Hello",
                "start",
                "finish",
            )
            assert (await r.messages())[-1]["id"] == chunks[0]["messageId"]

    async def test_14_1_a_regenerate_makes_another_answer(self):
        async with room("one", "two") as r:
            async with post(r, [user_message("u1", "hi")]) as events:
                await events.all()
            question, first = await r.messages()
            again = {"trigger": "regenerate-message", "messageId": first["id"]}
            async with post(r, [question], **again) as events:
                chunks = await events.all()
            assert events.text == "two"
            shown = await r.messages()
            assert [m["id"] for m in shown] == ["u1", chunks[0]["messageId"]]
            assert chunks[0]["messageId"] != first["id"]

    @pytest.mark.parametrize("body", [b"", b"nonsense", b"[]", b'{"messages":1}'])
    async def test_14_4_what_cannot_be_read_is_refused_with_a_text(self, body: bytes):
        async with room() as r:
            url = f"{r.browser.url}{r.path}/chat"
            headers = {"content-type": "application/json"}
            async with r.browser.session.post(url, data=body, headers=headers) as answer:
                assert answer.status == 400
                assert await answer.text()
            assert await r.messages() == []

    async def test_14_4_a_failure_in_the_middle_is_an_error_chunk(self):
        broken = [text("a"), error(RuntimeError("broke"))]
        cls = with_settings(Chat, expose_errors=True, max_retries=0)
        async with room(broken, cls=cls) as r, post(r, [user_message("u1", "hi")]) as events:
            chunks = await events.all()
            assert chunks[-1] == {"type": "error", "errorText": "broke"}
            assert events.text == "a"

    async def test_14_6_a_stop_is_a_request_of_its_own(self):
        gate = pause()
        async with room([text("a"), gate]) as r, post(r, [user_message("u1", "hi")]) as events:
            await events.until("text-end")
            async with r.browser.session.post(f"{r.browser.url}{r.path}/chat/stop") as answer:
                assert answer.status in (200, 204)
            chunks = await events.all()
            assert chunks[-1]["type"] == "abort"
            assert text_of((await r.messages())[-1]) == "a"

    async def test_14_6_a_closed_connection_stops_nothing(self):
        gate = pause()
        async with room([text("a"), gate, text("b")]) as r:
            async with post(r, [user_message("u1", "hi")]) as events:
                await events.until("text-end")
                events.answer.close()
            tab = await r.tab()
            request = tab.greeting[0]["id"]
            await tab.ack(request)
            gate.open()
            await tab.until("use_chat_response", id=request, done=True)
            assert tab.of(request).text == "ab"


class TestResume:
    async def test_case_69_a_running_stream_is_told_from_its_start(self):
        gate = pause()
        async with room([text("a"), gate, text("b")]) as r:
            async with post(r, [user_message("u1", "hi")]) as first:
                await first.until("text-end")
                async with resumed(r) as second:
                    assert second.answer.status == 200
                    assert (await second.until("text-end"))["type"] == "text-end"
                    assert second.chunks == first.chunks
                    assert second.chunks[0]["type"] == "start"
                    gate.open()
                    await second.all()
                await first.all()
            assert first.chunks == second.chunks
            assert second.text == "ab"

    async def test_case_69_an_idle_chat_has_nothing(self):
        async with room("Hello") as r:
            async with resumed(r) as events:
                assert events.answer.status == 204
            async with post(r, [user_message("u1", "hi")]) as events:
                await events.all()
            async with resumed(r, "chat%201") as events:
                assert events.answer.status == 204

    async def test_14_8_a_turn_of_a_socket_can_be_joined_over_http(self):
        gate = pause()
        async with room([text("a"), gate, text("b")]) as r:
            tab = await r.tab()
            await tab.ask("hi")
            await tab.part()
            async with resumed(r) as events:
                await events.until("text-end")
                gate.open()
                await events.all()
            assert events.text == "ab"
            await tab.stream()


class TestGoingOn:
    async def test_case_70_a_result_goes_on_in_the_same_message(self):
        async with room(["Hm. ", call("locate")], "You are in Paris") as r:
            async with post(r, [user_message("u1", "where?")], clientTools=[LOCATE]) as events:
                await events.all()
            question, answer = await r.messages()
            part = part_of(answer)
            part.update(state="output-available", output="Paris")
            async with post(r, [question, answer], clientTools=[LOCATE]) as events:
                chunks = await events.all()
            assert chunks[0] == {"type": "start", "messageId": answer["id"]}
            assert events.text == "You are in Paris"
            stored = await r.messages()
            assert [m["id"] for m in stored] == ["u1", answer["id"]]
            assert part_of(stored[-1])["output"] == "Paris"
            assert text_of(stored[-1]) == "Hm. You are in Paris"

    @pytest.mark.parametrize("approved", [True, False])
    async def test_14_7_a_decision_runs_the_call_or_not(self, approved: bool):
        async with room([call("destroy", {"target": "x"})], "so be it") as r:
            async with post(r, [user_message("u1", "go")]) as events:
                await events.all()
            question, answer = await r.messages()
            part = part_of(answer)
            part["state"] = "approval-responded"
            part["approval"] = {**part["approval"], "approved": approved}
            async with post(r, [question, answer]) as events:
                chunks = await events.all()
            assert chunks[0]["messageId"] == answer["id"]
            assert events.text == "so be it"
            state = "output-available" if approved else "output-denied"
            assert part_of((await r.messages())[-1])["state"] == state
