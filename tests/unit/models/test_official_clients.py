"""The official Python clients accept what the mock provider sends, and it accepts what they send:
so what our adapters are tested against is what the providers speak."""

from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from thinkwell.testing.mock_provider import MockCall, MockProvider, Reply

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
