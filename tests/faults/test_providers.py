"""Providers that lie about lengths, send garbage, flood or never end, over real sockets.

The turn ends as an error or with what was said, and the next one runs. Hanging, cutting and
refusing ones are in `tests/turns/test_providers.py`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.faults.provider import Misbehave, floods, head, provider, sends
from tests.turns.support import Stage, running, untyped
from thinkwell import ChatRecovery, Think
from thinkwell.messages.message import text_of
from thinkwell.models import sse
from thinkwell.models.openai_chat import OpenAIChatModel
from thinkwell.testing.mock_provider import Reply
from thinkwell.testing.protocols.chat_completions import encode_reply
from thinkwell.turn.run import model_call

GOOD = b"".join(encode_reply(Reply(deltas=["fi", "ne"]), "m"))
BEGUN = b"".join(encode_reply(Reply(deltas=["Hel", "lo"]), "m")[:3])
DELTA = encode_reply(Reply(deltas=["word " * 50]), "m")[1]
WELL = sends(head(len(GOOD)), GOOD)


class Plain(Think):
    max_retries = 0
    chat_recovery = ChatRecovery(max_attempts=0)


@asynccontextmanager
async def asking(*replies: Misbehave) -> AsyncIterator[Stage[Any]]:
    async with provider(*replies) as url, running(Plain) as stage:
        model = OpenAIChatModel("m", base_url=url, api_key="k")
        untyped(stage).model = model
        try:
            yield stage
        finally:
            await model.aclose()


BAD: dict[str, Misbehave] = {
    "promises more than it sends": sends(head(len(GOOD) + 500), BEGUN),
    "promises less than it sends": sends(head(len(BEGUN)), GOOD),
    "sends bytes that are no text": sends(head(), b"\x00\xff\xfe" * 1000),
    "sends events that are no JSON": sends(head(), b"data: {half\n\n" * 20),
    "sends JSON that is no chunk": sends(head(), b'data: [1, "two", null]\n\n'),
    "sends a page": sends(head(6, kind="text/html"), b"<html>"),
    "speaks no HTTP": sends(b"220 smtp.example.com ready\r\n"),
    "says nothing and goes": sends(b""),
}


@pytest.mark.parametrize("kind", BAD)
async def test_a_provider_that_lies_or_sends_garbage_fails_its_turn_and_the_next_runs(
    kind: str,
):
    async with asking(BAD[kind], WELL) as stage:
        client = await stage.connect()
        await client.ask("hi", "q1")
        end = await client.until_end("q1")
        assert end["error"] is True
        assert end["body"]
        assert (await stage.agent.get_turn("q1")).status == "error"
        assert (await stage.agent.run("again")).text == "fine"


async def test_a_provider_that_never_ends_is_cut_and_what_it_said_is_kept(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(model_call, "MAX_STREAM", 50_000)
    async with asking(floods(DELTA), WELL) as stage:
        result = await stage.agent.run("hi")
        assert (result.status, result.stop_reason) == ("completed", "length")
        assert len(text_of(await stage.answer())) > 10_000
        assert (await stage.agent.run("again")).text == "fine"


async def test_a_provider_that_sends_one_endless_line_is_cut_before_it_fills_the_memory(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(sse, "LONGEST_LINE", 200_000)
    async with asking(floods(b"data: " + b"x" * 60_000), WELL) as stage:
        result = await stage.agent.run("hi")
        assert result.status == "error"
        assert "longer than" in str(result.error)
        assert (await stage.agent.run("again")).text == "fine"
