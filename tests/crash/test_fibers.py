"""The process dies while a fiber runs: it goes on from its stash, or the author is asked
(spec/04 §23.41-42, DESIGN §1).
"""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any
from urllib.request import Request, urlopen

import pytest

from tests.crash.evidence import query
from tests.crash.process import Server, World, until

pytestmark = pytest.mark.crash

AGENT = "weaver/one"


async def start(server: Server, kind: str) -> None:
    body = json.dumps({kind: True}).encode()
    headers = {"content-type": "application/json"}
    request = Request(f"{server.url}/agents/{AGENT}/start", body, headers)

    def post() -> None:
        with suppress(OSError):  # the process may die meanwhile
            urlopen(request, timeout=30).read()

    await asyncio.to_thread(post)


def ended(world: World) -> dict[str, Any] | None:
    rows = query(world, "SELECT status, stash FROM jobs WHERE name = 'fibers.run'")
    return rows[0] if rows and rows[0]["status"] == "done" else None


@pytest.mark.parametrize("point", ["j1:2", "j2", "j3", "j3:2", "j3:4", "j4", "j5"])
async def test_a_marked_method_goes_on_from_its_stash(world: World, point: str):
    server = await world.start(point)
    await start(server, "method")
    await server.crashed()
    await world.start()
    row = await until(lambda: ended(world), "the fiber ends")
    assert json.loads(row["stash"])["end"]["status"] == "completed"
    steps = [line["step"] for line in world.lines("fibers")]
    assert sorted(steps) == [1, 2, 3]
    assert world.lines("recovered") == []


@pytest.mark.parametrize(("point", "snapshot"), [("j2", None), ("j3", 1), ("j3:2", 2)])
async def test_of_a_function_that_is_gone_the_author_is_asked(
    world: World, point: str, snapshot: int | None
):
    server = await world.start(point)
    await start(server, "closure")
    await server.crashed()
    await world.start()
    row = await until(lambda: ended(world), "the fiber ends")
    assert world.lines("recovered") == [{"name": "loose", "snapshot": snapshot}]
    assert json.loads(row["stash"])["end"] == {"status": "aborted", "error": f"cut at {snapshot}"}
