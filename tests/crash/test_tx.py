"""What a `tx` tool writes is there exactly once, wherever the process dies (spec/04 §23.12)."""

from __future__ import annotations

import json

import pytest

from tests.crash.client import client_of
from tests.crash.evidence import check_answer, query, settled, turn_of
from tests.crash.process import World, until
from tests.crash.scenario import AGENT, ask_all, crash
from thinkwell.messages.message import tool_parts

pytestmark = pytest.mark.crash

ASKED = {"r1": "tools|hold:a,think,say:4,book;say:4"}
NOTE = "tools.0.0"
WITHOUT_ROWS = ["c0", "c1", "c2", "c3", "c4", "c4:3", "c5", "c5:2", "c5:3", "c6", "c7", "c8", "c13"]
"""Points before the transaction that settles the call has committed."""
WITH_ROWS = ["c14", "c9", "c3:2", "c4:14", "c10", "c11", "c12"]


def rows(world: World) -> list[str]:
    """The business rows in the file."""
    found = query(world, "SELECT value FROM storage WHERE key LIKE 'row/%'")
    return [json.loads(row["value"]) for row in found]


def count(world: World) -> int:
    found = query(world, "SELECT value FROM storage WHERE key = 'count'")
    return json.loads(found[0]["value"]) if found else 0


def test_twenty_points_are_tried():
    assert len({*WITHOUT_ROWS, *WITH_ROWS}) == 20


@pytest.mark.parametrize("point", [*WITHOUT_ROWS, *WITH_ROWS])
async def test_the_row_is_there_once_and_the_result_is_shown(world: World, point: str):
    await crash(world, point, ASKED)
    assert rows(world) == ([NOTE] if point in WITH_ROWS else [])
    server = await world.start()
    if turn_of(world, "r1") is None:
        async with client_of(server, AGENT) as client:
            await ask_all(world, server, client, ASKED)
    await settled(world, "r1")
    assert (rows(world), count(world)) == ([NOTE], 1)
    answer = check_answer(world, AGENT, "r1", ASKED["r1"])
    told = [part for part in tool_parts(answer) if part.get("output") == f"did {NOTE}"]
    assert len(told) == 1
    assert len(world.effects(NOTE)) == (2 if point in ("c8", "c13") else 1)


async def test_kill_9_while_it_runs_leaves_none_of_its_writes(world: World):
    world.hold("hold-tool")
    server = await world.start()
    async with client_of(server, AGENT) as client:
        await client.ask("tools|book;say:2", request="r1")
        await until(lambda: world.effects(NOTE), "the tool has written")
        await server.kill()
    assert (rows(world), count(world)) == ([], 0)
    world.release("hold-tool")
    await world.start()
    await settled(world, "r1")
    assert (rows(world), count(world)) == ([NOTE], 1)


async def test_killed_again_and_again_it_still_writes_once(world: World):
    await crash(world, "c13", ASKED)  # three times in a row would park the turn
    for point in ("c8", "c14", "c10"):
        await world.run_into(point)
    await world.start()
    await settled(world, "r1")
    assert (rows(world), count(world)) == ([NOTE], 1)
