"""`kill -9` loses no acknowledged commit and leaves no half transaction (spec/04 §1.2)."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from thinkwell.store.sqlite import SqliteStore

WRITE_UNTIL_KILLED = """
import asyncio, sys
from thinkwell.store.sqlite import SqliteStore

async def main():
    store = SqliteStore(sys.argv[1], durability=sys.argv[2])
    await store.open()
    for number in range(1_000_000):
        async with store.transaction() as tx:
            for half in ("left", "right"):
                row = {"id": f"{number}-{half}", "class": "c", "name": "n", "now": 1.0}
                await tx.execute("claim_agent", row)
        print(number, flush=True)

asyncio.run(main())
"""


@pytest.mark.crash
@pytest.mark.parametrize("durability", ["process", "power"])
@pytest.mark.parametrize("acknowledged", [1, 50, 200])
async def test_every_acknowledged_commit_survives_kill_9(tmp_path, durability, acknowledged):
    path = tmp_path / "a.db"
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITE_UNTIL_KILLED, str(path), durability],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert writer.stdout is not None
    for _ in range(acknowledged):
        writer.stdout.readline()
    writer.send_signal(signal.SIGKILL)
    told = acknowledged + len(writer.stdout.readlines())
    writer.stdout.close()
    writer.wait()

    ids = await agent_ids(path)
    assert {f"{n}-{half}" for n in range(told) for half in ("left", "right")} <= ids
    assert len(ids) in (2 * told, 2 * told + 2)


async def agent_ids(path):
    store = SqliteStore(path)
    await store.open()
    rows = await store.fetch_all("all_agents", {})
    await store.close()
    return {row["id"] for row in rows}
