"""`thinkwell jobs` on a database that a real process serves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.cli.test_operating import answer, command
from tests.crash.process import World, until
from tests.crash.test_jobs import AGENT, ended, post, row_of, runs

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    world = World(tmp_path)
    yield world
    await world.end()


async def test_jobs_are_listed_shown_cancelled_and_tried_again(world: World):
    world.hold("hold-job")
    server = await world.start()
    await post(server, job="simple", payload={"n": 1})
    await ended(world, "simple")
    await post(server, job="lasting")
    await until(lambda: runs(world, "lasting"), "it runs")

    listed = answer(world, "jobs", "list", "--agent", AGENT)
    assert [(job["name"], job["status"]) for job in listed] == [
        ("lasting", "running"),
        ("simple", "done"),
    ]
    lasting, simple = (job["id"] for job in listed)
    shown = answer(world, "jobs", "show", simple)
    assert (shown["payload"], shown["attempt"], shown["agentId"]) == ({"n": 1}, 1, AGENT)
    lines = command(world, "jobs", "list", "--status", "running").out
    assert f"{AGENT} lasting" in lines
    assert "simple" not in lines
    assert "1 of 5" in command(world, "jobs", "show", lasting).out

    refused = command(world, "jobs", "retry", lasting)
    assert (refused.code, "is running" in refused.err) == (1, True)
    assert command(world, "jobs", "cancel", lasting).code == 0
    assert (await ended(world, "lasting"))["status"] == "cancelled"
    assert command(world, "jobs", "cancel", lasting).code == 1
    world.release("hold-job")
    assert command(world, "jobs", "retry", lasting).code == 0
    await until(lambda: (row_of(world, "lasting") or {}).get("status") == "done", "it is done")


async def test_what_is_not_there_is_said(world: World):
    await world.start()
    assert "There is no job nobody" in command(world, "jobs", "show", "nobody").err
    assert "There are no such jobs" in command(world, "jobs", "list", "--status", "failed").out
    upkeep = answer(world, "jobs", "list")
    assert [(job["agent"], job["name"]) for job in upkeep] == [("/host", "drop_old_rows")]
