"""A crash around a tool: a settled call never runs again, a call with an unknown outcome only if
its author declared that safe (spec/04 §15.1, C5–C9).
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.crash.client import Client, client_of
from tests.crash.evidence import check_answer, settled, stored_stream, turn_of
from tests.crash.process import World, until
from tests.crash.scenario import AGENT, check_seen, crash
from thinkwell.messages.message import tool_parts

pytestmark = pytest.mark.crash

NOTE = "tools.0.0"


def question(tool: str) -> dict[str, str]:
    return {"r1": f"tools|say:2,{tool};say:3"}


async def result_after(world: World, asked: dict[str, str]) -> dict[str, Any]:
    """The tool's part once the turn has ended after a restart."""
    await world.start()
    await settled(world, "r1")
    answer = check_answer(world, AGENT, "r1", asked["r1"])
    return next(part for part in tool_parts(answer) if part["input"] == {"note": NOTE})


@pytest.mark.parametrize("point", ["c7", "c8"])
@pytest.mark.parametrize("tool", ["pure", "idempotent", "growing"])
async def test_a_tool_that_may_be_repeated_runs_again_with_the_same_key(
    world: World, tool: str, point: str
):
    await crash(world, point, question(tool))
    part = await result_after(world, question(tool))
    assert part["output"] == f"did {NOTE}"
    runs = world.effects(NOTE)
    assert len(runs) == (2 if point == "c8" else 1)
    assert len({run["key"] for run in runs}) == 1
    assert world.model_calls("tools") == 2


@pytest.mark.parametrize(("point", "runs"), [("c7", 0), ("c8", 1)])
async def test_a_once_tool_is_not_run_again_and_the_model_is_told(
    world: World, point: str, runs: int
):
    await crash(world, point, question("once"))
    part = await result_after(world, question("once"))
    assert part["state"] == "output-error"
    assert "outcome is unknown" in part["errorText"]
    assert len(world.effects(NOTE)) == runs
    assert world.model_calls("tools") == 2


@pytest.mark.parametrize("kills", [1, 2])
async def test_a_model_that_asks_again_does_not_get_a_once_tool_run_twice(world: World, kills: int):
    asked = {"r1": "stubborn|say:2,once;hold:a,say:3"}
    await crash(world, "c8", asked)
    if kills == 2:
        await world.run_into("c9")
    await world.start()
    await settled(world, "r1")
    answer = check_answer(world, AGENT, "r1", asked["r1"])
    assert [part["state"] for part in tool_parts(answer)] == ["output-error"] * 2
    assert len(world.effects("stubborn.0.0")) == 1


@pytest.mark.parametrize("tool", ["once", "pure", "growing"])
async def test_kill_9_while_the_tool_runs(world: World, tool: str):
    before = await kill_in_tool(world, question(tool))
    part = await result_after(world, question(tool))
    check_seen(world, before, "r1")
    assert part["state"] == ("output-error" if tool == "once" else "output-available")
    assert len(world.effects(NOTE)) == (1 if tool == "once" else 2)


async def kill_in_tool(world: World, asked: dict[str, str]) -> Client:
    world.hold("hold-tool")
    server = await world.start()
    async with client_of(server, AGENT) as client:
        await client.ask(asked["r1"], request="r1")
        await until(lambda: world.effects(NOTE), "the tool has begun")
        await client.saw(lambda f: "tool-input-available" in f.get("body", ""), "the call")
        await server.kill()
    world.release("hold-tool")
    return client


@pytest.mark.parametrize(("point", "first_part"), [("c5", "cut"), ("c6", "ran"), ("c9", "ran")])
async def test_a_once_tool_that_never_began_runs_exactly_once(
    world: World, point: str, first_part: str
):
    await crash(world, point, question("once"))
    part = await result_after(world, question("once"))
    assert part["output"] == f"did {NOTE}"
    assert len(world.effects(NOTE)) == 1
    assert world.model_calls("tools") == (3 if first_part == "cut" else 2)


async def test_c5_a_cut_call_is_shown_as_failed_and_nothing_runs_on_half_an_input(world: World):
    await crash(world, "c5:2", question("once"))
    await result_after(world, question("once"))
    failed = [body for body in stored_stream(world, "r1") if '"tool-input-error"' in body]
    assert len(failed) == 1
    assert "was not run" in failed[0]


@pytest.mark.parametrize("point", ["c6", "c7:2", "c8:2"])
async def test_of_two_calls_in_one_step_each_gets_its_own_result(world: World, point: str):
    asked = {"r1": "tools|say:2,once,pure;say:3"}
    await crash(world, point, asked)
    await result_after(world, asked)
    assert len(world.effects("tools.0.0")) <= 1
    assert 1 <= len(world.effects("tools.0.1")) <= 2


async def test_words_after_a_call_that_a_crash_cut_are_closed_before_the_step_ends(world: World):
    asked = {"r1": "tools|say:2,pure,aside;say:3"}
    await crash(world, "c4:5", asked)
    await result_after(world, asked)
    assert world.model_calls("tools") == 2


async def test_the_tokens_of_a_step_are_counted_across_a_crash(world: World):
    await crash(world, "c7", question("pure"))
    await result_after(world, question("pure"))
    turn = turn_of(world, "r1")
    assert turn is not None
    assert (turn["steps"], '"outputTokens":2' in turn["usage"]) == (2, True)


@pytest.mark.parametrize("point", ["c7", "c8"])
async def test_a_later_turn_that_asks_for_the_same_does_not_run_it_again(world: World, point: str):
    asked = question("once")["r1"]
    await crash(world, point, {"r1": asked})
    server = await world.start()
    await settled(world, "r1")
    before = len(world.effects(NOTE))
    async with client_of(server, AGENT) as client:
        await client.ask(asked, request="r2")
        await settled(world, "r2")
    assert len(world.effects(NOTE)) == before <= 1
    assert any("outcome is unknown" in body for body in stored_stream(world, "r2"))
