"""Operators pause and resume agents, and stop one turn, those of one agent, or all (spec/04 P4,
DESIGN §8.17). `tests/crash/test_operators.py` does the same to real processes.
"""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.turns.support import Client, loosely, running, untyped
from thinkwell import App, Think
from thinkwell.core.errors import HostClosedError
from thinkwell.host.client import AgentAddress
from thinkwell.host.host import Host
from thinkwell.journal.operating import Which
from thinkwell.messages.message import text_of
from thinkwell.store.sqlite import SqliteStore
from thinkwell.testing import ScriptedModel, pause, text

PAUSED = {"type": "thinkwell_agent_paused", "paused": True, "reason": "maintenance"}
GOES_ON = {"type": "thinkwell_agent_paused", "paused": False}


class Clerk(Think):
    async def work(self, what: str) -> None:
        done.append(what)


class Slow(Think):
    """Its start takes as long as the test says."""

    begun: ClassVar[asyncio.Event]
    gate: ClassVar[asyncio.Event]
    model: Any = None

    async def on_start(self) -> None:
        self.begun.set()
        await self.gate.wait()


done: list[str] = []


def states(client: Client) -> list[dict[str, Any]]:
    return [frame for frame in client.frames if frame["type"] == PAUSED["type"]]


class TestPausing:
    async def test_a_paused_agent_accepts_and_stores_and_begins_nothing_until_it_goes_on(self):
        async with running(Clerk, "one", "two") as stage:
            client = await stage.connect()
            assert await stage.host.operators.pause("clerk/x", "maintenance")
            await client.ask("first")
            await client.ask("second", "q2")
            assert states(client) == [PAUSED]
            turn = await stage.agent.get_turn("q1")
            assert (turn.status, stage.model.requests) == ("accepted", [])
            assert await stage.host.operators.resume("clerk/x")
            await client.until_end("q2")
            assert [text_of(m) for m in await stage.messages()] == ["first", "one", "second", "two"]
            assert states(client) == [PAUSED, GOES_ON]
            types = [e.type for e in stage.events if e.type.startswith("agent:")]
            assert types == ["agent:paused", "agent:resumed"]

    async def test_what_runs_goes_on_to_its_end(self):
        gate = pause()
        async with running(Clerk, [gate, "one"], "two") as stage:
            client = await stage.connect()
            await client.ask("first")
            await gate.reached()
            await stage.host.operators.pause("clerk/x", "maintenance")
            await client.ask("second", "q2")
            gate.open()
            await client.until_end("q1")
            assert (await stage.agent.get_turn("q2")).status == "accepted"

    async def test_it_stays_paused_over_a_restart_and_whoever_connects_is_told(
        self, tmp_path: Path
    ):
        path = tmp_path / "x.db"
        async with running(Clerk, store=SqliteStore(path)) as stage:
            await stage.host.operators.pause("clerk/x", "maintenance")
            await (await stage.connect()).ask("first")
        async with running(Clerk, "one", store=SqliteStore(path)) as stage:
            client = await stage.connect()
            assert states(client) == [PAUSED]
            assert stage.model.requests == []
            await stage.host.operators.resume("clerk/x")
            assert (await untyped(stage)._turns.until_over("q1")).status == "completed"

    async def test_a_turn_that_is_stopped_meanwhile_ends_although_none_begins(self):
        async with running(Clerk) as stage:
            client = await stage.connect()
            await stage.host.operators.pause("clerk/x", "maintenance")
            await client.ask("first")
            await client.send(type="cf_agent_chat_request_cancel", id="q1")
            await client.until_end()
            assert stage.model.requests == []

    async def test_jobs_wait_too(self):
        done.clear()
        async with running(Clerk) as stage:
            await stage.host.operators.pause("clerk/x", "maintenance")
            job = await stage.agent.jobs.enqueue("work", "later")
            waits = await stage.agent.jobs.get(job.id)
            assert waits is not None
            assert waits.status == "waiting"
            await stage.host.operators.resume("clerk/x")
            while not done:
                await untyped(stage)._turns.parts.sleep(0)
            assert done == ["later"]

    async def test_a_stop_of_the_app_does_not_wait_for_them(self):
        async with running(Clerk, drain=3600.0) as stage:
            await stage.host.operators.pause("clerk/x", "maintenance")
            await (await stage.connect()).ask("first")

    async def test_an_agent_that_is_paused_during_its_start_takes_up_no_turn(self, tmp_path: Path):
        path, address = tmp_path / "x.db", AgentAddress("slow", "x")
        Slow.begun, Slow.gate = asyncio.Event(), asyncio.Event()
        Slow.gate.set()
        async with running(Slow, store=SqliteStore(path)) as stage:
            await stage.host.operators.pause(address.id, "maintenance")
            await (await stage.connect()).ask("first")
        Slow.begun, Slow.gate = asyncio.Event(), asyncio.Event()
        model = Slow.model = ScriptedModel(["one"])
        host = Host([Slow], SqliteStore(path))
        await host.start()
        try:
            assert await host.operators.resume(address.id)
            await Slow.begun.wait()
            assert await host.operators.pause(address.id, "maintenance")
            Slow.gate.set()
            agent = loosely((await host.agent(address)).agent)
            assert agent._turns.line.stands_still()
            assert ((await agent.get_turn("q1")).status, model.requests) == ("accepted", [])
            assert await host.operators.resume(address.id)
            assert (await agent._turns.until_over("q1")).status == "completed"
        finally:
            Slow.model = None
            await host.stop()

    async def test_a_resume_begins_nothing_while_the_process_stops(self):
        async with running(Clerk, "one") as stage:
            client = await stage.connect()
            await stage.host.operators.pause("clerk/x", "maintenance")
            await client.ask("first")
            await stage.host.drain(0.0)
            assert await stage.host.operators.resume("clerk/x")
            assert untyped(stage)._turns.line.stands_still()
            for _ in range(20):
                await asyncio.sleep(0)
            assert stage.model.requests == []
            assert states(client) == [PAUSED, GOES_ON]

    async def test_the_next_agent_of_a_name_is_not_paused_because_the_deleted_one_was(self):
        done.clear()
        async with running(Clerk) as stage:
            await stage.host.operators.pause("clerk/x", "maintenance")
            assert await stage.host.delete(AgentAddress("clerk", "x"))
            agent = loosely((await stage.host.agent(AgentAddress("clerk", "x"))).agent)
            agent.model = ScriptedModel(["hello"])
            assert (await agent.run("hi")).text == "hello"
            await agent.jobs.enqueue("work", "later")
            while not done:
                await asyncio.sleep(0)
            assert not await stage.host.operators.resume("clerk/x")

    async def test_a_resume_also_ends_a_pause_that_only_the_process_knows_of(self):
        async with running(Clerk, "one") as stage:
            loosely(stage.host)._shared.paused["clerk/x"] = "left over"
            assert await stage.host.operators.resume("clerk/x")
            assert loosely(stage.host)._shared.paused == {}

    async def test_what_is_not_there_or_not_paused_is_said(self):
        async with running(Clerk) as stage:
            assert not await stage.host.operators.pause("clerk/nobody", "x")
            assert not await stage.host.operators.resume("clerk/x")


class TestStopping:
    @pytest.mark.parametrize(
        ("which", "stopped"),
        [
            (Which(turn="q2"), {"q2"}),
            (Which(agent="clerk/x"), {"q1", "q2"}),
            (Which(), {"q1", "q2"}),
            (Which(agent="clerk/nobody"), set[str]()),
        ],
    )
    async def test_one_turn_those_of_one_agent_or_all(self, which: Which, stopped: set[str]):
        gate = pause()
        async with running(Clerk, [text("Hel"), gate, "lo"], "two") as stage:
            client = await stage.connect()
            await client.ask("first")
            await gate.reached()
            await client.ask("second", "q2")
            assert await stage.host.operators.stop_turns(which, "enough") == len(stopped)
            if "q1" not in stopped:
                gate.open()
            ended = {name: await client.until_end(name) for name in ("q1", "q2")}
            aborted = {n for n in ended if (await stage.agent.get_turn(n)).status == "aborted"}
            assert aborted == stopped

    async def test_a_stop_that_nobody_honoured_yet_is_on_the_row(self, tmp_path: Path):
        """What a process that dies in between leaves; spec/04 §6 C16, §23.19."""
        path = tmp_path / "x.db"
        gate = pause()
        async with running(Clerk, [text("Hel"), gate], store=SqliteStore(path), drain=0.0) as stage:
            client = await stage.connect()
            await client.ask("first")
            await client.until(lambda frame: "Hel" in frame.get("body", ""))
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE turns SET cancel_requested = 'by hand'")
        async with running(Clerk, store=SqliteStore(path)) as stage:
            record = await untyped(stage)._turns.until_over("q1")
            assert (record.status, record.error, stage.model.requests) == ("aborted", "by hand", [])
            assert text_of(await stage.answer()) == "Hel"


class TestTheApp:
    async def test_pauses_resumes_and_stops_by_class_and_name(self):
        class Desk(Think):
            model = ScriptedModel(["fine"])

        app = App(agents=[Desk], store="sqlite://:memory:")
        with pytest.raises(HostClosedError):
            await app.pause(Desk)
        async with app:
            agent = app.agent(Desk)
            await agent.get_messages()
            await agent.clear_messages()
            assert await app.pause(Desk, reason="maintenance")
            turn = await agent.submit("hi")
            assert await app.stop_turns(Desk, request_id=turn.request_id) == 1
            assert await app.resume("desk")
            assert (await agent.run("hi")).text == "fine"
            assert await app.stop_turns() == 0
