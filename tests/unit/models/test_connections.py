"""Connections of the native adapters: kept alive and used again, and no stream waits for another
(DESIGN §9). The mock counts the sockets it has accepted.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from thinkwell.core.signal import AbortController
from thinkwell.models.anthropic import AnthropicModel
from thinkwell.models.base import Failure, Finish, Model, TextDelta
from thinkwell.models.openai_chat import OpenAIChatModel
from thinkwell.models.openai_responses import OpenAIModel
from thinkwell.testing.contracts.model import asked, collect, ended, said
from thinkwell.testing.mock_provider import PROTOCOLS, AnyReply, MockProvider, RawReply
from thinkwell.testing.protocols import anthropic_messages, chat_completions, openai_responses
from thinkwell.testing.protocols.reply import Reply

Make = Callable[[MockProvider], Any]
ADAPTERS = {
    chat_completions.PATH: lambda mock: OpenAIChatModel("m", base_url=mock.base_url, api_key="k"),
    openai_responses.PATH: lambda mock: OpenAIModel("m", base_url=mock.base_url, api_key="k"),
    anthropic_messages.PATH: lambda mock: AnthropicModel("m", base_url=mock.origin, api_key="k"),
}
STREAMS = 200


@pytest.fixture(params=ADAPTERS, ids=["chat", "responses", "messages"])
def path(request: pytest.FixtureRequest) -> str:
    return request.param


@asynccontextmanager
async def served(path: str, answer: Callable[[dict[str, Any]], AnyReply]) -> AsyncIterator[Any]:
    async with MockProvider(answer) as mock:
        model = ADAPTERS[path](mock)
        try:
            yield model, mock
        finally:
            await model.aclose()


def hello(body: dict[str, Any]) -> Reply:
    return Reply(deltas=["hello"])


class TestOneSocketForManyCalls:
    async def test_calls_one_after_the_other_use_the_same_socket(self, path: str):
        async with served(path, hello) as (model, mock):
            for _ in range(20):
                assert said(await collect(model)) == "hello"
            assert (len(mock.requests), mock.connections) == (20, 1)

    async def test_as_many_sockets_as_calls_at_a_time_and_no_more_in_the_next_round(
        self, path: str
    ):
        async with served(path, hello) as (model, mock):
            for _ in range(3):
                await asyncio.gather(*(collect(model) for _ in range(8)))
            assert len(mock.requests) == 24
            assert mock.connections <= 8

    async def test_a_refused_call_gives_its_socket_back(self, path: str):
        refusal = RawReply(
            chunks=[b'{"error":{"message":"no"}}'], status=400, content_type="application/json"
        )
        replies: list[AnyReply] = [refusal, Reply(deltas=["hello"])]
        async with served(path, lambda _: replies.pop(0)) as (model, mock):
            assert isinstance((await collect(model))[-1], Failure)
            assert said(await collect(model)) == "hello"
            assert mock.connections == 1

    async def test_an_aborted_call_closes_its_socket_and_the_next_one_opens_another(
        self, path: str
    ):
        """What the provider still sends of the old answer must never reach the next."""
        replies: list[AnyReply] = [
            Reply(deltas=["word "] * 500, interval=0.01),
            Reply(deltas=["hello"]),
        ]
        async with served(path, lambda _: replies.pop(0)) as (model, mock):
            stop = AbortController()
            async for event in model.stream(asked(), stop.signal):
                if isinstance(event, TextDelta):
                    stop.abort()
            await mock.left.wait()
            assert said(await collect(model)) == "hello"
            assert mock.connections == 2


class TestNoStreamWaitsForAnother:
    async def test_one_that_the_provider_holds_delays_no_other(self, path: str):
        """Two hundred at once; the first says a word and hangs until all others have ended."""
        begun = PROTOCOLS[path].encode_reply(Reply(deltas=["one", "two"]), "m")
        half = RawReply(chunks=begun[: len(begun) // 2], hold="end")
        replies: list[AnyReply] = [half]
        async with served(path, lambda _: replies.pop() if replies else hello({})) as (model, mock):
            held = asyncio.create_task(collect(model))
            await mock.arrived.acquire()
            answers = await asyncio.gather(*(collect(model) for _ in range(STREAMS - 1)))
            assert [said(events) for events in answers] == ["hello"] * (STREAMS - 1)
            assert not held.done()
            held.cancel()
            await asyncio.wait([held])

    async def test_one_that_nobody_reads_delays_no_other(self, path: str):
        """Its reader takes one delta of a long answer and then nothing, while others end."""
        long = Reply(deltas=["x" * 1000] * 5000)  # more than any buffer on the way holds
        replies: list[AnyReply] = [long]
        async with served(path, lambda _: replies.pop() if replies else hello({})) as (model, _):
            slow = model.stream(asked(), AbortController().signal)
            told = 0
            async for event in slow:
                if isinstance(event, TextDelta):
                    told += 1
                    break
            answers = await asyncio.gather(*(collect(model) for _ in range(STREAMS - 1)))
            assert [said(events) for events in answers] == ["hello"] * (STREAMS - 1)
            rest = [event async for event in slow]  # nothing of it is lost
            assert told + sum(isinstance(event, TextDelta) for event in rest) == 5000
            assert isinstance(rest[-1], Finish)

    async def test_a_stream_that_is_held_and_one_that_ends_share_no_answer(self, path: str):
        words = iter(range(1000))

        def counted(body: dict[str, Any]) -> Reply:
            return Reply(deltas=[str(next(words))] * 3)

        async with served(path, counted) as (model, _):
            answers = await asyncio.gather(*(collect(model) for _ in range(STREAMS)))
        texts = sorted(said(events) for events in answers)
        assert texts == sorted(str(number) * 3 for number in range(STREAMS))
        assert all(ended(events) for events in answers)


def test_every_native_adapter_is_here():
    assert set(ADAPTERS) == set(PROTOCOLS)
    assert all(isinstance(make(MockProvider([])), Model) for make in ADAPTERS.values())
