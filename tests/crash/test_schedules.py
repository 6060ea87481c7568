"""The process dies at every write of a schedule, a task or the queue (spec/04 §11, §12, §23.59,
§23.63, §23.64): each task is armed once, each run comes at least once, no prompt twice.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
import urllib.error
import urllib.request
from contextlib import closing
from typing import Any

import pytest

from tests.crash.evidence import query
from tests.crash.process import Server, World, until

pytestmark = pytest.mark.crash

AGENT = "clockwork/one"
TASKS = "SELECT * FROM jobs WHERE kind = 'task' ORDER BY idempotency_key"
DAY = 24 * 3600


async def post(server: Server, call: str, value: Any = None) -> Any:
    """What the agent answers; None if the process died first."""

    def send() -> Any:
        asked = json.dumps({"call": call, "with": value}).encode()
        request = urllib.request.Request(f"{server.url}/agents/{AGENT}/x", asked, method="POST")
        try:
            with urllib.request.urlopen(request) as reply:
                return json.loads(reply.read())
        except (urllib.error.URLError, ConnectionError, OSError):
            return None

    return await asyncio.to_thread(send)


def lines(world: World, what: str | None = None) -> list[tuple[str, int]]:
    left = [(line["what"], line["attempt"]) for line in world.lines("clock")]
    return [line for line in left if what in (None, line[0])]


def turns(world: World) -> list[dict[str, Any]]:
    return query(world, "SELECT * FROM turns WHERE agent = ?", AGENT)


async def armed_for_yesterday(world: World, task: str) -> float:
    """Nobody was there when the task was due; the time it was meant for."""
    server = await world.start()
    await post(server, "wake")
    await server.stop()
    meant = float(int(time.time()) - DAY)
    with closing(sqlite3.connect(world.store)) as link, link:
        link.execute(
            "UPDATE jobs SET due_at = ?, scheduled_for = ? WHERE idempotency_key = ?",
            (meant, meant, f"schedules.task:{task}"),
        )
    return meant


def task_row(world: World, task: str) -> dict[str, Any]:
    (row,) = [row for row in query(world, TASKS) if row["idempotency_key"].endswith(f":{task}")]
    return row


@pytest.mark.parametrize(("point", "stored"), [("s0", 0), ("s1", 2)])
async def test_a_reconcile_that_is_cut_off_arms_each_task_once(
    world: World, point: str, stored: int
):
    """M-080"""
    server = await world.start(point)
    await post(server, "wake")
    await server.crashed()
    assert len(query(world, TASKS)) == stored
    again = await world.start()
    assert await post(again, "wake") is not None
    rows = query(world, TASKS)
    assert [row["status"] for row in rows] == ["waiting", "waiting"]
    assert all(row["due_at"] > time.time() for row in rows)


@pytest.mark.parametrize("point", ["j2", "j4", "s2"])
async def test_a_prompt_is_one_turn_wherever_the_process_dies(world: World, point: str):
    """spec/04 §23.59: one submission, and one next occurrence."""
    meant = await armed_for_yesterday(world, "digest")
    server = await world.start(point)
    await server.crashed()
    await world.start()

    def over() -> bool:
        row = task_row(world, "digest")
        return row["status"] == "waiting" and row["outcome"] == "done"

    await until(over, "the run is over")
    await until(lambda: [t["status"] for t in turns(world)] == ["completed"], "it is answered")
    row = task_row(world, "digest")
    assert row["scheduled_for"] == row["due_at"] > time.time()
    (turn,) = turns(world)
    said = json.loads(turn["metadata"])["scheduled_for"]
    assert said == time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(meant))


@pytest.mark.parametrize(("point", "calls"), [("j2", [2]), ("j4", [1, 2]), ("s2", [1])])
async def test_a_handler_is_called_again_only_if_its_end_was_not_stored(
    world: World, point: str, calls: list[int]
):
    """M-082: the same key is delivered again."""
    await armed_for_yesterday(world, "sweep")
    server = await world.start(point)
    await server.crashed()
    await world.start()
    await until(lambda: task_row(world, "sweep")["outcome"] == "done", "the run is over")
    assert [attempt for _, attempt in lines(world, "sweep")] == calls
    assert len({line["key"] for line in world.lines("clock")}) == 1


async def test_a_run_that_was_killed_begins_again_at_once(world: World):
    """spec/04 §23.63: nothing waits for a time-out of a process that is gone."""
    world.hold("hold-job")
    server = await world.start()
    await post(server, "every", 0.05)
    await until(lambda: lines(world, "lasting"), "it runs")
    await server.kill()
    await world.start()
    await until(lambda: len(lines(world, "lasting")) == 2, "it runs again")
    assert lines(world, "lasting") == [("lasting", 1), ("lasting", 2)]
    world.release("hold-job")
    await until(lambda: len(lines(world, "lasting")) >= 4, "it goes on")
    assert len(query(world, "SELECT * FROM jobs WHERE kind = 'interval'")) == 1


async def test_s3_a_schedule_that_has_ended_itself_does_not_come_again(world: World):
    server = await world.start("s3")
    await post(server, "poll", 0.05)
    await server.crashed()
    await world.start()
    sql = "SELECT * FROM jobs WHERE kind = 'interval' AND finished_at IS NOT NULL"
    await until(lambda: query(world, sql), "it ends")
    assert [attempt for _, attempt in lines(world, "poll")] == [1, 2]


async def test_a_queue_is_drained_in_order_after_a_kill(world: World):
    """spec/04 §23.64: without another call."""
    notes = [f"n{n}" for n in range(6)]
    world.hold("hold-job")
    server = await world.start()
    await post(server, "queue", notes)
    await until(lambda: lines(world), "the first one runs")
    await server.kill()
    world.release("hold-job")
    await world.start()
    sql = "SELECT * FROM jobs WHERE kind = 'queue' AND status = 'done'"
    await until(lambda: len(query(world, sql)) == len(notes), "all are done")
    assert [what for what, _ in lines(world)] == ["n0", *notes]


@pytest.mark.parametrize("point", ["j5", "j5:2", "j4:2"])
async def test_the_next_item_begins_wherever_the_process_dies(world: World, point: str):
    notes = [f"n{n}" for n in range(4)]
    server = await world.start(point)
    await post(server, "queue", notes)
    await server.crashed()
    stored = query(world, "SELECT COUNT(*) AS n FROM jobs WHERE kind = 'queue'")[0]["n"]
    await world.start()
    sql = "SELECT * FROM jobs WHERE kind = 'queue' AND status = 'done'"
    await until(lambda: len(query(world, sql)) == stored, "all are done")
    assert list(dict.fromkeys(what for what, _ in lines(world))) == notes[:stored]


async def test_s4_what_was_withdrawn_does_not_run(world: World):
    world.hold("hold-job")
    server = await world.start("s4")
    await post(server, "queue", ["n0", "n1", "n2"])
    await until(lambda: lines(world), "the first one runs")
    await post(server, "clear")
    await server.crashed()
    world.release("hold-job")
    again = await world.start()
    await post(again, "queue", ["n3"])
    sql = "SELECT * FROM jobs WHERE kind = 'queue' AND status = 'done'"
    await until(lambda: len(query(world, sql)) == 2, "both are done")
    assert [what for what, _ in lines(world)] == ["n0", "n0", "n3"]
