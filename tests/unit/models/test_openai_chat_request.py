"""The request body of chat completions: every field and every message kind."""

from typing import Any

import pytest

from tests.unit.models.helpers import collect, request, text_of
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
from thinkwell.models.base import ModelRequest, NamedTool, ToolSpec
from thinkwell.models.openai_chat import OpenAIChatModel
from thinkwell.models.openai_chat_request import COMPATIBLE, OPENAI, build_body, build_messages
from thinkwell.models.result_text import DENIED, NO_RESULT
from thinkwell.testing.mock_provider import MockProvider, Reply

WEATHER = ToolSpec("get_weather", "Tells the weather.", {"type": "object", "properties": {}})


def body_of(asked: ModelRequest, *, is_openai: bool = False):
    return build_body(
        asked, model_id="m", provider="groq", dialect=OPENAI if is_openai else COMPATIBLE
    )[0]


def assistant(*content) -> AssistantMessage:
    return AssistantMessage(content)


def call(call_id: str) -> ToolCallContent:
    return ToolCallContent(call_id, "get_weather", {"city": "Rome"})


def result(call_id: str, kind: Any = "text", value: Any = "sunny") -> ToolMessage:
    return ToolMessage((ToolResultContent(call_id, "get_weather", kind, value),))


class TestSettings:
    def test_the_least_request(self):
        assert body_of(request("hi")) == {
            "model": "m",
            "messages": [{"role": "user", "content": "hi"}],
            "stream": True,
            "stream_options": {"include_usage": True},
        }

    def test_sampling_settings_keep_their_names(self):
        settings = {
            "temperature": 0.0,
            "top_p": 0.9,
            "presence_penalty": 0.1,
            "frequency_penalty": 0.2,
            "seed": 0,
        }
        assert settings.items() <= body_of(request(**settings)).items()

    def test_stop_sequences_become_stop(self):
        assert body_of(request(stop_sequences=("END",)))["stop"] == ["END"]

    @pytest.mark.parametrize(
        ("is_openai", "name"), [(True, "max_completion_tokens"), (False, "max_tokens")]
    )
    def test_the_output_limit_has_the_name_the_provider_knows(self, is_openai, name):
        assert body_of(request(max_output_tokens=5), is_openai=is_openai)[name] == 5

    def test_top_k_is_sent_where_it_exists_and_warned_about_where_not(self):
        asked = request(top_k=4)
        assert body_of(asked)["top_k"] == 4
        body, warnings = build_body(asked, model_id="m", provider="p", dialect=OPENAI)
        assert "top_k" not in body
        assert "top_k" in warnings[0]

    def test_provider_options_of_this_provider_are_merged(self):
        options = {"groq": {"service_tier": "flex"}, "other": {"x": 1}}
        body = body_of(request(provider_options=options))
        assert body["service_tier"] == "flex"
        assert "x" not in body

    def test_options_of_openai_reach_its_chat_api_and_no_other_provider(self):
        asked = request(provider_options={"openai": {"user": "u"}, "openai-chat": {"store": True}})
        body, _ = build_body(asked, model_id="m", provider="openai-chat", dialect=OPENAI)
        assert (body["user"], body["store"]) == ("u", True)
        assert "user" not in body_of(asked)

    def test_the_options_of_the_chat_api_win_over_those_of_openai(self):
        asked = request(provider_options={"openai-chat": {"user": "b"}, "openai": {"user": "a"}})
        body, _ = build_body(asked, model_id="m", provider="openai-chat", dialect=OPENAI)
        assert body["user"] == "b"


class TestTools:
    def test_a_tool_is_a_function(self):
        [tool] = body_of(request(tools=(WEATHER,)))["tools"]
        assert tool["type"] == "function"
        assert tool["function"]["name"] == "get_weather"
        assert tool["function"]["parameters"] == {"type": "object", "properties": {}}

    @pytest.mark.parametrize("choice", ["none", "required"])
    def test_a_choice_is_sent(self, choice):
        assert body_of(request(tools=(WEATHER,), tool_choice=choice))["tool_choice"] == choice

    def test_a_named_choice_is_sent(self):
        body = body_of(request(tools=(WEATHER,), tool_choice=NamedTool("get_weather")))
        assert body["tool_choice"] == {"type": "function", "function": {"name": "get_weather"}}

    def test_the_default_choice_and_a_choice_without_tools_are_left_out(self):
        assert "tool_choice" not in body_of(request(tools=(WEATHER,)))
        assert "tool_choice" not in body_of(request(tool_choice="required"))


class TestMessages:
    def test_the_system_prompt_comes_first(self):
        messages = build_messages("Be kind.", [SystemMessage("Now briefly.")])
        assert messages == [
            {"role": "system", "content": "Be kind."},
            {"role": "system", "content": "Now briefly."},
        ]

    def test_several_texts_of_a_person_are_one_text(self):
        [message] = build_messages("", [UserMessage((TextContent("a"), TextContent("b")))])
        assert message["content"] == "a\n\nb"

    @pytest.mark.parametrize(
        ("part", "expected"),
        [
            (
                FileContent("data:image/png;base64,AA==", "image/png"),
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
            ),
            (
                FileContent("data:audio/wav;base64,AA==", "audio/wav"),
                {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}},
            ),
            (
                FileContent("data:application/pdf;base64,AA==", "application/pdf", "a.pdf"),
                {
                    "type": "file",
                    "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AA=="},
                },
            ),
            (
                FileContent("http://127.0.0.1/a.pdf", "application/pdf"),
                {"type": "text", "text": "[file (application/pdf): http://127.0.0.1/a.pdf]"},
            ),
        ],
    )
    def test_files(self, part, expected):
        [message] = build_messages("", [UserMessage((TextContent("see"), part))])
        assert message["content"] == [{"type": "text", "text": "see"}, expected]

    def test_an_assistant_message_keeps_text_and_calls(self):
        [message, _note] = build_messages("", [assistant(TextContent("Wait."), call("c1"))])
        assert message["content"] == "Wait."
        assert message["tool_calls"] == [
            {
                "id": "c1",
                "type": "function",
                "function": {"name": "get_weather", "arguments": '{"city":"Rome"}'},
            }
        ]

    def test_reasoning_is_not_sent_back_and_an_empty_message_is_left_out(self):
        assert build_messages("", [assistant(ReasoningContent("Hm"))]) == []

    @pytest.mark.parametrize(
        ("kind", "value", "text"),
        [
            ("text", "sunny", "sunny"),
            ("json", {"t": 20}, '{"t":20}'),
            ("json", None, "null"),
            ("error-text", "no such city", "no such city"),
            ("execution-denied", "not today", "not today"),
            ("execution-denied", None, DENIED),
        ],
    )
    def test_a_tool_result_is_text(self, kind, value, text):
        messages = build_messages("", [assistant(call("c1")), result("c1", kind, value)])
        assert messages[1] == {"role": "tool", "tool_call_id": "c1", "content": text}


class TestMissingResults:
    def test_a_call_without_a_result_is_answered_before_the_next_message(self):
        asked = [assistant(call("c1"), call("c2")), result("c2"), *request("go on").messages]
        messages = build_messages("", asked)
        assert [message["role"] for message in messages] == ["assistant", "tool", "tool", "user"]
        assert (messages[2]["tool_call_id"], messages[2]["content"]) == ("c1", NO_RESULT)

    def test_a_call_at_the_very_end_is_answered_too(self):
        assert build_messages("", [assistant(call("c1"))])[-1]["content"] == NO_RESULT

    async def test_a_provider_that_checks_accepts_it(self):
        asked = ModelRequest(messages=(assistant(call("c1")), *request("well?").messages))
        async with MockProvider([Reply(deltas=["fine"])]) as provider:
            model = OpenAIChatModel("m", base_url=provider.base_url)
            assert text_of(await collect(model, asked)) == "fine"
            await model.aclose()
