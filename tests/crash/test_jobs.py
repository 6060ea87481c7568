"""The process dies at every write of a job: none is lost, each runs at least once, and what has
ended does not run again (DESIGN §1).
"""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from tests.crash.evidence import query
from tests.crash.process import Server, World, until

pytestmark = pytest.mark.crash

AGENT = "worker/one"


async def post(server: Server, **asked: Any) -> dict[str, Any] | None:
    """What the agent answers; None if the process died first."""

    def send() -> dict[str, Any] | None:
        url = f"{server.url}/agents/{AGENT}/jobs"
        request = urllib.request.Request(url, json.dumps(asked).encode(), method="POST")
        try:
            with urllib.request.urlopen(request) as reply:
                return json.loads(reply.read())
        except (urllib.error.URLError, ConnectionError, OSError):
            return None

    return await asyncio.to_thread(send)


def row_of(world: World, name: str) -> dict[str, Any] | None:
    """The row of the job with that name."""
    rows = query(world, "SELECT * FROM jobs WHERE name = ?", name)
    assert len(rows) <= 1
    return next(iter(rows), None)


async def ended(world: World, name: str) -> dict[str, Any]:
    """Wait until the job has ended; its row."""
    sql = "SELECT * FROM jobs WHERE name = ? AND finished_at IS NOT NULL"
    return (await until(lambda: query(world, sql, name), f"{name} ends"))[0]


def runs(world: World, name: str) -> list[tuple[int, int]]:
    """(attempt, step) of each line that a handler has left."""
    return [(line["attempt"], line["step"]) for line in world.lines("jobs") if line["job"] == name]


async def crash(world: World, point: str, name: str) -> None:
    """Enqueue a job in a process that is killed at `point`."""
    server = await world.start(point)
    await post(server, job=name)
    await server.crashed()


async def test_j0_a_job_that_was_not_stored_can_be_enqueued_again(world: World):
    await crash(world, "j0:2", "simple")  # the first one is the host's own
    assert row_of(world, "simple") is None
    server = await world.start()
    assert await post(server, job="simple") is not None
    assert (await ended(world, "simple"))["status"] == "done"
    assert runs(world, "simple") == [(1, 0)]


@pytest.mark.parametrize(
    ("point", "attempts"),
    [("j1:2", [(1, 0)]), ("j2", [(2, 0)]), ("j4", [(1, 0), (2, 0)]), ("j5", [(1, 0)])],
)
async def test_a_stored_job_runs_at_least_once_and_ends_once(
    world: World, point: str, attempts: list[tuple[int, int]]
):
    await crash(world, point, "simple")
    server = await world.start()
    assert (await ended(world, "simple"))["status"] == "done"
    assert runs(world, "simple") == attempts
    await server.stop()
    again = await world.start()
    assert await post(again, job="stepwise") is not None  # begun after whatever was left
    await ended(world, "stepwise")
    assert runs(world, "simple") == attempts


@pytest.mark.parametrize("point", ["j3", "j3:2", "j3:3"])
async def test_j3_the_next_attempt_begins_where_the_stash_ends(world: World, point: str):
    await crash(world, point, "stepwise")
    await world.start()
    row = await ended(world, "stepwise")
    assert (row["status"], row["attempt"], row["stash"]) == ("done", 2, "3")
    assert [step for _, step in runs(world, "stepwise")] == [1, 2, 3]


async def test_j6_a_job_that_waits_for_its_next_attempt_gets_it(world: World):
    await crash(world, "j6", "failing")
    await world.start()
    row = await ended(world, "failing")
    assert (row["status"], row["attempt"]) == ("done", 2)
    assert runs(world, "failing") == [(1, 0), (2, 0)]


@pytest.mark.parametrize("point", ["j7", "j4"])
async def test_a_running_job_whose_cancel_is_stored_does_not_run_again(world: World, point: str):
    world.hold("hold-job")
    server = await world.start(point)
    await post(server, job="lasting")
    await until(lambda: runs(world, "lasting"), "it runs")
    await post(server, cancel="lasting")
    await server.crashed()
    await world.start()
    assert (await ended(world, "lasting"))["status"] == "cancelled"
    assert runs(world, "lasting") == [(1, 0)]


async def test_a_planned_stop_gives_the_attempt_back(world: World):
    world.hold("hold-job")
    server = await world.start()
    await post(server, job="lasting")
    await until(lambda: runs(world, "lasting"), "it runs")
    server.process.terminate()
    server.process.terminate()  # twice: at once
    await server.ended()
    world.release("hold-job")
    await world.start()
    row = await ended(world, "lasting")
    assert (row["status"], row["attempt"], row["deaths"]) == ("done", 1, 0)


async def test_a_handler_that_kills_every_process_is_given_up(world: World):
    await crash(world, "", "deadly")
    for _ in range(2):
        await world.run_into("")
    server = await world.start()
    row = await ended(world, "deadly")
    assert (row["status"], row["deaths"], row["attempt"]) == ("failed", 3, 3)
    assert row["error"] == "The process died 3 times while it ran."
    await post(server, job="simple")
    assert (await ended(world, "simple"))["status"] == "done"


async def test_jobs_that_ran_beside_a_deadly_one_are_not_counted_guilty(world: World):
    world.hold("hold-job")
    server = await world.start()
    await post(server, job="lasting")
    await until(lambda: runs(world, "lasting"), "it runs")
    await post(server, job="deadly")
    await server.crashed()
    world.release("hold-job")
    for _ in range(2):
        await world.run_into("")
    await world.start()
    assert (await ended(world, "lasting"))["status"] == "done"
    assert (await ended(world, "deadly"))["status"] == "failed"
