"""`kill -9` at random moments of long answers of two agents with waiting messages; then a last run
to the end. Nothing is lost, nothing is doubled (spec/04 §0).
"""

from __future__ import annotations

import random
from contextlib import AsyncExitStack

import pytest

from tests.crash.client import Client, client_of
from tests.crash.evidence import check_answer, query, settled, stored_messages
from tests.crash.plan import read_plan
from tests.crash.process import World, until
from tests.crash.scenario import ask_all, check_seen

pytestmark = pytest.mark.crash

KILLS = 6
LONGEST_LIFE = 250
"""Chunks the clients of one process may see live before it is killed."""
QUESTIONS = {
    f"talker/{agent}": {
        f"{agent}-1": f"{agent}1|think,say:60,once;say:20,growing;think,say:60,pure,once;say:40",
        f"{agent}-2": f"{agent}2|once;idempotent;pure;say:40",
        f"{agent}-3": f"{agent}3|say:150",
    }
    for agent in ("left", "right")
}


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_random_kills_lose_and_double_nothing(world: World, seed: int):
    chance = random.Random(seed)
    watching = {agent: await first_life(world, agent) for agent in QUESTIONS}
    for _ in range(KILLS):
        await one_life(world, watching, chance.randint(0, LONGEST_LIFE))
    await world.start()
    for agent, questions in QUESTIONS.items():
        for request, question in questions.items():
            await settled(world, request)
            check_turn(world, agent, request, question)
            for client in watching[agent]:
                check_seen(world, client, request)
        assert len(stored_messages(world, agent)) == 2 * len(questions)


async def first_life(world: World, agent: str) -> list[Client]:
    """Everything is accepted; then the process dies."""
    server = await world.start()
    async with client_of(server, agent) as client:
        await ask_all(world, server, client, QUESTIONS[agent])
        await server.kill()
    return [client]


async def one_life(world: World, watching: dict[str, list[Client]], length: int) -> None:
    """A process with a client for each agent, killed when they saw `length` new chunks."""
    server = await world.start()
    async with AsyncExitStack() as clients:
        for agent, seen in watching.items():
            seen.append(await clients.enter_async_context(client_of(server, agent, joins=True)))
        newest = [seen[-1] for seen in watching.values()]
        await until(
            lambda: sum(c.live_chunks for c in newest) >= length or all_settled(world),
            f"{length} chunks",
        )
        await server.kill()


def all_settled(world: World) -> bool:
    return not query(world, "SELECT 1 FROM turns WHERE status IN ('accepted', 'running')")


def check_turn(world: World, agent: str, request: str, question: str) -> None:
    check_answer(world, agent, request, question)
    plan = read_plan(question)
    assert world.model_calls(plan.label) <= len(plan.steps) + len(world.servers) - 1
