"""One conversation goes from any provider to any other: with thoughts, calls, results and files.

Each answer is really streamed by one adapter and sent back by another to a mock that refuses what
the real provider refuses: calls without a result, roles out of turn, thoughts that others signed.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.contracts.capabilities import SUBJECTS, Probe, Subject
from thinkwell.core import json
from thinkwell.messages.model_messages import (
    AssistantMessage,
    FileContent,
    ModelMessage,
    ReasoningContent,
    TextContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    UserMessage,
)
from thinkwell.models.base import (
    ModelEvent,
    ModelRequest,
    ReasoningDelta,
    ReasoningEnd,
    TextDelta,
    ToolCall,
)
from thinkwell.testing.contracts.model import PIXEL, SEARCH, of, said
from thinkwell.testing.mock_provider import MockProvider
from thinkwell.testing.protocols.reply import MockCall, Reply

SECRET = "c2lnbmVkLWJ5LW5vYm9keQ=="
NAMES = [subject.title for subject in SUBJECTS]


def asked(number: int) -> UserMessage:
    """A question with a picture and a text file."""
    return UserMessage(
        (
            TextContent(f"Question {number}"),
            FileContent(PIXEL, "image/png", "dot.png"),
            FileContent("data:text/plain;base64,aGVsbG8=", "text/plain", "a.txt"),
        )
    )


def answer_of(events: list[ModelEvent]) -> tuple[ModelMessage, ModelMessage]:
    """What the turn makes of the events of a step, and the results of its tools."""
    parts: list[Any] = []
    thought = "".join(event.delta for event in of(ReasoningDelta, events))
    for end in of(ReasoningEnd, events):
        parts.append(ReasoningContent(thought, end.provider_metadata))
    text = "".join(event.delta for event in of(TextDelta, events))
    parts.append(TextContent(text))
    calls = of(ToolCall, events)
    parts += [
        ToolCallContent(c.tool_call_id, c.tool_name, json.loads(c.input), c.provider_metadata)
        for c in calls
    ]
    picture = [{"type": "media", "mediaType": "image/png", "data": PIXEL.partition(",")[2]}]
    values: list[tuple[Any, Any]] = [("content", picture), ("error-text", "offline")]
    results = tuple(
        ToolResultContent(call.tool_call_id, call.tool_name, kind, value)
        for call, (kind, value) in zip(calls, values, strict=True)
    )
    return AssistantMessage(tuple(parts)), ToolMessage(results)


def turn(number: int) -> Reply:
    calls = [
        MockCall(name="search", arguments=[f'{{"n":{n}}}'], id=f"call_{number}_{n}") for n in (1, 2)
    ]
    return Reply(reasoning=["Hm."], signature=SECRET, deltas=["I search."], calls=calls)


async def streamed(subject: Subject, messages: tuple[ModelMessage, ...], number: int) -> Any:
    probe = Probe(subject)
    request = ModelRequest(messages=messages, tools=(SEARCH,), system="Be brief.")
    return await probe.events(turn(number), request)


@pytest.mark.parametrize("second", SUBJECTS, ids=NAMES)
@pytest.mark.parametrize("first", SUBJECTS, ids=NAMES)
async def test_a_conversation_moves_from_one_to_the_other(first: Subject, second: Subject):
    messages: tuple[ModelMessage, ...] = (asked(1),)
    messages += answer_of(await streamed(first, messages, 1))
    probe = Probe(second)
    request = ModelRequest(messages=(*messages, asked(2)), tools=(SEARCH,))
    assert said(await probe.events(Reply(deltas=["Fine."]), request)) == "Fine."
    (sent,) = probe.sent
    assert "I search." in sent
    if first.title != second.title:
        assert SECRET not in sent, "a thought went to somebody who did not sign it"


async def test_a_conversation_goes_round_through_all_of_them_and_back():
    messages: tuple[ModelMessage, ...] = (asked(0),)
    for number, subject in enumerate((*SUBJECTS, *reversed(SUBJECTS))):
        messages += answer_of(await streamed(subject, messages, number))
        messages += (asked(number + 1),)
    for subject in SUBJECTS:
        probe = Probe(subject)
        events = await probe.events(Reply(deltas=["Fine."]), ModelRequest(messages=messages))
        assert said(events) == "Fine."
        assert probe.sent[0].count("Question") == len(messages) // 3 + 1


def test_the_mocks_are_strict():
    assert {type(subject.make(MockProvider([]))).__name__ for subject in SUBJECTS} == {
        "OpenAIChatModel",
        "OpenAIModel",
        "AnthropicModel",
        "Bridge",
    }
