"""A turn that ended badly is run again by hand (DESIGN §8.16): a new turn, one end each."""

from __future__ import annotations

from typing import Any

import pytest

from tests.turns.support import Stage, running, untyped
from thinkwell import Think
from thinkwell.core.errors import CallerLostError, TurnError
from thinkwell.host.client import AgentAddress
from thinkwell.messages.message import text_of
from thinkwell.testing import Gate, call, error, pause
from thinkwell.tools.output import FINAL_ANSWER

BAD = [error(ValueError("no"))]


async def retry(stage: Stage[Any], turn: str) -> str:
    activation = await stage.host.agent(AgentAddress(stage.agent.agent_class, "x"))
    return await activation.retry_turn(turn)


async def ended(stage: Stage[Any], turn: str) -> Any:
    assert await stage.agent.wait_until_stable(timeout=10)
    return await stage.agent.get_turn(turn)


def texts(messages: list[Any]) -> list[str]:
    return [text_of(message) for message in messages]


async def test_the_new_answer_takes_the_place_of_the_old_one():
    async with running(Think, [*["Hal"], *BAD], "Hello") as stage:
        failed = await stage.agent.run("hi")
        new = await retry(stage, failed.request_id)
        assert (await ended(stage, new)).status == "completed"
        assert (await ended(stage, failed.request_id)).status == "error"
        assert texts(await stage.agent.get_messages()) == ["hi", "Hello"]


async def test_after_the_conversation_went_on_the_question_is_asked_again_at_its_end():
    async with running(Think, BAD, "two", "one") as stage:
        failed = await stage.agent.run("first")
        await stage.agent.run("second")
        await ended(stage, await retry(stage, failed.request_id))
        assert texts(await stage.agent.get_messages()) == ["first", "second", "two", "first", "one"]


async def test_while_another_turn_runs_it_comes_after_that():
    gate: Gate = pause()
    async with running(Think, BAD, [gate, "two"], "one") as stage:
        failed = await stage.agent.run("first")
        await stage.agent.submit("second")
        await gate.reached()
        new = await retry(stage, failed.request_id)
        gate.open()
        assert (await ended(stage, new)).status == "completed"
        assert texts(await stage.agent.get_messages())[-2:] == ["first", "one"]


async def test_twice_is_once():
    async with running(Think, BAD, "Hello") as stage:
        failed = await stage.agent.run("hi")
        first = await retry(stage, failed.request_id)
        await ended(stage, first)
        assert await retry(stage, failed.request_id) == first
        assert len(stage.model.requests) == 2


async def test_what_was_cleared_away_or_went_well_is_refused():
    async with running(Think, BAD, "fine") as stage:
        failed = await stage.agent.run("hi")
        fine = await stage.agent.run("and now?")
        with pytest.raises(TurnError, match="needs no retry"):
            await retry(stage, fine.request_id)
        await stage.agent.clear_messages()
        with pytest.raises(TurnError, match="no longer shown"):
            await retry(stage, failed.request_id)
        with pytest.raises(TurnError, match="has no turn"):
            await retry(stage, "unknown")


async def test_what_run_was_given_holds_for_the_new_turn_too():
    async with running(Think, BAD, [call(FINAL_ANSWER, {"value": 7})]) as stage:
        failed = await stage.agent.run("how many?", output=int, max_steps=3)
        new = await ended(stage, await retry(stage, failed.request_id))
        record = await untyped(stage)._turns.find(new.request_id)
        assert (record.status, record.output) == ("completed", 7)
        assert record.chosen.max_steps == 3


async def test_a_turn_whose_tool_died_with_its_caller_is_refused_and_stores_nothing():
    def double(number: int) -> int:
        """Doubles a number."""
        return number * 2

    async with running(Think, BAD, "without it") as stage:
        failed = await stage.agent.run("hi", tools=[double])
        with pytest.raises(CallerLostError, match="the tool 'double'"):
            await retry(stage, failed.request_id)
        assert await untyped(stage)._turns.find(f"{failed.request_id}:retry") is None
