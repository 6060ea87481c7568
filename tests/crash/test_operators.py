"""`thinkwell stop` and `thinkwell agents pause|resume` on real processes and on files at rest
(spec/04 §6 C16, §23.19).
"""

from __future__ import annotations

import asyncio
import os
import sys

import pytest

from tests.crash.client import client_of
from tests.crash.evidence import accepted, query, settled, turn_of
from tests.crash.process import ROOT, World

pytestmark = pytest.mark.crash

AGENT = "talker/one"


async def thinkwell(world: World, *words: str) -> tuple[int, str]:
    """Run a command; its status and what it printed."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "thinkwell.cli", *words, "--store", str(world.store)),
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    printed, _ = await process.communicate()
    return process.returncode or 0, printed.decode()


@pytest.mark.parametrize("which", [["--turn", "r1"], ["--agent", AGENT], ["--all"]])
async def test_a_stop_survives_a_process_that_dies_before_it_is_honoured(
    world: World, which: list[str]
):
    world.hold("a")
    server = await world.start("c16")
    async with client_of(server, AGENT) as client:
        await client.ask("slow|say:2,hold:a,say:2", request="r1")
        await client.chunks("r1", 3)
        status, _ = await thinkwell(world, "stop", *which)
        assert status != 0  # the server died before it could answer
        await server.crashed()
    assert (turn_of(world, "r1") or {})["status"] == "running"
    calls = world.model_calls("slow")
    world.release("a")
    await world.start()
    assert (await settled(world, "r1"))["status"] == "aborted"
    assert world.model_calls("slow") == calls


async def test_turns_of_a_file_at_rest_can_be_stopped_and_its_agents_paused(world: World):
    world.hold("a")
    server = await world.start()
    async with client_of(server, AGENT) as client:
        await client.ask("one|say:2,hold:a,say:2", request="r1")
        await client.chunks("r1", 3)
        await client.ask("two|say:2", request="r2")
        await accepted(world, "r2")
        await server.kill()
    world.release("a")
    assert await thinkwell(world, "stop", "--turn", "r1") == (
        0,
        "1 turn stops when the next server starts.\n",
    )
    status, _ = await thinkwell(world, "agents", "pause", AGENT, "--reason", "maintenance")
    assert status == 0
    _, listed = await thinkwell(world, "agents", "list")
    assert "paused" in listed
    server = await world.start()
    async with client_of(server, AGENT) as client:
        state = await client.saw(lambda f: f["type"] == "thinkwell_agent_paused", "the state")
        assert state["reason"] == "maintenance"
        assert (await settled(world, "r1"))["status"] == "aborted"
        assert (turn_of(world, "r2") or {})["status"] == "accepted"
        assert (await thinkwell(world, "agents", "resume", AGENT))[0] == 0
        assert (await settled(world, "r2"))["status"] == "completed"
    assert (await thinkwell(world, "stop", "--all"))[0] == 1
    assert (await thinkwell(world, "agents", "resume", AGENT))[0] == 1


async def test_a_pause_is_kept_if_the_process_dies_before_it_is_honoured(world: World):
    server = await world.start("c18")
    async with client_of(server, AGENT) as client:
        await client.ask("one|say:2", request="r1")
        await client.done("r1")
        await thinkwell(world, "agents", "pause", AGENT)
        await server.crashed()
    assert query(world, "SELECT paused_at FROM agents WHERE id = ?", AGENT)[0]["paused_at"]
    server = await world.start()
    async with client_of(server, AGENT) as client:
        await client.ask("two|say:2", request="r2")
        await client.saw(lambda f: f["type"] == "thinkwell_agent_paused", "the state")
        assert (await thinkwell(world, "agents", "resume", AGENT))[0] == 0
        await client.done("r2")
