"""Planned stops of real processes, with a real client (spec/04 §1.4, §5.4, §23.39, P1-P4)."""

from __future__ import annotations

import asyncio
import json
import signal

import aiohttp
import pytest

from tests.crash.client import client_of
from tests.crash.evidence import check_answer, settled, stored_messages, turn_of
from tests.crash.process import DEADLINE, Server, World, until

pytestmark = pytest.mark.crash

AGENT = "talker/one"


async def ready(server: Server) -> int | None:
    """What `/readyz` says; None if nobody listens any more."""
    try:
        async with aiohttp.ClientSession() as web, web.get(f"{server.url}/readyz") as response:
            return response.status
    except aiohttp.ClientError:
        return None


@pytest.mark.timeout(300)  # eleven starts of a real server
async def test_ten_deploys_during_one_turn_lose_nothing_double_nothing_and_use_no_attempt(
    world: World,
):
    question = "long|say:4," + ",".join(f"hold:h{n},say:4" for n in range(10))
    for number in range(10):
        world.hold(f"h{number}")
    for number in range(10):
        server = await world.start()
        async with client_of(server, AGENT, joins=True) as client:
            if number == 0:
                await client.ask(question, request="r1")
            await until(lambda n=number: world.model_calls("long") == n + 1, "the model is asked")
            server.process.send_signal(signal.SIGTERM)
            server.process.send_signal(signal.SIGTERM)  # do not wait for the turn
            await server.ended()
        world.release(f"h{number}")
        row = turn_of(world, "r1") or {}
        incident = json.loads(row["incident"])
        assert row["status"] == "running"
        assert not any(incident.get(name) for name in ("barren", "deaths", "since", "work"))
    await world.start()
    assert (await settled(world, "r1"))["status"] == "completed"
    check_answer(world, AGENT, "r1", question)
    assert [m["role"] for m in stored_messages(world, AGENT)] == ["user", "assistant"]


async def test_sigterm_readiness_first_then_the_turn_ends_before_its_clients_then_1012(
    world: World,
):
    world.hold("a")
    server = await world.start()
    assert await ready(server) == 200
    async with client_of(server, AGENT) as client:
        await client.ask("slow|say:2,hold:a,say:2", request="r1")
        await client.chunks("r1", 3)
        server.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(DEADLINE):
            while await ready(server) != 503:
                await asyncio.sleep(0.01)
        assert not client.gone
        await client.ask("late|say:1", request="r2")
        await until(lambda: turn_of(world, "r2"), "what is asked meanwhile is accepted")
        world.release("a")
        assert (await client.done("r1"))["outcome"] == "completed"
        assert await server.ended() == 0
        await until(lambda: client.gone, "the socket is closed")
        assert client.close_code == 1012
    assert (turn_of(world, "r2") or {})["status"] == "accepted"
    await world.start()
    assert (await settled(world, "r2"))["status"] == "completed"


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
async def test_a_second_signal_waits_for_no_turn_and_the_turn_goes_on_after_the_restart(
    world: World, sent: signal.Signals
):
    world.hold("a")
    server = await world.start()
    async with client_of(server, AGENT) as client:
        await client.ask("slow|say:2,hold:a,say:2", request="r1")
        await client.chunks("r1", 3)
        server.process.send_signal(sent)
        async with asyncio.timeout(DEADLINE):
            while await ready(server) == 200:
                await asyncio.sleep(0.01)
        server.process.send_signal(sent)
        assert await server.ended() == 0
    row = turn_of(world, "r1") or {}
    assert row["status"] == "running"
    world.release("a")
    await world.start()
    row = await settled(world, "r1")
    assert (row["status"], row["attempt"]) == ("completed", 2)
    assert "barren" not in json.loads(row["incident"])
