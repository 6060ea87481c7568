"""`thinkwell jobs` on a database that a real process serves."""

from __future__ import annotations

import sqlite3
from asyncio import to_thread
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.cli.test_operating import answer, command
from tests.crash.process import World, until
from tests.crash.test_jobs import AGENT, ended, post, row_of, runs
from thinkwell import Agent, App
from thinkwell.cli.main import main

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


class Shop(Agent, name="shop"):
    async def send(self) -> None: ...


def printed(*arguments: str) -> str:
    done = CliRunner().invoke(main, [*arguments])
    assert done.exit_code == 0, done.output
    return done.output


async def test_a_job_says_when_it_is_due_why_it_waits_and_why_it_was_cancelled(tmp_path: Path):
    file = str(tmp_path / "shop.db")
    async with App([Shop], store=f"sqlite:///{file}") as app:
        jobs = app.agent(Shop, "berlin").jobs
        later = await jobs.enqueue("send", delay=500)
        called_off = await jobs.enqueue("send", delay=500)
        await jobs.cancel(called_off.id, "nobody wants it")
        held = await jobs.enqueue("send", delay=500)
        refused = await to_thread(
            CliRunner().invoke, main, ["doctor", "--compact", "--store", file]
        )
        assert f"Stop the server first: `thinkwell stop --store {file}`" in refused.output
        assert "other.db" not in refused.output
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("UPDATE jobs SET held = 'no handler' WHERE id = ?", [held.id])
        database.execute("UPDATE jobs SET due_at = 0 WHERE agent = '/host'")

    listed = await to_thread(printed, "jobs", "list", "--store", file)
    assert "due in 8 min" in listed
    assert "Cancelled: nobody wants it" in listed
    assert "nobody serves this database" in listed
    only_held = await to_thread(printed, "jobs", "list", "--status", "held", "--store", file)
    assert held.id in only_held
    assert later.id not in only_held
    waiting = await to_thread(printed, "jobs", "list", "--status", "waiting", "--store", file)
    assert later.id in waiting
    assert held.id not in waiting
    assert "(in 8 min)" in await to_thread(printed, "jobs", "show", later.id, "--store", file)
    shown = await to_thread(printed, "jobs", "show", called_off.id, "--store", file)
    assert "nobody wants it" in shown
    report = await to_thread(printed, "doctor", "--store", file)
    assert "1 waiting, 0 running, 1 held, 0 failed" in report
