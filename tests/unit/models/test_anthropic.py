"""The Anthropic adapter against the strict mock, concern by concern. What all models share is in
`tests/contracts/test_models.py`."""

from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.unit.models.helpers import (
    collect,
    failure_of,
    finish_of,
    reasoning_of,
    request,
    text_of,
)
from thinkwell.core import json
from thinkwell.core.errors import ConfigurationError
from thinkwell.messages.model_messages import (
    AssistantMessage,
    FileContent,
    ReasoningContent,
    TextContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    UserMessage,
)
from thinkwell.messages.usage import Usage
from thinkwell.models.anthropic import AnthropicModel
from thinkwell.models.anthropic_messages import build_messages
from thinkwell.models.anthropic_request import build_body, default_max_tokens
from thinkwell.models.base import (
    ModelRequest,
    NamedTool,
    ReasoningEnd,
    SourceDocument,
    SourceUrl,
    ToolCall,
    ToolResult,
    ToolSpec,
)
from thinkwell.testing.mock_provider import MockProvider, RawReply, Reply
from thinkwell.testing.protocols.anthropic_messages import encode_reply, find_fault

SEARCH = ToolSpec("search", "Finds pages.", {"type": "object"})
THINK = {"anthropic": {"thinking": {"type": "enabled", "budget_tokens": 2000}}}


@asynccontextmanager
async def served(*replies):
    async with MockProvider(list(replies)) as provider:
        model = AnthropicModel("claude-x", base_url=provider.origin, api_key="secret")
        try:
            yield model, provider
        finally:
            await model.aclose()


async def events_of(*replies):
    async with served(*replies) as (model, _provider):
        return await collect(model)


def raw(*payloads: dict[str, Any], **options: Any) -> RawReply:
    lines = [f"event: {p['type']}\ndata: {json.dumps(p)}\n\n".encode() for p in payloads]
    return RawReply(chunks=lines, **options)


START = {"type": "message_start", "message": {"id": "msg_1", "model": "claude-x"}}
END = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}}
STOP = {"type": "message_stop"}


def block(index: int, content: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": content},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def text_block(index: int, text: str) -> list[dict[str, Any]]:
    return block(index, {"type": "text", "text": ""}, {"type": "text_delta", "text": text})


def body_of(asked: ModelRequest, **options: Any) -> dict[str, Any]:
    body = build_body(asked, model_id="claude-x", **options)[0]
    assert find_fault(body) is None
    return body


class TestStream:
    async def test_thoughts_end_with_their_signature(self):
        events = await events_of(Reply(reasoning=["Hm"], signature="s1", deltas=["A"]))
        assert ReasoningEnd("rsn-0", {"anthropic": {"signature": "s1"}}) in events

    async def test_redacted_thoughts_are_kept_for_the_next_request(self):
        hidden = block(0, {"type": "redacted_thinking", "data": "xyz"})
        events = await events_of(raw(START, *hidden, *text_block(1, "A"), END, STOP))
        assert ReasoningEnd("rsn-0", {"anthropic": {"redactedData": "xyz"}}) in events
        assert (reasoning_of(events), text_of(events)) == ("", "A")

    async def test_input_tokens_count_what_the_cache_had(self):
        usage = {"input_tokens": 3, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 7}
        begun = {"type": "message_start", "message": {"id": "m", "usage": usage}}
        finish = finish_of(await events_of(raw(begun, *text_block(0, "A"), END, STOP)))
        assert finish.usage == Usage(
            input_tokens=100,
            output_tokens=3,
            total_tokens=103,
            cached_input_tokens=90,
            cache_write_tokens=7,
        )

    @pytest.mark.parametrize(
        ("raw_reason", "reason"),
        [
            ("end_turn", "stop"),
            ("stop_sequence", "stop"),
            ("max_tokens", "length"),
            ("model_context_window_exceeded", "length"),
            ("refusal", "content-filter"),
            ("pause_turn", "other"),
        ],
    )
    async def test_stop_reasons(self, raw_reason, reason):
        finish = finish_of(await events_of(Reply(deltas=["A"], finish_reason=raw_reason)))
        assert (finish.reason, finish.raw_reason) == (reason, raw_reason)

    async def test_a_search_by_the_provider_is_told_with_its_result_and_sources(self):
        found = [{"type": "web_search_result", "url": "https://a.example", "title": "A"}]
        cited = {"type": "web_search_result_location", "url": "https://a.example", "title": "A"}
        events = await events_of(
            raw(
                START,
                *block(
                    0,
                    {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}},
                    {"type": "input_json_delta", "partial_json": '{"query":"a"}'},
                ),
                *block(
                    1,
                    {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": found},
                ),
                *block(
                    2,
                    {"type": "text", "text": ""},
                    {"type": "citations_delta", "citation": cited},
                    {"type": "text_delta", "text": "A."},
                    {"type": "citations_delta", "citation": cited},
                ),
                END,
                STOP,
            )
        )
        [call] = [event for event in events if isinstance(event, ToolCall)]
        assert (call.tool_name, call.input, call.provider_executed) == (
            "web_search",
            '{"query":"a"}',
            True,
        )
        [result] = [event for event in events if isinstance(event, ToolResult)]
        assert (result.tool_call_id, result.output) == ("srv_1", found)
        assert [event for event in events if isinstance(event, SourceUrl)] == [
            SourceUrl("msg_1-1", "https://a.example", "A")
        ]
        assert finish_of(events).reason == "stop"

    async def test_a_tool_of_the_provider_that_fails(self):
        failed = {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}
        events = await events_of(
            raw(
                START,
                *block(0, {"type": "server_tool_use", "id": "srv_1", "name": "web_search"}),
                *block(
                    1,
                    {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": failed},
                ),
                END,
                STOP,
            )
        )
        [result] = [event for event in events if isinstance(event, ToolResult)]
        assert (result.error, result.output) == ("max_uses_exceeded", None)

    async def test_a_document_that_is_cited_is_a_source(self):
        cited = {"type": "page_location", "document_index": 0, "document_title": "Report"}
        events = await events_of(
            raw(
                START,
                *block(0, {"type": "text"}, {"type": "citations_delta", "citation": cited}),
                END,
                STOP,
            )
        )
        [source] = [event for event in events if isinstance(event, SourceDocument)]
        assert source.title == "Report"

    async def test_what_is_not_known_is_passed_over_and_logged_once(self, caplog):
        unknown = {"type": "something_new"}
        events = await events_of(
            raw(
                START,
                unknown,
                unknown,
                *block(0, {"type": "hologram"}, {"type": "hologram_delta", "light": 1}),
                *block(1, {"type": "text"}, {"type": "glitter_delta"}, {"text": "A"}),
                END,
                STOP,
            )
        )
        assert text_of(events) == "A"
        told = [record.getMessage() for record in caplog.records]
        assert [text for text in told if "something_new" in text] == [
            "anthropic sent an unknown event, 'something_new'; it is passed over"
        ]
        assert any("hologram" in text for text in told)

    async def test_overload_in_the_middle_of_an_answer(self):
        error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
        events = await events_of(raw(START, *text_block(0, "A")[:2], error))
        failed = failure_of(events)
        assert (text_of(events), failed.retryable, failed.code) == ("A", True, "overloaded_error")

    @pytest.mark.parametrize("count", range(5))
    async def test_a_stream_that_is_cut_is_a_failure_worth_a_retry(self, count):
        events = await events_of(raw(*[START, *text_block(0, "A")][:count], cut=True))
        failed = failure_of(events)
        assert (failed.retryable, failed.cut) == (True, True)

    async def test_bytes_may_be_cut_anywhere(self):
        whole = b"".join(encode_reply(Reply(reasoning=["Hm 🙂"], deltas=["Zoë ", "日本"]), "m"))
        for size in (1, 2, 3, 7, 64):
            pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
            events = await events_of(RawReply(chunks=pieces))
            assert (reasoning_of(events), text_of(events)) == ("Hm 🙂", "Zoë 日本")
            finish_of(events)

    async def test_lines_may_end_as_windows_ends_them_and_comments_are_no_events(self):
        whole = b"".join(encode_reply(Reply(deltas=["A"]), "m")).replace(b"\n", b"\r\n")
        assert text_of(await events_of(RawReply(chunks=[b": hello\r\n\r\n", whole]))) == "A"

    async def test_half_an_emoji_does_not_end_the_answer(self):
        line = (
            b'data: {"type":"content_block_delta","index":0,'
            b'"delta":{"type":"text_delta","text":"A\\ud83d"}}\n\n'
        )
        head, tail = raw(START, *text_block(0, "")[:1]), raw(END, STOP)
        events = await events_of(RawReply(chunks=[*head.chunks, line, *tail.chunks]))
        assert text_of(events).startswith("A")
        finish_of(events)

    async def test_garbage_is_a_failure_that_shows_it(self):
        failed = failure_of(await events_of(RawReply(chunks=[b"data: {nonsense\n\n"])))
        assert "cannot be read" in str(failed)
        assert failed.body == "{nonsense"


class TestMessages:
    def test_roles_take_turns_and_results_come_first(self):
        messages = build_messages(
            [
                UserMessage((TextContent("a"),)),
                UserMessage((TextContent("b"),)),
                AssistantMessage((ToolCallContent("c1", "search", {}),)),
                ToolMessage((ToolResultContent("c1", "search", "text", "found"),)),
                UserMessage((TextContent("c"),)),
            ]
        )
        assert [message["role"] for message in messages] == ["user", "assistant", "user"]
        assert [block["type"] for block in messages[2]["content"]] == ["tool_result", "text"]

    def test_a_conversation_may_begin_with_an_answer(self):
        body = body_of(
            ModelRequest(
                messages=(
                    AssistantMessage((TextContent("Welcome."),)),
                    UserMessage((TextContent("Hi"),)),
                )
            )
        )
        assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]

    def test_only_thoughts_with_a_signature_of_anthropic_are_sent(self):
        said = AssistantMessage(
            (
                ReasoningContent("mine", {"anthropic": {"signature": "s"}}),
                ReasoningContent("", {"anthropic": {"redactedData": "d"}}),
                ReasoningContent("other", {"openai": {"itemId": "rs_1"}}),
                TextContent("A"),
            )
        )
        messages = build_messages([UserMessage((TextContent("a"),)), said])
        assert messages[1]["content"] == [
            {"type": "thinking", "thinking": "mine", "signature": "s"},
            {"type": "redacted_thinking", "data": "d"},
            {"type": "text", "text": "A"},
        ]

    def test_its_own_search_is_sent_as_it_came(self):
        found = [{"type": "web_search_result", "url": "https://a.example"}]
        call = ToolCallContent(
            "srv_1", "web_search", {"query": "a"}, {"anthropic": {}}, provider_executed=True
        )
        result = ToolResultContent("srv_1", "web_search", "json", found, provider_executed=True)
        asked = [
            UserMessage((TextContent("a"),)),
            AssistantMessage((call, TextContent("A."))),
            ToolMessage((result,)),
        ]
        content = build_messages(asked)[1]["content"]
        kinds = [block["type"] for block in content]
        assert kinds == ["server_tool_use", "web_search_tool_result", "text"]
        assert content[1]["content"] == found

    @pytest.mark.parametrize(
        ("metadata", "value"),
        [
            ({"openai": {}}, [{"url": "u"}]),
            ({"anthropic": {}}, "short…"),
            ({"anthropic": {"type": "mcp_tool_use"}}, [{"text": "found"}]),
        ],
    )
    def test_what_it_cannot_take_back_is_told_as_text(self, metadata, value):
        call = ToolCallContent("ws_1", "web_search", {}, metadata, provider_executed=True)
        result = ToolResultContent("ws_1", "web_search", "json", value, provider_executed=True)
        asked = [
            UserMessage((TextContent("a"),)),
            AssistantMessage((call, TextContent("A."))),
            ToolMessage((result,)),
        ]
        content = build_messages(asked)[1]["content"]
        assert {block["type"] for block in content} == {"text"}
        assert any("I used web_search" in block["text"] for block in content)

    @pytest.mark.parametrize(
        ("part", "kind", "source"),
        [
            (FileContent("data:image/png;base64,AA==", "image/png"), "image", "base64"),
            (FileContent("https://a.example/b.png", "image/png"), "image", "url"),
            (
                FileContent("data:application/pdf;base64,AA==", "application/pdf"),
                "document",
                "base64",
            ),
            (FileContent("https://a.example/b.pdf", "application/pdf"), "document", "url"),
            (FileContent("data:text/csv;base64,YSxi", "text/csv"), "document", "text"),
        ],
    )
    def test_files_are_sent_as_the_provider_takes_them(self, part, kind, source):
        [message] = build_messages([UserMessage((part,))])
        [block] = message["content"]
        assert (block["type"], block["source"]["type"]) == (kind, source)

    def test_a_file_it_cannot_read_is_named(self):
        part = FileContent("https://a.example/b.zip", "application/zip", "b.zip")
        [message] = build_messages([UserMessage((part,))])
        assert message["content"][0]["text"] == (
            "[b.zip (application/zip): https://a.example/b.zip]"
        )

    def test_pictures_in_a_tool_result_are_seen(self):
        value = [
            {"type": "text", "text": "Look"},
            {"type": "image-data", "data": "AA==", "mediaType": "image/png"},
        ]
        asked = [
            UserMessage((TextContent("a"),)),
            AssistantMessage((ToolCallContent("c1", "shot", {}),)),
            ToolMessage((ToolResultContent("c1", "shot", "content", value),)),
        ]
        [result] = build_messages(asked)[2]["content"]
        assert [block["type"] for block in result["content"]] == ["text", "image"]


class TestBody:
    def test_a_limit_is_always_sent(self):
        assert body_of(request())["max_tokens"] == default_max_tokens("claude-x") == 32_000
        assert default_max_tokens("claude-3-haiku-20240307") == 4_096
        assert body_of(request(max_output_tokens=9))["max_tokens"] == 9

    def test_thinking_comes_on_top_of_the_limit_and_takes_no_temperature(self):
        asked = request(
            max_output_tokens=100,
            temperature=0.3,
            tools=(SEARCH,),
            tool_choice="required",
            provider_options=THINK,
        )
        body, warnings = build_body(asked, model_id="m")
        assert find_fault(body) is None
        assert body["max_tokens"] == 2_100
        assert [text.partition(" ")[0] for text in warnings] == ["temperature", "tool_choice"]

    def test_the_prefix_is_marked_for_the_cache(self):
        asked = ModelRequest(
            system="Be brief.",
            tools=(SEARCH,),
            messages=(
                UserMessage((TextContent("a"),)),
                AssistantMessage((TextContent("b"),)),
                UserMessage((TextContent("c"),)),
            ),
        )
        body = body_of(asked)
        marked = [i for i, m in enumerate(body["messages"]) if "cache_control" in m["content"][-1]]
        assert ("cache_control" in body["system"][-1], marked) == (True, [0, 2])
        assert "cache_control" not in json.dumps(body_of(asked, cache=False))

    def test_without_markers_the_prefix_of_the_next_request_is_the_same_bytes(self):
        first = (UserMessage((TextContent("a"),)), AssistantMessage((TextContent("b"),)))
        asked = ModelRequest(messages=(*first, UserMessage((TextContent("c"),))))
        later = ModelRequest(
            messages=(
                *asked.messages,
                AssistantMessage((TextContent("d"),)),
                UserMessage((TextContent("e"),)),
            )
        )
        one, two = (build_body(r, model_id="m", cache=False)[0]["messages"] for r in (asked, later))
        assert json.dumps(two).startswith(json.dumps(one)[:-1])

    @pytest.mark.parametrize(
        ("choice", "sent"),
        [
            ("auto", None),
            ("none", {"type": "none"}),
            ("required", {"type": "any"}),
            (NamedTool("search"), {"type": "tool", "name": "search"}),
        ],
    )
    def test_tool_choices(self, choice, sent):
        body = body_of(request(tools=(SEARCH,), tool_choice=choice))
        assert body.get("tool_choice") == sent

    def test_tools_of_the_provider_come_beside_ours(self):
        search = {"type": "web_search_20250305", "name": "web_search"}
        asked = request(tools=(SEARCH,), provider_options={"anthropic": {"tools": [search]}})
        assert [tool["name"] for tool in body_of(asked)["tools"]] == ["search", "web_search"]
        alone = request(provider_options={"anthropic": {"tools": [search]}})
        assert "tool_choice" not in body_of(alone)

    def test_an_option_it_does_not_have_is_refused_by_name(self):
        with pytest.raises(ConfigurationError, match=r"'thinkin'.*Did you mean 'thinking'"):
            body_of(request(provider_options={"anthropic": {"thinkin": {}}}))

    def test_what_is_newer_than_our_list_goes_through_extra_body(self):
        options = {"anthropic": {"extra_body": {"sparkle": 1}}}
        assert body_of(request(provider_options=options))["sparkle"] == 1

    async def test_betas_are_a_header(self):
        options = {"anthropic": {"betas": ["a-1", "b-2"]}}
        async with served(Reply(deltas=["A"])) as (model, provider):
            await collect(model, request(provider_options=options))
        received = provider.requests[0]
        assert received.headers["anthropic-beta"] == "a-1,b-2"
        assert received.headers["x-api-key"] == "secret"
        assert "betas" not in received.body

    def test_a_schema_is_bound_where_the_model_can(self):
        asked = request(response_format={"type": "object"})
        assert body_of(asked)["output_config"]["format"]["type"] == "json_schema"


class TestSetUp:
    def test_without_a_key_the_variable_is_named(self, monkeypatch):
        monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
        monkeypatch.delenv("ANTHROPIC_BASE_URL", raising=False)
        with pytest.raises(ConfigurationError, match="Set ANTHROPIC_API_KEY"):
            AnthropicModel("claude-x")

    async def test_a_wrong_key_names_the_variable(self, monkeypatch):
        body = b'{"type":"error","error":{"type":"authentication_error","message":"invalid"}}'
        async with MockProvider([RawReply(chunks=[body], status=401)]) as provider:
            monkeypatch.setenv("ANTHROPIC_BASE_URL", provider.origin)
            monkeypatch.setenv("ANTHROPIC_API_KEY", "wrong")
            model = AnthropicModel("claude-x")
            failed = failure_of(await collect(model))
            await model.aclose()
        assert str(failed) == (
            "anthropic answered 401: invalid. Check the key: ANTHROPIC_API_KEY or api_key=...."
        )
        assert failed.code == "authentication_error"

    async def test_a_server_that_is_not_there_says_where_it_looked(self):
        model = AnthropicModel("claude-x", base_url="http://127.0.0.1:9", api_key="k")
        failed = failure_of(await collect(model))
        await model.aclose()
        assert "http://127.0.0.1:9" in str(failed)
