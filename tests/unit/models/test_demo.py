"""The demo model: no key, no network, the same words every time (DESIGN §10)."""

from __future__ import annotations

import base64
import struct
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
from thinkwell.core.errors import ModelError
from thinkwell.core.signal import AbortController
from thinkwell.messages.convert import close_with_user
from thinkwell.messages.model_messages import (
    AssistantMessage,
    FileContent,
    TextContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    UserMessage,
)
from thinkwell.models.base import Model, ModelRequest, TextDelta, ToolInputDelta, ToolSpec
from thinkwell.models.demo import DemoModel


def spec(name: str, description: str = "", *required: str, **properties: Any) -> ToolSpec:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return ToolSpec(name, description, schema)


WEATHER = spec(
    "get_weather",
    "Current weather in a city.",
    "city",
    "unit",
    city={"type": "string"},
    unit={"enum": ["c", "f"]},
    days={"type": "integer"},
)
CLOCK = spec("now", "Tells the time.")
THEME = spec("set_theme", "", "theme", theme={"enum": ["light", "dark", "system"]})
BROWSER = spec("get_browser_info", "About the browser.")
NOTES = spec("add_note", "", "text", text={"type": "string"})
ASK = spec("ask_user", "", "question", question={"type": "string"}, options={"type": "array"})
BUILD = spec("build_report", "Builds the report.")
DELETE = spec("delete_report", "Deletes the report.")
DICE = spec("roll_dice")


def demo(pauses: list[float] | None = None) -> DemoModel:
    async def sleep(seconds: float) -> None:
        if pauses is not None:
            pauses.append(seconds)

    return DemoModel(delay=0.5, sleep=sleep)


async def answer(text: str, *tools: ToolSpec):
    return await collect(demo(), request(text, tools=tools))


async def called(text: str, *tools: ToolSpec) -> list[tuple[str, Any]]:
    return [(name, json.loads(given)) for _, name, given in calls_of(await answer(text, *tools))]


class TestAnswers:
    async def test_it_thinks_aloud_then_speaks_word_by_word(self):
        pauses: list[float] = []
        events = await collect(demo(pauses), request("Hello"))
        assert reasoning_of(events)
        assert '"Hello"' in text_of(events)
        assert set(pauses) == {0.5}
        assert len([e for e in events if isinstance(e, TextDelta)]) > 5

    async def test_the_same_question_gives_the_same_answer(self):
        assert await answer("Hello") == await answer("Hello")

    async def test_counting_gives_a_long_answer(self):
        assert text_of(await answer("Please count to 300")).startswith("1, 2, 3, 4")
        assert "299, 300. Done." in text_of(await answer("Please count to 300"))

    async def test_it_counts_no_further_than_a_thousand(self):
        assert text_of(await answer("count to 999999999")).endswith("1000. Done.")

    async def test_a_story_is_long_enough_to_be_stopped(self):
        assert len(text_of(await answer("Tell me a long story")).split()) > 500

    async def test_markdown_shows_a_table_and_a_code_block(self):
        text = text_of(await answer("Show me markdown"))
        assert "\n|---|---|\n" in text
        assert "\n```python\n" in text

    @pytest.mark.parametrize(("a", "b"), [(17, 23), (5, 0), (120, 305), (0, 9)])
    async def test_a_multiplication_is_thought_about(self, a, b):
        events = await answer(f"What is {a} times {b}?")
        assert text_of(events) == f"{a} × {b} = **{a * b}**"
        assert f"= {a * b}." in reasoning_of(events)

    async def test_asked_to_fail_it_fails_in_the_middle(self):
        events = await answer("fail")
        assert text_of(events) == "Here is half an"
        failure = failure_of(events)
        assert isinstance(failure, ModelError)
        assert not failure.retryable

    async def test_usage_counts_words(self):
        usage = finish_of(await answer("Hello there")).usage
        assert usage.input_tokens == 2
        assert usage.total_tokens == 2 + (usage.output_tokens or 0)

    async def test_nothing_said_is_answered_too(self):
        assert finish_of(await collect(demo(), ModelRequest(messages=()))).reason == "stop"


class TestThingsToTry:
    @pytest.mark.parametrize(
        "word", ["Markdown", "Thinking", "Stop", "kill -9", "Pictures", "Fail"]
    )
    async def test_it_lists_what_needs_no_tool(self, word):
        assert word in text_of(await answer("What can you do?"))

    @pytest.mark.parametrize(
        ("tool", "word"),
        [
            (WEATHER, "Paris and Tokyo"),
            (BUILD, "Build the report"),
            (DELETE, "Delete the report"),
            (NOTES, "Note that"),
            (DICE, "Roll the dice"),
        ],
    )
    async def test_it_lists_what_a_tool_shows_only_with_that_tool(self, tool, word):
        assert word in text_of(await answer("What can you do?", tool))
        assert word not in text_of(await answer("What can you do?"))

    async def test_it_says_that_a_browser_is_needed_for_the_tools_of_a_browser(self):
        assert "Open the page" in text_of(await answer("What can you do?"))
        assert "Open the page" not in text_of(await answer("What can you do?", BROWSER, ASK))

    async def test_each_quoted_sentence_does_something(self):
        tools = (WEATHER, BUILD, DELETE, NOTES, DICE, BROWSER, THEME, ASK)
        listed = text_of(await answer("What can you do?", *tools)).splitlines()[2:]
        sentences = [line.split("`")[1] for line in listed if "picture" not in line]
        assert len(sentences) == 13
        for sentence in sentences:
            events = await answer(sentence, *tools)
            assert "That is all I know" not in text_of(events), sentence
            assert text_of(events) or calls_of(events), sentence


class TestTools:
    async def test_a_question_about_the_weather_calls_the_weather_tool(self):
        events = await answer("What is the weather in New York?", CLOCK, WEATHER)
        [(_call_id, name, arguments)] = calls_of(events)
        assert name == "get_weather"
        assert json.loads(arguments) == {"city": "New York", "unit": "c"}
        assert finish_of(events).reason == "tool-calls"

    async def test_two_places_are_two_calls_in_one_step(self):
        calls = await called("Compare the weather in Paris and New York", WEATHER)
        assert [given["city"] for _, given in calls] == ["Paris", "New York"]

    async def test_the_input_of_a_call_streams(self):
        events = await answer("What is the weather in New York?", WEATHER)
        assert len([e for e in events if isinstance(e, ToolInputDelta)]) > 1

    async def test_a_question_about_the_time_calls_a_tool_described_so(self):
        assert await called("What time is it?", WEATHER, CLOCK) == [("now", {})]

    async def test_a_client_tool_is_called_with_what_was_asked_for(self):
        assert await called("Switch to the dark theme", THEME) == [("set_theme", {"theme": "dark"})]
        assert await called("Which browser is this?", BROWSER) == [("get_browser_info", {})]

    async def test_without_the_client_tool_it_says_so(self):
        events = await answer("Switch to the dark theme", WEATHER)
        assert calls_of(events) == []
        assert "this client offers none" in text_of(events)

    async def test_a_question_to_the_person_has_answers_to_choose_from(self):
        [(name, given)] = await called("Ask me something", ASK)
        assert name == "ask_user"
        assert sorted(given) == ["options", "question"]

    async def test_a_note_holds_what_was_said(self):
        assert await called("Note that the milk is out.", NOTES) == [
            ("add_note", {"text": "the milk is out"})
        ]

    async def test_deleting_is_not_building(self):
        assert await called("Delete the report", BUILD, DELETE) == [("delete_report", {})]
        assert await called("Build the report", DELETE, BUILD) == [("build_report", {})]

    async def test_without_a_fitting_tool_it_just_answers(self):
        assert calls_of(await answer("What is the weather?", CLOCK)) == []

    async def test_every_call_has_its_own_id(self):
        calls = [calls_of(await answer("What time is it?", CLOCK))[0][0] for _ in range(2)]
        assert calls[0] != calls[1]

    @pytest.mark.parametrize(
        ("kind", "value", "said"),
        [
            ("text", "Sunny in Rome", "says: Sunny in Rome"),
            ("json", {"sky": "blue", "wind": 3}, "- **sky**: blue\n- **wind**: 3"),
            ("error-text", "no such city", "failed: no such city"),
            ("execution-denied", "no", "did not allow"),
        ],
    )
    async def test_the_result_of_a_tool_is_put_into_words(self, kind, value, said):
        assert said in await told(ToolResultContent("c1", "get_weather", kind, value))

    async def test_results_of_one_kind_become_a_table(self):
        rows = [{"city": "Rome", "sky": "blue"}, {"city": "Oslo", "sky": "a|b"}]
        results = [ToolResultContent(f"c{i}", "get_weather", "json", r) for i, r in enumerate(rows)]
        assert "| city | sky |\n| --- | --- |\n| Rome | blue |\n| Oslo | a\\|b |" in await told(
            *results
        )


async def told(*results: ToolResultContent) -> str:
    calls = tuple(ToolCallContent(r.tool_call_id, r.tool_name, {"city": "Rome"}) for r in results)
    messages = (
        *request("What is the weather in Rome?").messages,
        AssistantMessage(calls),
        ToolMessage(results),
    )
    return text_of(await collect(demo(), ModelRequest(messages=messages, tools=(WEATHER,))))


PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 640, 480) + b"\x08\x02\0\0\0"
GIF = b"GIF89a" + struct.pack("<HH", 3, 2)
JPEG = (
    b"\xff\xd8\xff\xe0\x00\x10JFIF" + bytes(10) + b"\xff\xc0\x00\x11\x08" + struct.pack(">HH", 9, 7)
)


class TestFiles:
    @pytest.mark.parametrize(
        ("data", "media_type", "said"),
        [
            (PNG, "image/png", "PNG picture named `a`, 640 × 480 pixels, 29 bytes"),
            (GIF, "image/gif", "GIF picture named `a`, 3 × 2 pixels"),
            (JPEG + bytes(4), "image/jpeg", "JPEG picture named `a`, 7 × 9 pixels"),
            (b"\xff\xd8\xff", "image/jpeg", "JPEG picture named `a`, 3 bytes"),
            (bytes(12_345), "image/webp", "WEBP picture named `a`, 12.3 kB"),
            (bytes(2_000_000), "application/pdf", "file of type PDF named `a`, 2.0 MB"),
        ],
    )
    async def test_it_tells_type_and_size(self, data, media_type, said):
        url = f"data:{media_type};base64,{base64.b64encode(data).decode()}"
        assert said in await seen(FileContent(url, media_type, "a"))

    @pytest.mark.parametrize(
        ("url", "said"),
        [
            ("https://example.com/a.png", "lies elsewhere"),
            ("data:image/png;base64,A", "lies elsewhere"),
            ("data:image/png,abc", "3 bytes"),
        ],
    )
    async def test_other_urls_do_no_harm(self, url, said):
        assert said in await seen(FileContent(url, "image/png"))


async def seen(file: FileContent) -> str:
    asked = UserMessage((file, TextContent("What is in this picture?")))
    return text_of(await collect(demo(), ModelRequest(messages=(asked,))))


class TestInterruption:
    async def test_an_abort_stops_the_words(self):
        controller, events = AbortController(), []
        async for event in demo().stream(request("count to 300"), controller.signal):
            events.append(event)
            if isinstance(event, TextDelta):
                controller.abort()
        assert text_of(events) == "1,"

    async def test_an_answer_that_has_begun_is_continued(self):
        begun = AssistantMessage((TextContent("1, 2, 3,"),))
        messages = (*request("count to 5").messages, begun)
        events = await collect(demo(), ModelRequest(messages=messages))
        assert text_of(events) == " 4, 5. Done."
        assert reasoning_of(events) == ""

    def test_it_is_a_model(self):
        assert isinstance(DemoModel(), Model)


async def test_it_goes_on_from_the_cut_when_it_is_asked_to_continue():
    """DESIGN §8.3: after a crash the request ends with the partial answer and a word to go on."""
    asked = UserMessage((TextContent("count to 5"),))
    said = AssistantMessage((TextContent("1, 2, 3,"),))
    messages = tuple(close_with_user((asked, said)))
    events = await collect(demo(), ModelRequest(messages=messages))
    assert text_of(events) == " 4, 5. Done."
