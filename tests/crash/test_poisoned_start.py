"""An agent whose start kills the process: it stays asleep, and everything else goes on (DESIGN
§8.16).
"""

from __future__ import annotations

import urllib.error
import urllib.request

import pytest

from tests.cli.test_operating import answer, command
from tests.crash.client import client_of
from tests.crash.evidence import check_answer, query, settled
from tests.crash.process import Server, World, until

pytestmark = pytest.mark.crash

AGENT, BESIDE = "doomed/one", "talker/beside"
PARKED = "SELECT 1 FROM starts WHERE boot IS NULL AND deaths >= 3"
QUESTION = "doomed|say:6,hold:d,say:3,pure;say:4"
OTHER = "beside|say:6,hold:b,say:3,pure;say:4"


async def ask_both(world: World) -> None:
    """Two agents with unfinished work, and a process that is killed."""
    world.hold("d")
    world.hold("b")
    server = await world.start()
    async with client_of(server, AGENT) as one, client_of(server, BESIDE) as other:
        await one.ask(QUESTION, request="doomed")
        await other.ask(OTHER, request="beside")
        await one.chunks("doomed", 4)
        await other.chunks("beside", 4)
        await server.kill()
    world.release("b")
    world.release("d")


async def start_until_it_lives(world: World, most: int) -> tuple[Server, int]:
    """Start the process again whenever it dies; the one that lives, and how many there were."""
    for starts in range(1, most + 1):
        server = Server(world, "")
        world.servers.append(server)
        await server.spawn()
        await until(lambda s=server: not s.alive or query(world, PARKED), "a death or an end of it")
        if query(world, PARKED):
            await server.kill()
            return await world.start(), starts
        await server.ended()
    raise AssertionError(f"the process died {most} times")


def look_at(server: Server) -> tuple[int, str]:
    """What a client of the agent hears."""
    try:
        with urllib.request.urlopen(f"{server.url}/agents/{AGENT}/get-messages") as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as refusal:
        return refusal.code, refusal.read().decode()


@pytest.mark.timeout(120)
@pytest.mark.parametrize("place", ["on_start", "configure_session"])
async def test_an_agent_whose_start_kills_the_process_stays_asleep_until_it_is_retried(
    world: World, place: str
):
    await ask_both(world)
    world.hold(f"always-die-in-{place}")
    server, starts = await start_until_it_lives(world, 8)
    assert starts <= 5
    await settled(world, "beside")
    check_answer(world, BESIDE, "beside", OTHER)

    (listed,) = answer(world, "turns", "list", "--parked")
    assert (listed["id"], listed["agent"], listed["stopReason"]) == ("doomed", AGENT, "parked")
    assert "3 times" in listed["error"]
    assert "start" in listed["error"]
    assert "3 times" in command(world, "turns", "show", "doomed").out
    assert {a["id"]: a["parked"] for a in answer(world, "agents", "list")} == {AGENT: 1, BESIDE: 0}
    assert answer(world, "doctor")["parked"] == 1
    code, text = look_at(server)
    assert (code, "turns retry" in text) == (503, True)
    assert server.alive

    world.release(f"always-die-in-{place}")
    assert command(world, "turns", "retry", "doomed").code == 0
    await settled(world, "doomed")
    check_answer(world, AGENT, "doomed", QUESTION)
    assert answer(world, "turns", "list", "--parked") == []
    assert query(world, "SELECT * FROM starts") == []


@pytest.mark.timeout(120)
async def test_a_planned_restart_tries_it_once_more(world: World):
    await ask_both(world)
    world.hold("always-die-in-on_start")
    server, _ = await start_until_it_lives(world, 8)
    await server.stop()
    await world.run_into("")  # still deadly: it is asleep again at once
    server = await world.start()
    assert look_at(server)[0] == 503
    await server.stop()
    world.release("always-die-in-on_start")
    await world.start()
    await settled(world, "doomed")
    check_answer(world, AGENT, "doomed", QUESTION)


async def test_starts_are_written_down_only_after_two_deaths(world: World):
    await ask_both(world)
    await world.start()
    await settled(world, "doomed")
    assert query(world, "SELECT * FROM starts") == []
