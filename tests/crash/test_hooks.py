"""A crash inside the hooks of a turn. No point is named there: the hook kills the process."""

from __future__ import annotations

import pytest

from tests.crash.client import client_of
from tests.crash.evidence import check_answer, check_stream, settled, turn_of
from tests.crash.process import World
from tests.crash.scenario import check_seen

pytestmark = pytest.mark.crash

AGENT = "watched/one"
QUESTION = "hooks|say:3,pure;say:3"


async def die_in(world: World, place: str) -> None:
    """Ask; the hook at `place` kills the process; start it again and wait for the end."""
    world.hold(f"die-in-{place}")
    server = await world.start()
    async with client_of(server, AGENT) as client:
        await client.ask(QUESTION, request="r1")
        await server.crashed()
    await world.start()
    await settled(world, "r1")
    check_answer(world, AGENT, "r1", QUESTION)
    check_seen(world, client, "r1")


@pytest.mark.parametrize("step", [0, 1])
async def test_a_step_that_was_stored_is_not_asked_for_again(world: World, step: int):
    await die_in(world, f"step-{step}")
    assert world.model_calls("hooks") == 2


@pytest.mark.parametrize("kind", ["finish-step", "finish", "text-end", "tool-output-available"])
async def test_a_crash_before_a_chunk_is_stored_costs_at_most_one_model_call(
    world: World, kind: str
):
    await die_in(world, f"chunk-{kind}")
    assert world.model_calls("hooks") <= 3


@pytest.mark.parametrize("kind", ["start", "start-step", "text-start", "tool-input-start"])
async def test_a_crash_at_the_beginning_of_something_begins_it_once(world: World, kind: str):
    await die_in(world, f"chunk-{kind}")
    turn = turn_of(world, "r1")
    assert turn is not None
    assert turn["steps"] == 2
    assert [p["type"] for p in check_stream(world, "r1")["parts"]].count("step-start") == 2
