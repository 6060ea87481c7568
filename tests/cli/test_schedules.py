"""`thinkwell schedules` on a database that a real process serves, and on one that nobody does."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.cli.test_operating import answer, command
from tests.crash.process import World, until
from tests.crash.test_schedules import AGENT, lines, post

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    world = World(tmp_path)
    yield world
    await world.end()


async def test_what_is_planned_is_listed_beside_the_server_and_after_its_end(world: World):
    server = await world.start()
    assert "Nothing is scheduled" in command(world, "schedules", "list").out
    await post(server, "wake")
    await post(server, "every", 3600)

    async def listed_well() -> None:
        rows = {row["task"]: row for row in answer(world, "schedules", "list")}
        assert sorted(rows) == ["digest", "lasting", "sweep"]
        assert {row["agent"] for row in rows.values()} == {AGENT}
        assert (rows["sweep"]["kind"], rows["lasting"]["kind"]) == ("task", "interval")
        assert rows["sweep"]["schedule"] == "every day at 10:00 in UTC"
        assert rows["lasting"]["schedule"] == "every 3600 s"
        assert all(row["nextRun"] > time.time() for row in rows.values())
        assert all(row["outcome"] is None for row in rows.values())
        shown = command(world, "schedules", "list", columns="160").out
        assert f"{AGENT} sweep, every day at 10:00 in UTC" in shown
        assert len(answer(world, "schedules", "list", "--limit", "1")) == 1
        assert answer(world, "schedules", "list", "--agent", "clockwork/two") == []

    await listed_well()
    await server.stop()
    await listed_well()


async def test_a_task_runs_now_and_keeps_its_own_time(world: World):
    server = await world.start()
    await post(server, "wake")
    planned = {row["task"]: row["nextRun"] for row in answer(world, "schedules", "list")}
    for count in (1, 2):
        done = command(world, "schedules", "run", "sweep")
        assert (done.code, f"{AGENT} runs sweep now" in done.out) == (0, True), done.err
        await until(lambda count=count: len(lines(world, "sweep")) == count, "it has run")
    await until(lambda: len(answer(world, "schedules", "list")) == 2, "the runs have ended")
    after = {row["task"]: row["nextRun"] for row in answer(world, "schedules", "list")}
    assert after == planned


async def test_a_task_whose_run_lasts_can_be_run_again_by_its_name(world: World):
    world.hold("hold-job")
    server = await world.start()
    id = (await post(server, "every", 3600))["answer"]
    for count, name in enumerate(("lasting", "lasting", id), start=1):
        done = command(world, "schedules", "run", name)
        assert done.code == 0, done.err
        await until(lambda count=count: len(lines(world, "lasting")) == count, "it runs")


async def test_what_cannot_be_run_is_said(world: World):
    server = await world.start()
    refused = command(world, "schedules", "run", "sweep")
    assert (refused.code, "There are: none" in refused.err) == (1, True)
    await post(server, "wake")
    refused = command(world, "schedules", "run", "sweeep")
    assert refused.code == 1
    assert "Nothing is scheduled as 'sweeep'. There are: digest, sweep." in refused.err
    await post(server, "every", 60)
    await post(server, "every", 61)
    several = command(world, "schedules", "run", "lasting")
    assert (several.code, "several times. Give the id" in several.err) == (1, True)
    await server.stop()
    unserved = command(world, "schedules", "run", "sweep")
    assert (unserved.code, lines(world, "sweep")) == (1, [])
    assert "No server has" in unserved.err
