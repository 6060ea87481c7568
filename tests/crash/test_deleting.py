"""The process dies while an agent is deleted: it goes on at the next start (DESIGN §5)."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import urllib.request
from contextlib import closing

import click
import pytest

from tests.crash.evidence import query
from tests.crash.process import Server, World, until
from thinkwell.cli.asking import ask
from thinkwell.store.deleting import PIECE

pytestmark = pytest.mark.crash

GONE, OTHER = "worker/one", "worker/two"


async def enqueue(server: Server, agent: str) -> None:
    def send() -> None:
        body = json.dumps({"job": "simple"}).encode()
        url = f"{server.url}/agents/{agent}/jobs"
        urllib.request.urlopen(urllib.request.Request(url, body, method="POST")).close()

    await asyncio.to_thread(send)


def count(world: World, agent: str) -> dict[str, int]:
    """How many rows there are of an agent, by table."""
    tables = {"agents": "id", "jobs": "agent", "storage": "agent"}
    sql = "SELECT COUNT(*) AS n FROM {} WHERE {} = ?"
    return {t: query(world, sql.format(t, key), agent)[0]["n"] for t, key in tables.items()}


@pytest.mark.parametrize(("point", "left"), [("d0", 3 * PIECE + 1), ("d1", 2 * PIECE + 1)])
async def test_what_is_left_of_a_deleted_agent_goes_at_the_next_start(
    world: World, point: str, left: int
):
    server = await world.start()
    for agent in (GONE, OTHER):
        await enqueue(server, agent)
    await server.stop()
    with closing(sqlite3.connect(world.store)) as file:
        row = "INSERT INTO storage (agent, owner, key, value) VALUES (?, 'agent', ?, '1')"
        file.executemany(row, [(GONE, f"k{n}") for n in range(3 * PIECE)])
        file.commit()
    before = count(world, OTHER)

    server = await world.start(point)
    with pytest.raises(click.ClickException):
        await asyncio.to_thread(ask, world.store, {"do": "delete", "agent": GONE})
    await server.crashed()
    found = count(world, GONE)
    assert (found["agents"], found["storage"] + found["jobs"]) == (1, left)

    server = await world.start()
    await enqueue(server, GONE)  # whoever asks at once gets a new one
    assert count(world, GONE) == {"agents": 1, "jobs": 1, "storage": 0}
    await until(lambda: query(world, "SELECT 1 FROM jobs WHERE status = 'done'"), "it works")
    assert count(world, OTHER) == before
