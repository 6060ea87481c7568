"""The bridge to pydantic-ai models."""

import asyncio
import subprocess
import sys

import httpx2
import pytest
from pydantic_ai import messages as theirs
from pydantic_ai.exceptions import ModelConnectionError, ModelHTTPError
from pydantic_ai.models.function import DeltaThinkingPart, DeltaToolCall, FunctionModel
from pydantic_ai.models.test import TestModel as EveryToolModel

from tests.unit.models.helpers import (
    calls_of,
    collect,
    failure_of,
    finish_of,
    reasoning_of,
    request,
    text_of,
)
from thinkwell.core.errors import ModelError
from thinkwell.core.signal import AbortController
from thinkwell.messages.model_messages import (
    AssistantMessage,
    FileContent,
    ReasoningContent,
    SystemMessage,
    TextContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    UserMessage,
)
from thinkwell.models.base import (
    Model,
    ModelRequest,
    NamedTool,
    ReasoningEnd,
    TextEnd,
    TextStart,
    ToolInputDelta,
    ToolInputStart,
    ToolSpec,
)
from thinkwell.models.pydantic_ai import PydanticAIModel
from thinkwell.models.resolve import is_pydantic_ai_model

WEATHER = ToolSpec(
    "get_weather",
    "Tells the weather.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)


def bridged(*pieces, seen: list | None = None) -> PydanticAIModel:
    async def stream(messages, info):
        if seen is not None:
            seen.append((messages, info))
        for piece in pieces:
            if isinstance(piece, Exception):
                raise piece
            yield piece

    return PydanticAIModel(FunctionModel(stream_function=stream))


class TestStream:
    async def test_text(self):
        events = await collect(bridged("Hel", "lo"))
        assert text_of(events) == "Hello"
        assert [e for e in events if isinstance(e, TextStart | TextEnd)] == [
            TextStart("txt-0"),
            TextEnd("txt-0"),
        ]

    async def test_the_finish_tells_reason_usage_and_model(self):
        finish = finish_of(await collect(bridged("Hello")))
        assert finish.reason == "stop"
        assert finish.usage.output_tokens
        assert finish.model_id == "function::stream"

    async def test_thinking_ends_before_the_text_and_keeps_its_signature(self):
        thought = {0: DeltaThinkingPart(content="Hm", signature="sig")}
        events = await collect(bridged(thought, "A"))
        assert (reasoning_of(events), text_of(events)) == ("Hm", "A")
        [end] = [event for event in events if isinstance(event, ReasoningEnd)]
        kept = {"pydanticAi": {"signature": "sig", "provider_name": "function"}}
        assert end.provider_metadata == kept

    async def test_a_tool_call_is_started_written_and_told_whole(self):
        first = {0: DeltaToolCall("get_weather", '{"city":', tool_call_id="c1")}
        events = await collect(bridged(first, {0: DeltaToolCall(json_args='"Rome"}')}))
        assert events[:3] == [
            ToolInputStart("c1", "get_weather"),
            ToolInputDelta("c1", '{"city":'),
            ToolInputDelta("c1", '"Rome"}'),
        ]
        assert calls_of(events) == [("c1", "get_weather", '{"city":"Rome"}')]
        assert finish_of(events).reason == "tool-calls"

    async def test_parallel_calls(self):
        calls = {i: DeltaToolCall(name, "{}", tool_call_id=name) for i, name in enumerate("ab")}
        assert calls_of(await collect(bridged(calls))) == [("a", "a", "{}"), ("b", "b", "{}")]

    async def test_the_every_tool_model_calls_the_tools_and_then_answers(self):
        model = PydanticAIModel(EveryToolModel())
        events = await collect(model, request("hi", tools=(WEATHER,)))
        [(call_id, name, arguments)] = calls_of(events)
        assert (name, arguments) == ("get_weather", '{"city":"a"}')
        asked = ModelRequest(
            messages=(
                *request("hi").messages,
                AssistantMessage((ToolCallContent(call_id, name, {"city": "a"}),)),
                ToolMessage((ToolResultContent(call_id, name, "text", "sunny"),)),
            ),
            tools=(WEATHER,),
        )
        assert "sunny" in text_of(await collect(model, asked))


class TestErrors:
    async def test_an_http_error_becomes_a_model_error(self):
        error = failure_of(await collect(bridged("A", ModelHTTPError(503, "m", "busy"))))
        assert isinstance(error, ModelError)
        assert (error.status, error.retryable, error.body) == (503, True, "busy")
        assert isinstance(error.__cause__, ModelHTTPError)

    async def test_it_says_when_the_provider_wants_to_be_asked_again(self):
        busy = ModelHTTPError(429, "m", "busy", headers={"Retry-After": "7"})
        error = failure_of(await collect(bridged("A", busy)))
        assert isinstance(error, ModelError)
        assert (error.retry_after, error.retryable, error.cut) == (7.0, True, False)

    @pytest.mark.parametrize(
        "lost",
        [
            ModelConnectionError("m", "the stream broke off", phase="read"),
            httpx2.ReadError("reset"),
            httpx2.RemoteProtocolError("peer closed connection"),
            ConnectionResetError("reset"),
        ],
    )
    async def test_a_connection_that_is_lost_in_the_middle_is_a_cut(self, lost: Exception):
        error = failure_of(await collect(bridged("A", lost)))
        assert isinstance(error, ModelError)
        assert (error.cut, error.retryable, error.__cause__) == (True, True, lost)

    async def test_any_other_error_is_told_as_it_is(self):
        assert isinstance(failure_of(await collect(bridged("A", KeyError("x")))), KeyError)

    async def test_an_empty_stream_is_a_failure(self):
        assert "at least one" in str(failure_of(await collect(bridged())))


class TestAbort:
    async def test_an_aborted_signal_asks_nothing(self):
        controller = AbortController()
        controller.abort()
        seen: list = []
        assert await collect(bridged("A", seen=seen), signal=controller.signal) == []
        assert seen == []

    async def test_an_abort_ends_a_stream_that_waits(self):
        controller, closed = AbortController(), []

        async def stream(messages, info):
            try:
                yield "A"
                controller_loop.call_soon(controller.abort)
                await asyncio.Event().wait()
            finally:
                closed.append(True)

        controller_loop = asyncio.get_running_loop()
        model = PydanticAIModel(FunctionModel(stream_function=stream))
        events = await collect(model, signal=controller.signal)
        assert text_of(events) == "A"
        assert not isinstance(events[-1], TextEnd)
        assert closed == [True]

    async def test_closing_the_stream_ends_theirs(self):
        closed = []

        async def stream(messages, info):
            try:
                yield "A"
                await asyncio.Event().wait()
            finally:
                closed.append(True)

        events = PydanticAIModel(FunctionModel(stream_function=stream)).stream(
            request(), AbortController().signal
        )
        await anext(events)
        await events.aclose()  # type: ignore[attr-defined]
        assert closed == [True]


class TestRequest:
    async def sent(self, asked: ModelRequest):
        seen: list = []
        await collect(bridged("ok", seen=seen), asked)
        return seen[0]

    async def test_the_system_prompt_is_an_instruction(self):
        _messages, info = await self.sent(request("hi", system="Be kind."))
        assert info.instructions == "Be kind."

    async def test_every_kind_of_message_arrives(self):
        kept = {"pydanticAi": {"signature": "sig", "provider_name": "p"}}
        asked = ModelRequest(
            messages=(
                SystemMessage("Briefly."),
                UserMessage(
                    (TextContent("see"), FileContent("data:image/png;base64,AA==", "image/png"))
                ),
                AssistantMessage(
                    (
                        ReasoningContent("Hm", kept),
                        TextContent("Wait."),
                        ToolCallContent("c1", "f", {"a": 1}),
                        ToolCallContent("c2", "f", {}),
                    )
                ),
                ToolMessage(
                    (
                        ToolResultContent("c1", "f", "json", {"t": 1}),
                        ToolResultContent("c2", "f", "error-text", "broken"),
                    )
                ),
            )
        )
        (first, second, third), _info = await self.sent(asked)
        assert [type(part).__name__ for part in first.parts] == [
            "SystemPromptPart",
            "UserPromptPart",
        ]
        thinking, text, call, _other = second.parts
        assert (thinking.signature, text.content, call.args) == ("sig", "Wait.", {"a": 1})
        assert [part.outcome for part in third.parts] == ["success", "failed"]

    async def test_a_file_by_address_is_sent_by_address(self):
        part = FileContent("http://127.0.0.1/a.png", "image/png")
        ([message], _info) = await self.sent(ModelRequest(messages=(UserMessage((part,)),)))
        assert isinstance(message.parts[0].content[0], theirs.ImageUrl)

    async def test_tools_and_settings_arrive(self):
        asked = request(
            "hi",
            tools=(WEATHER,),
            tool_choice=NamedTool("get_weather"),
            max_output_tokens=9,
            stop_sequences=("END",),
            headers={"X-Team": "blue"},
            provider_options={"function": {"timeout": 3}},
        )
        _messages, info = await self.sent(asked)
        assert info.function_tools[0].parameters_json_schema == WEATHER.input_schema
        assert info.model_settings == {
            "max_tokens": 9,
            "stop_sequences": ["END"],
            "extra_headers": {"X-Team": "blue"},
            "tool_choice": ["get_weather"],
            "timeout": 3,
        }


class TestRecognition:
    def test_their_models_are_recognised_and_ours_are_not(self):
        assert is_pydantic_ai_model(EveryToolModel())
        assert not is_pydantic_ai_model(bridged("x"))
        assert not is_pydantic_ai_model("openai:gpt")

    def test_a_bridged_model_is_a_model(self):
        assert isinstance(bridged("x"), Model)

    def test_recognising_imports_nothing(self):
        program = (
            "import sys; from thinkwell.models.resolve import resolve_model; resolve_model('demo');"
            "sys.exit(bool({'pydantic_ai', 'pydantic', 'aiohttp'} & set(sys.modules)))"
        )
        assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.fixture(autouse=True)
def _source_path(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "src")
