"""What a provider may cache stays as it was, and whoever breaks it is named (spec/03 §14)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.travel.support import case_of
from tests.turns.support import running, untyped
from thinkwell import Think, TurnConfig, tool
from thinkwell.core import json
from thinkwell.messages.usage import Usage
from thinkwell.models.anthropic import AnthropicModel
from thinkwell.models.base import Finish
from thinkwell.models.openai_chat import OpenAIChatModel
from thinkwell.models.openai_responses import OpenAIModel
from thinkwell.testing import assert_prefix_stable, call, text
from thinkwell.testing.mock_provider import MockCall, MockProvider, Reply
from thinkwell.turn.recorded_requests import journal_before
from thinkwell.turn.travel.story import TurnStory, tell


class Clerk(Think, name="clerk"):
    system_prompt = "You file things."

    @tool(effect="pure")
    async def look(self, what: str) -> dict[str, Any]:
        """Looks something up."""
        return {"found": what, "pages": [1, 2]}

    @tool(effect="pure")
    async def add(self, first: int, second: int = 2) -> int:
        """Adds."""
        return first + second


class Clock(Clerk, name="clock"):
    ticks = 0

    def get_system_prompt(self) -> str:
        self.ticks += 1
        return f"It is {self.ticks} o'clock."


async def story_of(stage: Any, request_id: str) -> TurnStory:
    parts = untyped(stage)._turns.parts
    case = await case_of(parts.store, request_id, parts.owner.agent_id)
    return await tell(case, None, await journal_before(parts.store, case.turn))


def breaks(story: TurnStory) -> list[Any]:
    return [use.cache_break for step in story.steps for use in step.models]


ADAPTERS: dict[str, Callable[[MockProvider], Any]] = {
    "chat": lambda mock: OpenAIChatModel("m", base_url=mock.base_url, api_key="k"),
    "responses": lambda mock: OpenAIModel("m", base_url=mock.base_url, api_key="k"),
    "messages": lambda mock: AnthropicModel("m", base_url=mock.origin, api_key="k"),
}


def unmarked(value: Any) -> Any:
    """Without the marks for the cache: they move, and are no part of what is cached."""
    if isinstance(value, dict):
        return {k: unmarked(v) for k, v in value.items() if k != "cache_control"}
    return [unmarked(v) for v in value] if isinstance(value, list) else value


def blocks(body: dict[str, Any]) -> Iterator[str]:
    """A request as texts, in the order in which providers cache it."""
    for name in ("tools", "system", "instructions"):
        yield json.dumps(unmarked(body.get(name)))
    for message in body.get("messages") or body["input"]:
        yield json.dumps(unmarked(message))


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_each_request_begins_with_the_bytes_of_the_one_before(adapter: str):
    called = Reply(
        deltas=["I look."], calls=[MockCall(name="look", arguments=['{"what": "it"}'], id="call_1")]
    )
    replies = [called, Reply(deltas=["Found."]), Reply(deltas=["Two."]), Reply(deltas=["Three."])]
    async with MockProvider(replies) as provider, running(Clerk) as stage:
        untyped(stage).model = model = ADAPTERS[adapter](provider)
        for question in ("one?", "two?", "three?"):
            await stage.agent.run(question)
        await assert_prefix_stable(stage.agent)
        await model.aclose()
    bodies = [list(blocks(request.body)) for request in provider.requests]
    for before, now in itertools.pairwise(bodies):
        assert now[: len(before)] == before


async def test_a_prompt_that_changes_is_named_with_the_tokens_it_cost():
    def cached(count: int) -> list[Any]:
        usage = Usage(input_tokens=2000, cached_input_tokens=count)
        return [text("Hi."), Finish(reason="stop", usage=usage)]

    async with running(Clock, cached(1500), cached(200)) as stage:
        first = await stage.agent.run("one?")
        second = await stage.agent.run("two?")
        assert breaks(await story_of(stage, first.request_id)) == [None]
        (found,) = breaks(await story_of(stage, second.request_id))
        assert (found.block, found.since) == ("system", first.request_id)
        assert found.lost_tokens == 1300
        with pytest.raises(AssertionError, match="system changed between step 0 of turn"):
            await assert_prefix_stable(stage.agent)


async def test_a_hook_that_takes_a_tool_away_between_steps_is_named():
    class Fickle(Clerk, name="fickle"):
        def before_step(self, ctx: Any) -> Any:
            from thinkwell import StepConfig

            return StepConfig(active_tools=["look"]) if ctx.step_number else None

    async with running(Fickle, [call("look", {"what": "a"})], "Done.") as stage:
        result = await stage.agent.run("go")
        first, second = breaks(await story_of(stage, result.request_id))
        assert (first, second.block, second.since) == (None, "tools", "step 0")


async def test_a_hook_that_rewrites_the_history_is_named_with_its_message():
    class Editor(Clerk, name="editor"):
        def before_turn(self, ctx: Any) -> Any:
            if len(ctx.messages) < 3:
                return None
            return TurnConfig(messages=[*ctx.messages[1:]])

    async with running(Editor, "One.", "Two.") as stage:
        await stage.agent.run("one?")
        second = await stage.agent.run("two?")
        (found,) = breaks(await story_of(stage, second.request_id))
        assert found.block == "message 0"


async def test_steps_of_a_turn_say_only_what_is_new():
    steps = [[call("look", {"what": "a"})], [call("add", {"first": 1})], "Done."]
    async with running(Clerk, *steps) as stage:
        result = await stage.agent.run("go")
        parts = untyped(stage)._turns.parts
        case = await case_of(parts.store, result.request_id, "clerk/x")
        asked = [json.loads(e.body) for e in case.journal.events if e.kind == "request"]
        assert [(a.get("same", 0), len(a["prints"]) // 4) for a in asked] == [
            (0, 1),
            (1, 2),
            (3, 2),
        ]
        assert breaks(await story_of(stage, result.request_id)) == [None, None, None]


async def test_one_request_is_too_few_to_compare():
    async with running(Clerk, "One.") as stage:
        await stage.agent.run("one?")
        with pytest.raises(AssertionError, match="Run at least two turns"):
            await assert_prefix_stable(stage.agent)
