"""Providers that break off, hang, or ask for patience (spec/04 §8, DESIGN §8.3, §8.6).

Over real sockets: the mock provider cuts, holds and refuses as real ones do.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from tests.turns.support import Stage, running, untyped
from thinkwell import ChatRecovery, Think
from thinkwell.messages.message import text_of
from thinkwell.models.openai_chat import OpenAIChatModel
from thinkwell.models.retry_after import read_retry_after
from thinkwell.testing.mock_provider import AnyReply, MockProvider, RawReply, Reply
from thinkwell.testing.protocols.chat_completions import encode_reply

SAID = encode_reply(Reply(deltas=["Hel", "lo"]), "m")[:3]
"""The role and two words, without an end."""
CUT = RawReply(chunks=SAID, cut=True)
HANGS = RawReply(chunks=SAID, hold="end")


class Plain(Think):
    time_limits = {"chunk": 0.05}
    chat_recovery = ChatRecovery(max_attempts=3)


@asynccontextmanager
async def asking(*replies: AnyReply) -> AsyncIterator[tuple[Stage[Any], MockProvider, list[float]]]:
    """An agent that talks to a provider which plays `replies`, and the pauses it makes."""
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    async with MockProvider(list(replies)) as provider, running(Plain) as stage:
        model = OpenAIChatModel("m", base_url=provider.base_url, api_key="k")
        untyped(stage).model = model
        turns = untyped(stage)._turns
        turns.wire(msgspec.structs.replace(turns.parts, sleep=sleep, random=lambda: 0.0))
        try:
            yield stage, provider, waited
        finally:
            await model.aclose()


class TestAnAnswerThatBreaksOff:
    async def test_goes_on_where_it_was_cut_as_after_a_crash(self):
        async with asking(CUT, Reply(deltas=[" wor", "ld"])) as (stage, provider, _):
            client = await stage.connect()
            await client.ask("hi", "q1")
            await client.until_end("q1")
            assert text_of(await stage.answer()) == "Hello world"
            said = [c["delta"] for c in client.chunks("q1") if c["type"] == "text-delta"]
            assert "".join(said) == "Hello world"
            starts = [c for c in client.chunks("q1") if c["type"] in ("start", "text-start")]
            assert len(starts) == 2  # one message with one paragraph
            asked = provider.requests[1].body["messages"]
            assert any(m["role"] == "assistant" and m["content"] == "Hello" for m in asked)

    async def test_that_ends_without_its_end_goes_on_too(self):
        unfinished = RawReply(chunks=SAID)
        async with asking(unfinished, Reply(deltas=[" world"])) as (stage, _, _):
            assert (await stage.agent.run("hi")).text == "Hello world"

    async def test_uses_up_the_budget_of_the_turn(self):
        async with asking(CUT, CUT, CUT, CUT) as (stage, provider, waited):
            result = await stage.agent.run("hi")
            assert (result.status, len(provider.requests)) == ("error", 4)
            assert waited == [0.0, 0.5, 1.0]
            assert text_of(await stage.answer()) == "Hello" * 4


class TestAProviderThatHangs:
    async def test_after_two_words_uses_up_the_budget_of_the_turn(self):
        async with asking(HANGS, HANGS, HANGS, HANGS) as (stage, provider, waited):
            result = await stage.agent.run("hi")
            assert (result.status, len(provider.requests)) == ("error", 4)
            assert waited == [0.0, 0.5, 1.0]
            stalled = stage.fields("chat:stream:stalled")
            assert [fields["timeout_ms"] for fields in stalled] == [50.0] * 4

    async def test_once_is_asked_to_go_on(self):
        async with asking(HANGS, Reply(deltas=[" world"])) as (stage, _, _):
            assert (await stage.agent.run("hi")).text == "Hello world"


class TestRetryAfter:
    @pytest.mark.parametrize("status", [429, 503])
    async def test_is_waited_for(self, status: int):
        busy = RawReply(status=status, headers={"Retry-After": "7"})
        async with asking(busy, Reply(deltas=["ok"])) as (stage, _, waited):
            assert (await stage.agent.run("hi")).text == "ok"
            assert waited == [7.0]

    async def test_that_is_too_long_fails_the_turn_at_once(self):
        async with asking(RawReply(status=429, headers={"Retry-After": "3600"})) as (
            stage,
            provider,
            waited,
        ):
            assert (await stage.agent.run("hi")).status == "error"
            assert (len(provider.requests), waited) == (1, [])

    @pytest.mark.parametrize(
        ("value", "seconds"),
        [
            ("7", 7.0),
            (" 1.5 ", 1.5),
            ("-3", 0.0),
            ("Thu, 01 Jan 1970 00:02:00 GMT", 20.0),
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
            ("soon", None),
            ("inf", None),
            (None, None),
        ],
    )
    def test_is_seconds_or_a_date(self, value: str | None, seconds: float | None):
        assert read_retry_after(value, 100.0) == seconds


@pytest.fixture
def full_port() -> Iterator[int]:
    """A port on loopback that takes no more connections."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(0)
    port: int = listener.getsockname()[1]
    fillers = [socket.socket() for _ in range(4)]
    for filler in fillers:
        filler.setblocking(False)
        filler.connect_ex(("127.0.0.1", port))
    yield port
    for one in (*fillers, listener):
        one.close()


async def test_a_provider_that_does_not_take_the_connection_fails_after_the_limit(full_port: int):
    async with running(Plain) as stage:
        model = OpenAIChatModel("m", base_url=f"http://127.0.0.1:{full_port}/v1", api_key="k")
        untyped(stage).model = model
        config = {"max_retries": 0, "timeout": {"connect": 0.05}}
        stage.agent.add_hook("before_turn", lambda _: config)
        async with asyncio.timeout(10):
            result = await stage.agent.run("hi")
        assert (result.status, "failed" in (result.error or "")) == ("error", True)
        await model.aclose()
