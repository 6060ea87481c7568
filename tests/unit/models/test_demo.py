"""The demo model: no key, no network, the same words every time (DESIGN §10)."""

import pytest

from tests.unit.models.helpers import (
    calls_of,
    collect,
    finish_of,
    reasoning_of,
    request,
    text_of,
)
from thinkwell.core import json
from thinkwell.core.signal import AbortController
from thinkwell.messages.convert import close_with_user
from thinkwell.messages.model_messages import (
    AssistantMessage,
    TextContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    UserMessage,
)
from thinkwell.models.base import Model, ModelRequest, TextDelta, ToolSpec
from thinkwell.models.demo import ABILITIES, DemoModel

WEATHER = ToolSpec(
    "get_weather",
    "Current weather in a city.",
    {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "unit": {"enum": ["c", "f"]},
            "days": {"type": "integer"},
        },
        "required": ["city", "unit"],
    },
)
CLOCK = ToolSpec("now", "Tells the time.", {"type": "object", "properties": {}})


def demo(pauses: list[float] | None = None) -> DemoModel:
    async def sleep(seconds: float) -> None:
        if pauses is not None:
            pauses.append(seconds)

    return DemoModel(delay=0.5, sleep=sleep)


async def answer(text: str, *tools: ToolSpec):
    return await collect(demo(), request(text, tools=tools))


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

    @pytest.mark.parametrize("word", ["Streaming", "Reasoning", "tool call", "Stop", "kill -9"])
    async def test_what_can_you_do_lists_what_exists(self, word):
        assert word in text_of(await answer("What can you do?"))

    async def test_the_list_arrives_unchanged(self):
        assert text_of(await answer("what can you do")) == ABILITIES

    async def test_counting_gives_a_long_answer(self):
        assert text_of(await answer("Please count to 300")).startswith("1, 2, 3, 4")
        assert "299, 300. Done." in text_of(await answer("Please count to 300"))

    async def test_it_counts_no_further_than_a_thousand(self):
        assert text_of(await answer("count to 999999999")).endswith("1000. Done.")

    async def test_usage_counts_words(self):
        usage = finish_of(await answer("Hello there")).usage
        assert usage.input_tokens == 2
        assert usage.total_tokens == 2 + (usage.output_tokens or 0)

    async def test_nothing_said_is_answered_too(self):
        assert finish_of(await collect(demo(), ModelRequest(messages=()))).reason == "stop"


class TestTools:
    async def test_a_question_about_the_weather_calls_the_weather_tool(self):
        events = await answer("What is the weather in New York?", CLOCK, WEATHER)
        [(_call_id, name, arguments)] = calls_of(events)
        assert name == "get_weather"
        assert json.loads(arguments) == {"city": "New York", "unit": "c"}
        assert finish_of(events).reason == "tool-calls"

    async def test_a_question_about_the_time_calls_a_tool_described_so(self):
        [(_call_id, name, arguments)] = calls_of(await answer("What time is it?", WEATHER, CLOCK))
        assert (name, arguments) == ("now", "{}")

    async def test_without_a_fitting_tool_it_just_answers(self):
        assert calls_of(await answer("What is the weather?", CLOCK)) == []

    async def test_every_call_has_its_own_id(self):
        calls = [calls_of(await answer("What time is it?", CLOCK))[0][0] for _ in range(2)]
        assert calls[0] != calls[1]

    @pytest.mark.parametrize(
        ("kind", "value", "said"),
        [
            ("text", "Sunny in Rome", "says: Sunny in Rome"),
            ("json", {"sky": "blue"}, 'says: {"sky":"blue"}'),
            ("error-text", "no such city", "failed: no such city"),
            ("execution-denied", "no", "not allowed"),
        ],
    )
    async def test_the_result_of_a_tool_is_put_into_words(self, kind, value, said):
        messages = (
            *request("What is the weather in Rome?").messages,
            AssistantMessage((ToolCallContent("c1", "get_weather", {"city": "Rome"}),)),
            ToolMessage((ToolResultContent("c1", "get_weather", kind, value),)),
        )
        asked = ModelRequest(messages=messages, tools=(WEATHER,))
        assert said in text_of(await collect(demo(), asked))


class TestInterruption:
    async def test_an_abort_stops_the_words(self):
        controller, seen = AbortController(), []
        async for event in demo().stream(request("count to 300"), controller.signal):
            seen.append(event)
            if isinstance(event, TextDelta):
                controller.abort()
        assert text_of(seen) == "1,"

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
