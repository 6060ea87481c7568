"""Deleting an agent: everything of it goes, nothing of the others (DESIGN §3 `on_delete`, §5)."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from contextlib import closing
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from tests.turns.support import running
from thinkwell import App, Think
from thinkwell.core.errors import HostClosedError
from thinkwell.features import Feature
from thinkwell.host.client import AgentAddress
from thinkwell.jobs import JobContext
from thinkwell.store.ownership import _REMOVALS  # pyright: ignore[reportPrivateUsage]
from thinkwell.testing import ScriptedModel, pause

heard: list[str] = []


class Archive(Feature):
    name = "archive"

    async def on_delete(self) -> None:
        heard.append(f"deleted {self.kit.agent.name}: {await self.kit.storage.get('a')}")

    async def on_close(self) -> None:
        heard.append(f"closed {self.kit.agent.name}")

    async def keep(self, value: int) -> None:
        await self.kit.storage.set("a", value)


class Keeper(Think):
    features = [Archive()]
    archive: Archive
    initial_state = {"n": 0}
    model = ScriptedModel(["hi"] * 9)

    async def work(self, payload: Any, ctx: JobContext) -> None:
        await asyncio.Event().wait()

    async def stored(self) -> list[Any]:
        values = await self.storage.list()
        return [values, await self.archive.kit.storage.list(), len(await self.jobs.list())]


async def fill(app: App, name: str) -> Any:
    agent = app.agent(Keeper, name)
    await agent.run("hello")
    await agent.set_state({"n": 1})
    await agent.storage.set("own", 1)
    await agent.archive.keep(7)
    await agent.jobs.enqueue("work", delay=3600)
    return agent


async def test_all_of_one_agent_goes_and_the_others_stay():
    heard.clear()
    async with App(agents=[Keeper], store="sqlite://:memory:") as app:
        ann, bob = await fill(app, "ann"), await fill(app, "bob")
        assert await app.delete(Keeper, "ann")
        assert heard == ["deleted ann: 7", "closed ann"]
        assert not await app.delete(Keeper, "ann")
        assert await ann.get_messages() == []
        assert await ann.stored() == [{}, {}, 0]
        assert len(await bob.get_messages()) == 2
        assert await bob.stored() == [{"own": 1}, {"a": 7}, 1]


async def test_no_row_is_left_in_any_table(tmp_path: Path):
    async with App(agents=[Keeper], store=f"sqlite:///{tmp_path / 'a.db'}") as app:
        await fill(app, "ann")
        assert await app.delete(Keeper, "ann")
    with closing(sqlite3.connect(tmp_path / "a.db")) as file:
        assert {t: n for t in tables_of_agents() if (n := count(file, t))} == {}
        assert file.execute("SELECT COUNT(*) FROM agents").fetchone() == (0,)


def count(file: sqlite3.Connection, table: str) -> int:
    return file.execute(f"SELECT COUNT(*) FROM {table} WHERE agent = 'keeper/ann'").fetchone()[0]


def tables_of_agents() -> set[str]:
    """Every table whose rows belong to agents."""
    schema = files("thinkwell.store").joinpath("schema.sql").read_text()
    tables = re.findall(r"CREATE TABLE (\w+) \((.*?)^\);", schema, re.M | re.S)
    return {table for table, columns in tables if "    agent TEXT" in columns}


async def test_what_runs_is_stopped_and_who_is_connected_is_sent_away():
    gate = pause()

    class Busy(Think):
        async def work(self, payload: Any, ctx: JobContext) -> None:
            started.set()
            await asyncio.Event().wait()

    started = asyncio.Event()
    async with running(Busy, ["a", gate, "b"]) as stage:
        client = await stage.connect()
        await client.ask("hello")
        await gate.reached()
        await stage.agent.jobs.enqueue("work")
        await started.wait()
        assert await stage.host.delete(AgentAddress(Busy.agent_class, "x"))
        assert client.closed == (4410, "The agent is deleted.")
        assert client.ends()


async def test_an_app_that_does_not_run_deletes_nothing():
    app = App(agents=[Keeper], store="sqlite://:memory:")
    with pytest.raises(HostClosedError):
        await app.delete(Keeper, "ann")


def test_every_table_that_names_agents_is_thought_of():
    named = {f"remove_{table}" for table in tables_of_agents()}
    assert "remove_storage" in named
    assert named - set(_REMOVALS) == {"remove_journal"}  # which the clear before has erased
