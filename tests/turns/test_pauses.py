"""A provider that pauses amid its own tools is sent what it has said, and goes on (spec/02 §8).

Anthropic stops long searches with `pause_turn` and wants the unfinished answer back as it is. The
mock provider refuses an open server call anywhere but at the end, as Anthropic does.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from tests.travel.support import case_of, same
from tests.turns.support import Stage, running, untyped
from thinkwell import Think
from thinkwell.host.replaying import replay_case
from thinkwell.models.anthropic import AnthropicModel
from thinkwell.testing.mock_provider import AnyReply, MockProvider, RawReply, Reply
from thinkwell.testing.protocols.anthropic_messages import encode_reply
from thinkwell.testing.protocols.reply import MockServerCall
from thinkwell.turn.travel.story import tell

FOUND = [{"type": "web_search_result", "url": "https://a.example", "title": "A"}]
SEARCH = MockServerCall(name="web_search", input={"query": "a"})
PAUSED = Reply(server_calls=[SEARCH], finish_reason="pause_turn")
REST = Reply(
    server_calls=[MockServerCall(name="web_search", result=FOUND, asked_before=True)],
    deltas=["Found it."],
)


class Plain(Think, name="plain"):
    max_steps = 3


@asynccontextmanager
async def asking(*replies: AnyReply) -> AsyncIterator[tuple[Stage[Any], MockProvider]]:
    async def sleep(_seconds: float) -> None:
        pass

    async with MockProvider(list(replies)) as provider, running(Plain) as stage:
        model = AnthropicModel("m", base_url=provider.origin, api_key="k")
        untyped(stage).model = model
        turns = untyped(stage)._turns
        turns.wire(msgspec.structs.replace(turns.parts, sleep=sleep, random=lambda: 0.0))
        try:
            yield stage, provider
        finally:
            await model.aclose()


def last_message(provider: MockProvider, number: int) -> dict[str, Any]:
    return provider.requests[number].body["messages"][-1]


async def test_a_paused_answer_goes_on_in_the_same_step():
    async with asking(PAUSED, REST) as (stage, provider):
        result = await stage.agent.run("look it up")
        assert (result.text, result.steps, result.stop_reason) == ("Found it.", 1, "end")
        assert result.usage.output_tokens == 10  # both calls
        sent = last_message(provider, 1)
        assert sent["role"] == "assistant"
        (block,) = sent["content"]
        assert (block["type"], block["id"]) == ("server_tool_use", "srvtoolu_1")
        assert block["input"] == {"query": "a"}
        (call,) = [p for p in (await stage.answer())["parts"] if "toolCallId" in p]
        assert (call["state"], call["output"]) == ("output-available", FOUND)


async def test_the_search_is_in_later_questions_with_its_result():
    async with asking(PAUSED, REST, Reply(deltas=["Again."])) as (stage, provider):
        await stage.agent.run("look it up")
        await stage.agent.run("and now?")
        said = provider.requests[2].body["messages"][1]
        assert [block["type"] for block in said["content"]] == [
            "server_tool_use",
            "web_search_tool_result",
            "text",
        ]


async def test_every_pause_counts_as_a_step():
    async with asking(PAUSED, PAUSED, PAUSED) as (stage, provider):
        result = await stage.agent.run("look it up")
        assert (result.status, result.stop_reason) == ("completed", "max_steps")
        assert len(provider.requests) == 3
        (call,) = [p for p in (await stage.answer())["parts"] if "toolCallId" in p]
        assert call["state"] == "output-error"


async def test_a_refused_call_after_a_pause_is_tried_again_as_it_was():
    overloaded = RawReply(status=529, content_type="application/json", chunks=[b"{}"])
    async with asking(PAUSED, overloaded, REST) as (stage, provider):
        assert (await stage.agent.run("look it up")).text == "Found it."
        assert last_message(provider, 1) == last_message(provider, 2)


async def test_the_container_in_which_tools_worked_is_named_again():
    events = encode_reply(PAUSED, "m")
    place = next(i for i, e in enumerate(events) if b"message_delta" in e)
    named = b'{"stop_reason":"pause_turn","container":{"id":"container_1","expires_at":"x"},'
    events[place] = events[place].replace(b'{"stop_reason":"pause_turn",', named)
    assert named in events[place]
    async with asking(RawReply(chunks=events), REST) as (stage, provider):
        assert (await stage.agent.run("look it up")).text == "Found it."
        assert provider.requests[1].body["container"] == "container_1"


async def test_the_story_tells_both_calls_and_a_replay_makes_them_again():
    async with asking(PAUSED, REST) as (stage, _):
        result = await stage.agent.run("look it up")
        case = await case_of(untyped(stage)._turns.parts.store, result.request_id, "plain/x")
        (step,) = (await tell(case)).steps
        assert [use.finish_reason for use in step.models] == ["paused", "stop"]
        assert [use.usage.output_tokens for use in step.models] == [5, 5]
        same(await replay_case(case, Plain))


async def test_an_answer_that_breaks_off_after_a_pause_goes_on_after_what_was_shown():
    events = encode_reply(REST, "m")
    cut = RawReply(chunks=events[: events.index(next(e for e in events if b"Found it" in e)) + 1])
    async with asking(PAUSED, cut, Reply(deltas=[" And more."])) as (stage, _):
        result = await stage.agent.run("look it up")
        assert (result.status, result.text) == ("completed", "Found it. And more.")
        (call,) = [p for p in (await stage.answer())["parts"] if "toolCallId" in p]
        assert call["state"] == "output-available"
