"""One poisoned turn: the process dies three times at the same place of it, then it is parked, and
everything else goes on (DESIGN §8.16, spec/04 §5.4).
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.crash.client import client_of
from tests.crash.evidence import check_answer, query, settled, stored_messages, turn_of
from tests.crash.process import Server, World, until

pytestmark = pytest.mark.crash

AGENT = "poisoned/one"
BESIDE = "beside|say:6,hold:b,say:3,pure;say:4"
LEAD = "lead|hold:wait,say:1"
AFTER = "after|say:3,pure;say:2"


async def ask_poison(world: World, poison: str) -> None:
    """One turn of another agent that runs all the time; the poison, and a question behind it."""
    world.hold("b")
    server = await world.start()
    async with client_of(server, "talker/beside") as other, client_of(server, AGENT) as client:
        await other.ask(BESIDE, request="beside")
        await other.chunks("beside", 4)
        world.hold("wait")
        await client.ask(LEAD, request="lead")
        await client.ask(poison, request="poison")
        await until(lambda: turn_of(world, "poison"), "the poison is accepted")
        await client.ask(AFTER, request="after")
        await until(lambda: turn_of(world, "after"), "a question behind it")
        world.release("wait")
        await server.crashed()


async def supervise(world: World, request: str, most: int) -> int:
    """Start the process again whenever it dies, until the turn has ended; how often."""
    ended = "SELECT 1 FROM turns WHERE id = ? AND status NOT IN ('accepted', 'running')"
    for starts in range(1, most + 1):
        server = Server(world, "")
        world.servers.append(server)
        await server.spawn()
        await until(
            lambda s=server: not s.alive or query(world, ended, request), f"{request} or a death"
        )
        if server.alive:
            return starts
        await server.ended()
    raise AssertionError(f"{request} killed the process {most} times: {turn_of(world, request)}")


async def check_the_rest(world: World) -> None:
    """Nobody else suffered: what ran beside it and what waited behind it is answered, once."""
    world.release("b")
    await settled(world, "after")
    check_answer(world, AGENT, "after", AFTER)
    await settled(world, "beside")
    check_answer(world, "talker/beside", "beside", BESIDE)


def parked(world: World) -> dict[str, Any]:
    turn = turn_of(world, "poison")
    assert turn is not None
    assert (turn["status"], turn["stop_reason"]) == ("error", "parked")
    assert "could not recover" in turn["client_error"]
    return turn


@pytest.mark.parametrize(
    ("poison", "order", "place"),
    [
        ("poison|say:2,kill;say:1", None, "tool kill"),
        ("poison|say:2,kill_late;say:1", None, "tool kill_late"),
        ("poison|say:2,pure,kill,pure;say:1", None, "tool kill"),
        ("poison|say:2", "model-poison", "the model call"),
        ("poison|say:2", "before_step", "hook Poisoned.before_step"),
        ("poison|say:2", "on_chunk", "hook Poisoned.on_chunk"),
    ],
)
async def test_a_turn_that_kills_the_process_three_times_at_one_place_is_parked(
    world: World, poison: str, order: str | None, place: str
):
    if order is not None:
        world.hold(f"always-die-in-{order}")
    await ask_poison(world, poison)
    assert await supervise(world, "poison", 5) == 3
    turn = parked(world)
    assert place in turn["error"]
    assert "3 times" in turn["error"]
    if order is not None:
        world.release(f"always-die-in-{order}")
    await check_the_rest(world)
    texts = json.dumps(stored_messages(world, AGENT))
    assert "poison|" in texts
