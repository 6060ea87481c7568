"""The responses adapter against the strict mock, concern by concern. What all models share is in
`tests/contracts/test_models.py`."""

from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.unit.models.helpers import (
    calls_of,
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
from thinkwell.models.base import (
    FilePart,
    ModelRequest,
    NamedTool,
    ReasoningEnd,
    SourceDocument,
    SourceUrl,
    ToolCall,
    ToolResult,
    ToolSpec,
)
from thinkwell.models.openai_responses import OpenAIModel
from thinkwell.models.openai_responses_request import build_body, build_input
from thinkwell.testing.mock_provider import MockProvider, RawReply, Reply
from thinkwell.testing.protocols.openai_responses import encode_reply, find_fault

SEARCH = ToolSpec("search", "Finds pages.", {"type": "object"})
ASKED = UserMessage((TextContent("a"),))


@asynccontextmanager
async def served(*replies):
    async with MockProvider(list(replies)) as provider:
        model = OpenAIModel("gpt-x", base_url=provider.base_url, api_key="secret")
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


CREATED = {"type": "response.created", "response": {"id": "resp_1", "model": "gpt-x"}}
DONE = {"type": "response.completed", "response": {"id": "resp_1", "model": "gpt-x"}}


def item(index: int, item: dict[str, Any], *between: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "response.output_item.added", "output_index": index, "item": item},
        *({"output_index": index, **event} for event in between),
        {"type": "response.output_item.done", "output_index": index, "item": item},
    ]


def message(index: int, text: str, *more: dict[str, Any]) -> list[dict[str, Any]]:
    delta = {"type": "response.output_text.delta", "delta": text}
    return item(index, {"type": "message", "id": f"msg_{index}"}, delta, *more)


def body_of(asked: ModelRequest, model_id: str = "gpt-x") -> dict[str, Any]:
    body = build_body(asked, model_id=model_id)[0]
    assert find_fault(body) is None
    return body


class TestStream:
    async def test_a_thought_ends_with_what_openai_wants_to_see_again(self):
        events = await events_of(Reply(reasoning=["Hm"], signature="enc", deltas=["A"]))
        kept = {"openai": {"itemId": "rs_0", "encryptedContent": "enc"}}
        assert ReasoningEnd("rs_0", kept) in events

    async def test_several_summaries_are_paragraphs_of_one_thought(self):
        part = {"type": "response.reasoning_summary_part.added"}
        text = {"type": "response.reasoning_summary_text.delta"}
        thought = item(
            0,
            {"type": "reasoning", "id": "rs_0", "encrypted_content": "e"},
            {**part, "summary_index": 0},
            {**text, "summary_index": 0, "delta": "One."},
            {**part, "summary_index": 1},
            {**text, "summary_index": 1, "delta": "Two."},
        )
        events = await events_of(raw(CREATED, *thought, *message(1, "A"), DONE))
        assert reasoning_of(events) == "One.\n\nTwo."
        assert len([event for event in events if isinstance(event, ReasoningEnd)]) == 1

    async def test_usage_with_cached_and_reasoning_tokens(self):
        usage = {
            "prompt_tokens": 9,
            "completion_tokens": 4,
            "total_tokens": 13,
            "prompt_tokens_details": {"cached_tokens": 8},
            "completion_tokens_details": {"reasoning_tokens": 3},
        }
        finish = finish_of(await events_of(Reply(deltas=["x"], usage=usage)))
        assert finish.usage == Usage(
            input_tokens=9,
            output_tokens=4,
            total_tokens=13,
            cached_input_tokens=8,
            reasoning_tokens=3,
        )
        assert (finish.response_id, finish.model_id) == ("resp_mock", "gpt-x")

    @pytest.mark.parametrize(
        ("why", "reason"),
        [("max_output_tokens", "length"), ("content_filter", "content-filter"), ("new", "other")],
    )
    async def test_an_incomplete_answer_says_why(self, why, reason):
        finish = finish_of(await events_of(Reply(deltas=["x"], finish_reason=why)))
        assert (finish.reason, finish.raw_reason) == (reason, why)

    async def test_a_refusal_is_text_and_a_reason(self):
        said = {"type": "response.refusal.delta", "delta": "I cannot."}
        refused = item(0, {"type": "message", "id": "msg_0"}, said)
        events = await events_of(raw(CREATED, *refused, DONE))
        assert (text_of(events), finish_of(events).reason) == ("I cannot.", "content-filter")

    async def test_a_search_by_openai_is_told_with_its_result_and_sources(self):
        search = {
            "type": "web_search_call",
            "id": "ws_1",
            "status": "completed",
            "action": {"type": "search", "query": "a"},
        }
        cited = {"type": "response.output_text.annotation.added"}
        page = {"type": "url_citation", "url": "https://a.example", "title": "A"}
        file = {"type": "file_citation", "file_id": "file_1", "filename": "a.pdf"}
        events = await events_of(
            raw(
                CREATED,
                *item(0, search, {"type": "response.web_search_call.searching"}),
                *message(
                    1,
                    "A.",
                    {**cited, "annotation": page},
                    {**cited, "annotation": page},
                    {**cited, "annotation": file},
                ),
                DONE,
            )
        )
        [call] = [event for event in events if isinstance(event, ToolCall)]
        assert (call.tool_name, call.provider_executed) == ("web_search", True)
        assert json.loads(call.input) == {"action": search["action"]}
        assert call.provider_metadata == {"openai": {"item": search}}
        [result] = [event for event in events if isinstance(event, ToolResult)]
        assert result.output == {"status": "completed"}
        sources = [event for event in events if isinstance(event, SourceUrl | SourceDocument)]
        assert [source.title for source in sources] == ["A", "a.pdf"]
        assert finish_of(events).reason == "stop"

    async def test_code_that_openai_ran_has_code_and_output(self):
        ran = {
            "type": "code_interpreter_call",
            "id": "ci_1",
            "code": "1+1",
            "container_id": "c",
            "outputs": [{"type": "logs", "logs": "2"}],
        }
        events = await events_of(raw(CREATED, *item(0, ran), DONE))
        assert calls_of(events) == [
            ("ci_1", "code_interpreter", '{"code":"1+1","container_id":"c"}')
        ]
        [result] = [event for event in events if isinstance(event, ToolResult)]
        assert result.output == {"outputs": ran["outputs"]}

    async def test_a_picture_is_a_file(self):
        drawn = {"type": "image_generation_call", "id": "ig_1", "result": "AA==", "status": "done"}
        events = await events_of(raw(CREATED, *item(0, drawn), DONE))
        assert FilePart("data:image/png;base64,AA==", "image/png") in events
        [call] = [event for event in events if isinstance(event, ToolCall)]
        assert "AA==" not in json.dumps(call.provider_metadata)

    async def test_a_tool_of_openai_that_fails(self):
        failed = {"type": "mcp_call", "id": "mcp_1", "name": "x", "error": "no server"}
        events = await events_of(raw(CREATED, *item(0, failed), DONE))
        [result] = [event for event in events if isinstance(event, ToolResult)]
        assert result.error == "no server"

    @pytest.mark.parametrize(
        "event",
        [
            {"type": "error", "code": "rate_limit_exceeded", "message": "slow down"},
            {
                "type": "response.failed",
                "response": {"error": {"code": "rate_limit_exceeded", "message": "slow down"}},
            },
            {"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}},
        ],
    )
    async def test_an_error_inside_the_stream_ends_it(self, event):
        events = await events_of(raw(CREATED, *message(0, "A")[:2], event, *message(1, "B")))
        failed = failure_of(events)
        assert (text_of(events), failed.retryable) == ("A", True)
        assert "slow down" in str(failed)

    async def test_what_is_not_known_is_passed_over_and_logged_once(self, caplog):
        new = {"type": "response.sparkle.added"}
        events = await events_of(
            raw(CREATED, new, new, *item(0, {"type": "sparkle"}), *message(1, "A"), DONE)
        )
        assert text_of(events) == "A"
        told = [record.getMessage() for record in caplog.records]
        assert len([text for text in told if "response.sparkle.added" in text]) == 1

    @pytest.mark.parametrize("count", range(4))
    async def test_a_stream_that_is_cut_is_a_failure_worth_a_retry(self, count):
        failed = failure_of(await events_of(raw(*[CREATED, *message(0, "A")][:count], cut=True)))
        assert (failed.retryable, failed.cut) == (True, True)

    async def test_bytes_may_be_cut_anywhere(self):
        whole = b"".join(encode_reply(Reply(reasoning=["Hm 🙂"], deltas=["Zoë ", "日本"]), "m"))
        for size in (1, 2, 3, 7, 64):
            pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
            events = await events_of(RawReply(chunks=pieces))
            assert (reasoning_of(events), text_of(events)) == ("Hm 🙂", "Zoë 日本")
            finish_of(events)

    async def test_garbage_is_a_failure_that_shows_it(self):
        failed = failure_of(await events_of(RawReply(chunks=[b"data: {nonsense\n\n"])))
        assert ("cannot be read" in str(failed), failed.body) == (True, "{nonsense")


class TestInput:
    def test_only_thoughts_of_openai_with_their_content_are_sent(self):
        said = AssistantMessage(
            (
                ReasoningContent("m", {"openai": {"itemId": "rs_1", "encryptedContent": "e"}}),
                ReasoningContent("x", {"openai": {"itemId": "rs_2"}}),
                ReasoningContent("y", {"anthropic": {"signature": "s"}}),
                TextContent("A"),
            )
        )
        items = build_input([ASKED, said])
        assert [entry.get("id") for entry in items if entry.get("type") == "reasoning"] == ["rs_1"]
        assert items[-1] == {"role": "assistant", "content": "A"}

    def test_a_thought_that_led_to_nothing_is_left_out(self):
        thought = ReasoningContent("m", {"openai": {"itemId": "rs_1", "encryptedContent": "e"}})
        items = build_input([ASKED, AssistantMessage((TextContent("A"), thought)), ASKED])
        assert [entry.get("type") for entry in items] == [None, None, None]

    def test_an_item_of_its_own_tool_is_sent_as_it_came(self):
        search = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
        call = ToolCallContent(
            "ws_1", "web_search", {}, {"openai": {"item": search}}, provider_executed=True
        )
        result = ToolResultContent("ws_1", "web_search", "json", {}, provider_executed=True)
        items = build_input([ASKED, AssistantMessage((call,)), ToolMessage((result,))])
        assert items[1:] == [search]

    def test_what_another_provider_ran_is_told_as_text(self):
        call = ToolCallContent("s1", "web_search", {}, {"anthropic": {}}, provider_executed=True)
        result = ToolResultContent("s1", "web_search", "json", [1], provider_executed=True)
        items = build_input([ASKED, AssistantMessage((call,)), ToolMessage((result,))])
        assert items[1:] == [
            {"role": "assistant", "content": "[I used web_search. It returned: [1]]"}
        ]

    @pytest.mark.parametrize(
        ("part", "fields"),
        [
            (
                FileContent("data:image/png;base64,AA==", "image/png"),
                {"type": "input_image", "image_url": "data:image/png;base64,AA=="},
            ),
            (
                FileContent("https://a.example/b.pdf", "application/pdf"),
                {"type": "input_file", "file_url": "https://a.example/b.pdf"},
            ),
            (
                FileContent("data:application/pdf;base64,AA==", "application/pdf", "b.pdf"),
                {"type": "input_file", "filename": "b.pdf"},
            ),
            (FileContent("https://a.example/b.zip", "application/zip"), {"type": "input_text"}),
        ],
    )
    def test_files_are_sent_as_openai_takes_them(self, part, fields):
        [sent] = build_input([UserMessage((part,))])[0]["content"]
        assert fields.items() <= sent.items()

    def test_pictures_in_a_tool_result_are_seen(self):
        value = [{"type": "image-data", "data": "AA==", "mediaType": "image/png"}]
        asked = [
            ASKED,
            AssistantMessage((ToolCallContent("c1", "shot", {}),)),
            ToolMessage((ToolResultContent("c1", "shot", "content", value),)),
        ]
        assert build_input(asked)[-1]["output"][0]["type"] == "input_image"


class TestBody:
    def test_nothing_is_stored_at_openai(self):
        assert body_of(request())["store"] is False

    def test_models_that_think_give_their_thoughts_encrypted(self):
        body = body_of(request(temperature=0.3), "gpt-5-mini")
        assert body["include"] == ["reasoning.encrypted_content"]
        assert "temperature" not in body
        assert "include" not in body_of(request(), "gpt-4.1")
        stored = request(provider_options={"openai": {"store": True}})
        assert "include" not in body_of(stored, "gpt-5-mini")

    def test_what_openai_does_not_have_is_a_warning(self):
        _, warnings = build_body(request(top_k=3, stop_sequences=("X",)), model_id="gpt-x")
        assert [text.partition(" ")[0] for text in warnings] == ["top_k", "stop_sequences"]

    @pytest.mark.parametrize(
        ("choice", "sent"),
        [
            ("auto", None),
            ("required", "required"),
            (NamedTool("search"), {"type": "function", "name": "search"}),
        ],
    )
    def test_tool_choices(self, choice, sent):
        body = body_of(request(tools=(SEARCH,), tool_choice=choice))
        assert body.get("tool_choice") == sent
        assert body["tools"][0]["strict"] is False

    def test_options_are_joined_and_checked_by_name(self):
        options = {"openai": {"reasoning": {"effort": "low"}, "text": {"verbosity": "low"}}}
        asked = request(response_format={"type": "object"}, provider_options=options)
        body = body_of(asked)
        assert (body["reasoning"], body["text"]["verbosity"]) == ({"effort": "low"}, "low")
        assert body["text"]["format"]["type"] == "json_schema"
        with pytest.raises(ConfigurationError, match=r"'reasonin'.*Did you mean 'reasoning'"):
            body_of(request(provider_options={"openai": {"reasonin": 1}}))

    def test_tools_of_openai_come_beside_ours(self):
        options = {"openai": {"tools": [{"type": "web_search"}]}}
        kinds = [
            t["type"] for t in body_of(request(tools=(SEARCH,), provider_options=options))["tools"]
        ]
        assert kinds == ["function", "web_search"]
