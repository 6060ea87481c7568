"""A damaged row, page or agent does not stop the others (DESIGN §8.16-17)."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.turns.support import running, untyped
from thinkwell import Think
from thinkwell.core.events import Event
from thinkwell.host.client import AgentAddress
from thinkwell.host.host import Host
from thinkwell.journal.turns import UNREADABLE
from thinkwell.messages.message import text_of
from thinkwell.store.sqlite import SqliteStore
from thinkwell.testing import ScriptedModel


class Clerk(Think):
    pass


class Broken(Think):
    async def on_start(self) -> None:
        raise RuntimeError("this class does not start")


def change(file: Path, sql: str) -> None:
    connection = sqlite3.connect(file)
    connection.execute(sql)
    connection.commit()
    connection.close()


def accepted(file: Path, agent: str, turn: str, text: str = "hi") -> None:
    """A turn that was accepted and not run, as a crash leaves it."""
    message = f'[{{"id":"u-{turn}","role":"user","parts":[{{"type":"text","text":"{text}"}}]}}]'
    change(
        file,
        "INSERT INTO turns (agent, id, trigger, status, generation, input, created_at) "
        f"VALUES ('{agent}', '{turn}', 'submission', 'accepted', 0, '{message}', 0)",
    )
    kind, name = agent.split("/")
    change(
        file,
        "INSERT OR IGNORE INTO agents (id, class, name, epoch, created_at) "
        f"VALUES ('{agent}', '{kind}', '{name}', 1, 0)",
    )


@pytest.fixture
async def file(tmp_path: Path) -> Path:
    store = SqliteStore(tmp_path / "thinkwell.db")
    await store.open()
    await store.close()
    return tmp_path / "thinkwell.db"


@pytest.mark.parametrize(
    "column", ["input", "options", "body", "metadata", "principal", "client_tools"]
)
async def test_a_row_that_cannot_be_decoded_ends_alone(file: Path, column: str):
    accepted(file, "clerk/x", "bad")
    accepted(file, "clerk/x", "good")
    change(file, f"UPDATE turns SET {column} = '{{\"half' WHERE id = 'bad'")
    async with running(Clerk, "fine", "later", store=SqliteStore(file)) as stage:
        untyped(stage).model = stage.model
        await untyped(stage)._turns.wait_until_idle()
        assert text_of(await stage.answer()) == "fine"
        assert (await stage.agent.run("again")).text == "later"
    with closing(sqlite3.connect(file)) as connection, connection:
        row = connection.execute("SELECT status, client_error FROM turns WHERE id = 'bad'")
        assert row.fetchone() == ("error", UNREADABLE)
    connection.close()


async def test_a_class_that_does_not_start_does_not_stop_the_others(file: Path):
    accepted(file, "broken/x", "b1")
    accepted(file, "clerk/x", "c1")
    Clerk.model = ScriptedModel(["fine"])
    host = Host([Broken, Clerk], SqliteStore(file), drain_timeout=0)
    try:
        await host.start()
        agent: Any = (await host.agent(AgentAddress("clerk", "x"))).agent
        await agent.wait_until_stable()
        assert text_of((await agent.get_messages())[-1]) == "fine"
    finally:
        await host.stop()
        Clerk.model = None


async def test_a_damaged_page_affects_only_the_agent_it_belongs_to(file: Path):
    for number in range(40):  # each on pages of its own
        accepted(file, "clerk/bad", f"b{number}", "b" * 3000)
    accepted(file, "clerk/good", "g1")
    change(file, "PRAGMA wal_checkpoint(TRUNCATE)")
    raw = bytearray(file.read_bytes())
    places = [
        place for place in range(0, len(raw), 4096) if b"b" * 3000 in raw[place : place + 4096]
    ]
    raw[places[3] : places[3] + 4096] = b"\xff" * 4096
    file.write_bytes(raw)
    Clerk.model = ScriptedModel(["fine"])
    events: list[Event] = []
    host = Host([Clerk], SqliteStore(file), drain_timeout=0)
    host.bus.subscribe(events.append)
    try:
        await host.start()
        agent: Any = (await host.agent(AgentAddress("clerk", "good"))).agent
        await agent.wait_until_stable()
        assert text_of((await agent.get_messages())[-1]) == "fine"
        assert host.not_ready() is None
        assert [e.agent for e in events if e.type == "agent:damaged"] == ["clerk/bad"]
    finally:
        await host.stop()
        Clerk.model = None
