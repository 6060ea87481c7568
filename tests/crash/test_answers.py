"""A crash between a person's answer and the continuation: nothing is lost, nothing runs twice
(spec/02 §3.11, DESIGN §8.2).
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.crash.client import client_of
from tests.crash.evidence import check_stream, query, settled, stored_messages, stored_stream
from tests.crash.plan import read_plan
from tests.crash.process import World, until
from thinkwell.messages.message import text_of, tool_parts

pytestmark = pytest.mark.crash

AGENT = "careful/one"
QUESTION = "asks|say:2,once;say:3"
NOTE = "asks.0.0"


def continuations(world: World) -> list[dict[str, Any]]:
    return query(world, "SELECT * FROM turns WHERE continuation = 1")


async def die_after_the_answer(world: World, point: str, question: str = QUESTION) -> None:
    """The call is allowed; the process dies at the point."""
    server = await world.start(point)
    async with client_of(server, AGENT) as client:
        await client.ask(question, request="r1")
        await client.done("r1")
        (part,) = tool_parts(stored_messages(world, AGENT)[-1])
        assert (part["state"], world.effects(NOTE)) == ("approval-requested", [])
        await client.approve(part["toolCallId"])
        await server.crashed()


async def answer_after_restart(world: World) -> tuple[dict[str, Any], str]:
    """The call's part and the text once the continuation has ended."""
    await world.start()
    (turn,) = await until(lambda: continuations(world), "a continuation")
    await settled(world, turn["id"])
    _, answer = stored_messages(world, AGENT)
    (part,) = tool_parts(answer)
    return part, text_of(answer)


def told_of_the_call(world: World) -> list[str]:
    """The chunks about the call in the stream of the continuation (DESIGN §8.14)."""
    (turn,) = continuations(world)
    check_stream(world, turn["id"])
    chunks = [json.loads(body) for body in stored_stream(world, turn["id"])]
    return [chunk["type"] for chunk in chunks if "toolCallId" in chunk]


@pytest.mark.parametrize("point", ["c15", "c2:2", "c6:2", "c3:2", "c4:4", "c10:2", "c11:2"])
async def test_the_allowed_call_runs_once_and_the_answer_goes_on(world: World, point: str):
    await die_after_the_answer(world, point)
    part, said = await answer_after_restart(world)
    assert part["output"] == f"did {NOTE}"
    assert len(world.effects(NOTE)) == 1
    assert said == read_plan(QUESTION).text
    assert told_of_the_call(world) == ["tool-input-available", "tool-output-available"]


@pytest.mark.parametrize(("point", "runs"), [("c7", 0), ("c8", 1)])
async def test_a_call_that_had_begun_is_not_run_again(world: World, point: str, runs: int):
    await die_after_the_answer(world, point)
    part, said = await answer_after_restart(world)
    assert "outcome is unknown" in part["errorText"]
    assert len(world.effects(NOTE)) == runs
    assert said == read_plan(QUESTION).text


async def test_an_allowed_result_that_grew_is_told_to_its_end(world: World):
    """A preliminary result is no result: the call runs again, and its card is opened once."""
    question = "asks|say:2,growing;say:3"
    world.hold("hold-tool")
    server = await world.start()
    async with client_of(server, AGENT) as client, client_of(server, AGENT) as other:
        await client.ask(question, request="r1")
        await client.done("r1")
        (part,) = tool_parts(stored_messages(world, AGENT)[-1])
        await client.approve(part["toolCallId"])
        await other.saw(lambda f: '"output":"begun"' in f.get("body", ""), "a first result")
        await server.kill()
    world.release("hold-tool")
    part, said = await answer_after_restart(world)
    assert (part["output"], part["preliminary"]) == (f"did {NOTE}", False)
    assert said == read_plan(question).text
    told = told_of_the_call(world)
    assert told == ["tool-input-available", *["tool-output-available"] * 4]
