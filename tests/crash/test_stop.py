"""A planned stop, a second process on the same file, and a turn that kills every process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.crash.client import client_of
from tests.crash.evidence import settled, stored_messages, turn_of
from tests.crash.model import PlannedModel
from tests.crash.process import Server, World, until
from tests.crash.scenario import AGENT, QUESTIONS, ask_all, check_all
from thinkwell import ChatRecovery, Think
from thinkwell.host.client import AgentAddress
from thinkwell.host.host import Host
from thinkwell.store.sqlite import SqliteStore

pytestmark = pytest.mark.crash


async def test_sigterm_ends_the_process_cleanly_and_the_turn_goes_on_at_the_next_start(
    world: World,
):
    world.hold("b")
    server = await world.start()
    async with client_of(server, AGENT) as client:
        await ask_all(world, server, client, QUESTIONS)
        await client.chunks("r1", 25)
        await server.stop()
    check_clean(world)
    assert (turn_of(world, "r1") or {})["status"] == "running"
    world.release("b")
    await world.start()
    await check_all(world, client, QUESTIONS)


async def test_sigterm_lets_a_turn_end_that_needs_only_a_moment(world: World):
    world.hold("b")
    server = await world.start()
    async with client_of(server, AGENT) as client:
        await ask_all(world, server, client, {"r1": QUESTIONS["r1"]})
        await client.chunks("r1", 25)
        server.process.terminate()
        world.release("b")
        await server.ended()
    check_clean(world)
    assert (turn_of(world, "r1") or {})["status"] == "completed"


def check_clean(world: World) -> None:
    """The store was closed: its lock is given back, its log is empty."""
    lock, log = (world.store.with_name(f"crash.db{end}") for end in (".lock", "-wal"))
    assert lock.read_bytes() == b""
    assert not log.exists() or log.stat().st_size == 0


async def test_a_second_process_on_the_same_file_is_refused_and_changes_nothing(world: World):
    server = await world.start()
    second = await Server(world, "").spawn()
    assert await second.wait() == 1
    assert f"in use by another process (pid {server.process.pid}" in await server.output()
    async with client_of(server, AGENT) as client:
        await client.ask("still|say:2", request="r1")
        assert (await client.done("r1"))["outcome"] == "completed"


async def test_a_file_that_a_killed_process_left_can_be_opened_at_once(world: World):
    await (await world.start()).kill()
    server = await world.start()
    assert server.alive


async def test_a_turn_that_kills_every_process_ends_with_an_error_and_frees_the_queue(
    world: World,
):
    server = await world.start("c3")
    async with client_of(server, "fragile/one") as client:
        await client.ask("bad|say:2", request="r1")
        await server.crashed()
    for _ in range(2):
        await world.run_into("c3")
    server = await world.start()
    turn = await settled(world, "r1")
    assert turn["status"] == "error"
    assert "The operator can retry it." in turn["client_error"]
    async with client_of(server, "fragile/one") as client:
        assert (await client.resume())["id"] == "r1"
        await client.ack("r1")
        assert (await client.done("r1"))["body"] == turn["client_error"]
        await client.ask("good|say:2", request="r2")
        assert (await client.done("r2"))["outcome"] == "completed"


async def test_planned_stops_never_use_up_the_attempts_of_a_turn(world: World):
    world.hold("a")

    class Slow(Think):
        model = PlannedModel(world.folder)
        chat_recovery = ChatRecovery(max_attempts=1)

    for stops in range(1, 11):
        async with one_host(world, Slow) as agent:
            await agent.submit("slow|hold:a,say:2", submission_id="r1")
            await until(lambda n=stops: world.model_calls("slow") == n, "the model is asked")
    world.release("a")
    async with one_host(world, Slow):
        assert (await settled(world, "r1"))["status"] == "completed"


@asynccontextmanager
async def one_host(world: World, cls: type[Think]) -> AsyncIterator[Think]:
    """A host in this process that does not wait for its turns when it is stopped."""
    host = Host([cls], SqliteStore(world.store), drain_timeout=0.0)
    await host.start()
    agent = (await host.agent(AgentAddress(cls.agent_class, "one"))).agent
    assert isinstance(agent, cls)
    yield agent
    await host.stop()


async def test_a_turn_that_goes_on_between_crashes_is_never_given_up(world: World):
    server = await world.start("c4:2")
    async with client_of(server, "fragile/one") as client:
        await client.ask("long|say:20", request="r1")
        await server.crashed()
    for point in ["c3", "c4:2", "c3", "c4:2", "c3"]:
        await world.run_into(point)
    await world.start()
    turn = await settled(world, "r1")
    assert (turn["status"], turn["attempt"]) == ("completed", 7)
    assert len(stored_messages(world, "fragile/one")) == 2


async def test_after_progress_as_many_attempts_may_die_as_are_allowed_and_no_more(world: World):
    server = await world.start("c4:2")
    async with client_of(server, "fragile/one") as client:
        await client.ask("long|say:20", request="r1")
        await server.crashed()
    for _ in range(2):  # what `Fragile` allows
        await world.run_into("c3")
    await world.start()
    turn = await settled(world, "r1")
    assert (turn["status"], turn["stop_reason"], turn["attempt"]) == ("error", "parked", 3)
