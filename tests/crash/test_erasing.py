"""The process dies while a person is erased, or while an agent comes in: the next start finishes
the one and takes the other back (DESIGN §5).
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import click
import pytest

from tests.crash.evidence import query
from tests.crash.process import ROOT, World, until
from tests.operate.canary import CANARY, fill, found
from thinkwell.cli.asking import ask

pytestmark = pytest.mark.crash

ANN = f"ann-{CANARY}"
POINTS = ("e0", "e1", "e2", "e3", "e5", "e4", "d0")


def command(store: Path, point: str, *words: str) -> int:
    """A command that dies at a point, and how it ended."""
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    env = {**os.environ, "PYTHONPATH": paths, "THINKWELL_CRASH_AT": point}
    line = [sys.executable, "-m", "thinkwell.cli", *words, "--store", str(store)]
    return subprocess.run(line, env=env, capture_output=True, check=False).returncode


def erasures(world: World) -> list[str]:
    rows = query(world, "SELECT status FROM jobs WHERE name = 'erase_principal'")
    return [row["status"] for row in rows]


@pytest.mark.parametrize("point", POINTS)
async def test_a_command_that_dies_is_finished_by_the_next_server(world: World, point: str):
    await fill(world.store, rounds=1)
    died = await asyncio.to_thread(command, world.store, point, "principals", "erase", ANN, "--yes")
    assert died == -signal.SIGKILL
    server = await world.start()
    await until(lambda: erasures(world) == ["done"], "it is erased")
    assert found(world.store, CANARY) == set()
    await server.stop()
    assert found(world.store, CANARY) == set()
    kept = query(world, "SELECT id FROM agents WHERE class = 'desk' ORDER BY id")
    assert [row["id"] for row in kept] == ["desk/bob", "desk/team"]


@pytest.mark.parametrize("point", ["e0", "e1", "e3"])
async def test_a_server_that_dies_goes_on_at_its_next_start(world: World, point: str):
    await fill(world.store, rounds=1)
    server = await world.start(point)
    with pytest.raises(click.ClickException):
        await asyncio.to_thread(ask, world.store, {"do": "erase", "principal": ANN})
    await server.crashed()
    assert erasures(world) != ["done"]
    # At e3 the rows are gone. Whether a fragment is left in the file is up to its pages.
    assert point == "e3" or found(world.store, CANARY)
    server = await world.start()
    await until(lambda: erasures(world) == ["done"], "it is erased")
    assert found(world.store, CANARY) == set()
    await server.stop()


async def test_a_command_that_dies_is_finished_by_the_next_one(world: World):
    await fill(world.store, rounds=1)
    words = ("principals", "erase", ANN, "--yes")
    assert await asyncio.to_thread(command, world.store, "e1", *words) == -signal.SIGKILL
    assert await asyncio.to_thread(command, world.store, "", *words) == 0
    assert found(world.store, CANARY) == set()


@pytest.mark.parametrize("point", ["i0", "i1"])
async def test_what_a_dead_import_left_goes_at_the_next_start(world: World, point: str):
    source = world.folder / "source.db"
    await fill(source, rounds=1)
    file = world.folder / "team.jsonl"
    line = [sys.executable, "-m", "thinkwell.cli", "agents", "export", "desk/team"]
    done = subprocess.run(
        [*line, "--store", str(source)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        check=True,
    )
    file.write_bytes(done.stdout)
    words = ("agents", "import", str(file))
    assert await asyncio.to_thread(command, world.store, point, *words) == -signal.SIGKILL
    server = await world.start()
    await until(lambda: not query(world, "SELECT 1 FROM agents"), "nothing is left")
    await server.stop()
    assert await asyncio.to_thread(command, world.store, "", *words) == 0
    with closing(sqlite3.connect(world.store)) as database:
        (rows,) = database.execute("SELECT COUNT(*) FROM messages").fetchone()
    assert rows == json.loads(file.read_text().splitlines()[-1])["rows"]["messages"]
