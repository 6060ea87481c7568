"""Budgets that cannot be overspent, under `kill -9` (spec/04 §0 P5): at every moment what is spent
and what is reserved keep to the cap, and no turn is lost.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
from asyncio.subprocess import PIPE, Process
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.crash.process import ROOT

pytestmark = [pytest.mark.crash, pytest.mark.timeout(600)]

PROGRAM = Path(__file__).with_name("budget_program.py")
TURNS = 200
STEP = 150 * 1000
"""What a step really costs, in billionths of a dollar."""
WATCH = """
CREATE TABLE IF NOT EXISTS highest (sum BIGINT);
CREATE TRIGGER IF NOT EXISTS watch_new AFTER INSERT ON spending BEGIN
    INSERT INTO highest VALUES (NEW.nano_usd + NEW.reserved_nano_usd); END;
CREATE TRIGGER IF NOT EXISTS watch_changed AFTER UPDATE ON spending BEGIN
    INSERT INTO highest VALUES (NEW.nano_usd + NEW.reserved_nano_usd); END;
"""
"""Writes down every sum that a transaction has left, committed or not."""


async def start(store: Path, turns: int, cap: str, point: str = "") -> Process:
    env = {**os.environ, "THINKWELL_CRASH_AT": point, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    command = (sys.executable, str(PROGRAM), str(store), str(turns), cap)
    return await asyncio.create_subprocess_exec(*command, stdout=PIPE, env=env)


def rows(store: Path, sql: str) -> list[Any]:
    with closing(sqlite3.connect(store, timeout=60)) as database:
        return database.execute(sql).fetchall()


def settled(store: Path) -> int:
    if not store.exists():
        return 0
    try:
        found = rows(store, "SELECT COUNT(*) FROM turns WHERE settled_at IS NOT NULL")
    except sqlite3.OperationalError:  # its first start has not made the tables yet
        return 0
    return found[0][0]


async def until_settled(store: Path, turns: int, process: Process) -> None:
    while settled(store) < turns and process.returncode is None:
        await asyncio.sleep(0.02)


@pytest.mark.parametrize(
    ("point", "worst_cases", "calls"),
    [
        ("b0", 0, 1),  # nothing is reserved and nobody was called
        ("b1", 1, 1),  # the model may have been called: that call counts as spent
        ("c3", 1, 1),
        ("b2", 1, 1),  # it has answered, and nobody knows how much that was
        ("b3", 0, 1),  # settled together with the end of the call, which is not made again
    ],
)
async def test_what_a_dead_step_reserved_is_spent_unless_its_end_is_stored(
    tmp_path: Path, point: str, worst_cases: int, calls: int
):
    store = tmp_path / "b.db"
    assert await (await start(store, 1, "1", point)).wait() == -9
    reserved = rows(store, "SELECT nano_usd FROM reservations")
    again = await start(store, 1, "1")
    assert await again.wait() == 0
    (status,) = rows(store, "SELECT status FROM turns")[0]
    assert status == "completed"
    spent, left = rows(store, "SELECT nano_usd, reserved_nano_usd FROM spending")[0]
    assert left == 0
    assert len(reserved) == worst_cases
    assert spent == calls * STEP + sum(nano for (nano,) in reserved)
    assert rows(store, "SELECT COUNT(*) FROM reservations") == [(0,)]


async def test_two_hundred_turns_and_kills_never_exceed_the_cap_and_lose_no_turn(tmp_path: Path):
    store, cap = tmp_path / "b.db", 25_000_000
    process = await start(store, TURNS, "0.025")
    await until_settled(store, 1, process)
    with closing(sqlite3.connect(store, timeout=60)) as database:
        database.executescript(WATCH)
    for share in (10, 30, 60, 90, 120):
        await until_settled(store, share, process)
        if process.returncode is None:
            process.kill()
        await process.wait()
        process = await start(store, TURNS, "0.025")
    assert await process.wait() == 0
    ends = dict(rows(store, "SELECT status, COUNT(*) FROM turns GROUP BY status"))
    assert sum(ends.values()) == TURNS
    assert set(ends) <= {"completed", "error"}
    assert ends["completed"] > 0
    assert ends["error"] > 0  # the cap was reached: that is what the test is about
    errors = rows(store, "SELECT DISTINCT substr(error, 1, 29) FROM turns WHERE error IS NOT NULL")
    assert errors == [("The budget per principal of $",)]
    ((spent, reserved),) = rows(store, "SELECT nano_usd, reserved_nano_usd FROM spending")
    assert (reserved, rows(store, "SELECT COUNT(*) FROM reservations")) == (0, [(0,)])
    assert ends["completed"] * STEP <= spent <= cap
    ((highest,),) = rows(store, "SELECT MAX(sum) FROM highest")
    assert highest <= cap
