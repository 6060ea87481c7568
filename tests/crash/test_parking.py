"""One poisoned turn: the process dies three times at the same place of it, then it is parked, and
everything else goes on (DESIGN §8.16, spec/04 §5.4).
"""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from tests.crash.client import Client, client_of
from tests.crash.evidence import check_answer, settled, stored_messages, turn_of
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


def has_ended(world: World, request: str) -> bool:
    turn = turn_of(world, request)
    return turn is not None and turn["status"] not in ("accepted", "running")


async def supervise(world: World, request: str, most: int) -> int:
    """Start the process again whenever it dies, until the turn has ended; how often."""
    for starts in range(1, most + 1):
        server = Server(world, "")
        world.servers.append(server)
        await server.spawn()
        await until(
            lambda s=server: not s.alive or has_ended(world, request), f"{request} or a death"
        )
        if server.alive:
            return starts
        await server.ended()
    raise AssertionError(f"{request} killed the process {most} times: {turn_of(world, request)}")


async def check_the_rest(world: World) -> None:
    """Nobody else suffered: what ran beside it and what waited behind it is answered, once.

    The turn beside it says nothing new while the process dies three times. It is spared because
    the two are suspects after the second death, and run one after another.
    """
    world.release("b")
    await settled(world, "after")
    check_answer(world, AGENT, "after", AFTER)
    await settled(world, "beside")
    check_answer(world, "talker/beside", "beside", BESIDE)


def parked(world: World) -> dict[str, Any]:
    turn = turn_of(world, "poison")
    assert turn is not None
    assert (turn["status"], turn["stop_reason"]) == ("error", "parked")
    assert "The operator can retry it." in turn["client_error"]
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


def words(client: Client) -> int:
    """New pieces of text it saw as they were made: half a tool's input is said again."""
    live = [f for f in client.frames if "seq" in f and "replay" not in f]
    return len([f for f in live if json.loads(f["body"])["type"] == "text-delta"])


@pytest.mark.parametrize("seed", [1, 2])
async def test_a_long_turn_that_makes_progress_between_kills_is_never_parked(
    world: World, seed: int
):
    """`kill -9` again and again, each time at another moment after something new was said."""
    chance = random.Random(seed)
    question = "long|think,say:40,idempotent;say:60,growing;say:60,pure,idempotent;say:40"
    server = await world.start()
    async with client_of(server, "talker/long") as client:
        await client.ask(question, request="long")
        await client.chunks("long", 3)
        await server.kill()
    for _ in range(8):
        server = await world.start()
        async with client_of(server, "talker/long", joins=True) as client:
            fresh = chance.randint(1, 8)
            await until(
                lambda c=client, n=fresh: words(c) >= n or has_ended(world, "long"),
                "something new is said",
            )
            await server.kill()
    await world.start()
    await settled(world, "long")
    check_answer(world, "talker/long", "long", question)
