"""The official Python clients accept what the mock provider sends, and it accepts what they send:
so what our adapters are tested against is what the providers speak."""

from collections.abc import AsyncIterator
from typing import TypeVar

import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI, NotFoundError

from thinkwell.testing.mock_provider import MockCall, MockProvider, Reply

E = TypeVar("E")

ANSWER = Reply(
    reasoning=["Let me see."],
    deltas=["Hello ", "world"],
    calls=[MockCall(name="search", arguments=['{"q": ', '"dot"}'], id="call_1")],
)


async def test_the_openai_client_reads_chat_completions():
    async with (
        MockProvider([ANSWER]) as mock,
        AsyncOpenAI(base_url=mock.base_url, api_key="k", max_retries=0) as client,
    ):
        stream = client.chat.completions.stream(
            model="m", messages=[{"role": "user", "content": "hi"}]
        )
        async with stream as events:
            done = await events.get_final_completion()
    message = done.choices[0].message
    assert message.content == "Hello world"
    assert message.tool_calls
    assert message.tool_calls[0].function.arguments == '{"q": "dot"}'
    assert done.choices[0].finish_reason == "tool_calls"


async def test_the_openai_client_reads_responses():
    async with (
        MockProvider([ANSWER]) as mock,
        AsyncOpenAI(base_url=mock.base_url, api_key="k", max_retries=0) as client,
        client.responses.stream(model="m", input="hi") as events,
    ):
        kinds = [event.type async for event in events]
        done = await events.get_final_response()
    assert kinds[0] == "response.created"
    assert kinds[-1] == "response.completed"
    assert done.usage
    assert done.usage.total_tokens == 12


async def test_the_anthropic_client_reads_messages():
    async with (
        MockProvider([ANSWER]) as mock,
        AsyncAnthropic(base_url=mock.origin, api_key="k", max_retries=0) as client,
    ):
        asked = client.messages.stream(
            model="m", max_tokens=100, messages=[{"role": "user", "content": "hi"}]
        )
        async with asked as events:
            done = await events.get_final_message()
    assert [block.type for block in done.content] == ["thinking", "text", "tool_use"]
    assert done.content[2].model_dump()["input"] == {"q": "dot"}
    assert (done.stop_reason, done.usage.output_tokens) == ("tool_use", 5)


async def test_the_openai_client_takes_up_a_kept_response():
    held = Reply(deltas=["Hello ", "world"], hold_after=5)
    async with (
        MockProvider([held]) as mock,
        AsyncOpenAI(base_url=mock.base_url, api_key="k", max_retries=0) as client,
    ):
        stream = await client.responses.create(model="m", input="hi", background=True, stream=True)
        heard = [event async for _, event in limited(stream, 5)]
        await stream.close()
        response_id = heard[0].model_dump()["response"]["id"]
        assert (await client.responses.retrieve(response_id)).status == "in_progress"
        mock.kept.responses[response_id].release()
        last = heard[-1].sequence_number
        rest = await client.responses.retrieve(response_id, stream=True, starting_after=last)
        heard += [event async for event in rest]
        assert (await client.responses.retrieve(response_id)).status == "completed"
    assert [event.sequence_number for event in heard] == list(range(len(heard)))
    assert heard[-1].type == "response.completed"
    assert mock.kept.taken_up == [(response_id, 4)]


async def test_the_openai_client_cancels_a_kept_response():
    async with (
        MockProvider([Reply(deltas=["Hello"], hold_after=3)]) as mock,
        AsyncOpenAI(base_url=mock.base_url, api_key="k", max_retries=0) as client,
    ):
        stream = await client.responses.create(model="m", input="hi", background=True, stream=True)
        first = await anext(aiter(stream))
        response_id = first.model_dump()["response"]["id"]
        assert (await client.responses.cancel(response_id)).status == "cancelled"
        with pytest.raises(NotFoundError, match="not found"):
            await client.responses.retrieve("resp_unknown")


async def limited(stream: AsyncIterator[E], count: int) -> AsyncIterator[tuple[int, E]]:
    """The first events of a stream that goes on."""
    for number in range(count):
        yield number, await anext(stream)
