"""A chat over a link, without an agent."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from thinkwell.cli.conversation import Conversation
from thinkwell.cli.links import LinkError
from thinkwell.core.json import dumps, loads
from thinkwell.wire import encode

GREETING = [encode.identity("n", "a", state_follows=False), encode.mcp_servers()]


class FakeLink:
    """Gives the frames a test wrote; `{id}` in them becomes the id of the request."""

    def __init__(self, *frames: str) -> None:
        self.frames = list(frames)
        self.sent: list[dict[str, Any]] = []

    async def send(self, text: str) -> None:
        self.sent.append(loads(text))

    async def next_frame(self) -> str:
        await asyncio.sleep(0)
        request_id = self.sent[-1]["id"] if self.sent else ""
        return self.frames.pop(0).replace("{id}", request_id)


class FakeScreen:
    def __init__(self) -> None:
        self.shown: list[Any] = []

    def chunk(self, chunk: dict[str, Any]) -> None:
        self.shown.append(chunk["type"])

    def end(self, outcome: str, error: str | None) -> None:
        self.shown.append((outcome, error))


@pytest.fixture
def screen():
    return FakeScreen()


def chunk(kind: str, request_id: str = "{id}") -> str:
    return encode.chunk_frame_maker(request_id, continuation=False)(dumps({"type": kind}), 0)


def done(outcome: Any = "completed") -> str:
    return encode.done("{id}", message_ids=[], outcome=outcome, continuation=False)


async def test_asking_shows_only_the_own_answer(screen: FakeScreen):
    conversation = Conversation(FakeLink(chunk("other", "x"), chunk("start"), done()), screen)
    await conversation.ask("hi")
    assert screen.shown == ["start", ("completed", None)]


async def test_the_transcript_is_sent_along(screen: FakeScreen):
    link = FakeLink(encode.chat_messages(['{"id":"old"}'], connect=True), *GREETING, done())
    conversation = Conversation(link, screen)
    await conversation.connect()
    await conversation.ask("hi")
    messages = loads(link.sent[0]["init"]["body"])["messages"]
    assert [messages[0], messages[1]["parts"]] == [{"id": "old"}, [{"type": "text", "text": "hi"}]]


async def test_an_error_ends_the_answer_with_its_text(screen: FakeScreen):
    failed = encode.error_done("{id}", "no luck", message_ids=[], continuation=False)
    await Conversation(FakeLink(failed), screen).ask("hi")
    assert screen.shown == [("error", "no luck")]


async def test_a_running_answer_is_joined(screen: FakeScreen):
    link = FakeLink(encode.stream_resuming("r"), *GREETING, chunk("start", "r"), done("aborted"))
    conversation = Conversation(link, screen)
    await conversation.connect()
    await conversation.resume()
    assert link.sent == [{"type": "cf_agent_stream_resume_ack", "id": "r"}]
    assert screen.shown == ["start", ("aborted", None)]


async def test_a_server_that_cannot_set_up_says_why(screen: FakeScreen):
    with pytest.raises(LinkError, match="the store is locked"):
        await Conversation(FakeLink('{"error":"the store is locked"}'), screen).connect()


async def test_nothing_is_stopped_when_nothing_runs(screen: FakeScreen):
    link = FakeLink()
    await Conversation(link, screen).stop()
    assert link.sent == []
