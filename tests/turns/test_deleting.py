"""Deleting an agent: everything of it goes, nothing of the others (DESIGN §3 `on_delete`, §5)."""

from __future__ import annotations

import asyncio
import logging
import re
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.turns.support import running
from tests.wire.serving import serving
from thinkwell import Agent, App, Think
from thinkwell.core.errors import (
    AgentDeletedError,
    AgentParkedError,
    HostClosedError,
    OwnershipLostError,
    StoreError,
    StoreUnavailableError,
)
from thinkwell.features import Feature
from thinkwell.host.client import AgentAddress
from thinkwell.host.host import Host
from thinkwell.jobs import JobContext
from thinkwell.store.base import Params
from thinkwell.store.deleting import PIECE, REMOVALS
from thinkwell.store.sqlite import SqliteStore
from thinkwell.store.sqlite_transaction import SqliteTransaction
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


class Lasting(Agent):
    """Has a job that writes when it is stopped."""

    time_limits = {"grace": 0.0}
    begun: asyncio.Event

    async def parting(self, payload: Any, ctx: JobContext) -> None:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            await self.storage.set("last", "words")
            heard.append("stored")


@pytest.mark.parametrize("create", [True, False])
class TestALateWrite:
    async def test_of_a_job_comes_before_the_rows_go(self, tmp_path: Path, create: bool):
        heard.clear()
        Lasting.begun = asyncio.Event()
        async with hosting(Lasting, tmp_path) as host:
            agent = (await host.agent(LASTING, create=create)).agent
            await agent.jobs.enqueue("parting")
            await Lasting.begun.wait()
            assert await host.delete(LASTING)
            assert heard == ["stored"]
        assert rows_of(tmp_path, "lasting/x") == {}

    async def test_of_whoever_holds_the_agent_is_refused(self, tmp_path: Path, create: bool):
        async with hosting(Lasting, tmp_path) as host:
            agent = (await host.agent(LASTING, create=create)).agent
            await agent.storage.set("a", 1)
            assert await host.delete(LASTING)
            with pytest.raises(OwnershipLostError):
                await agent.storage.set("a", 2)
            with pytest.raises(OwnershipLostError):
                await asyncio.gather(agent.storage.set("a", 2), agent.storage.set("b", 2))
        assert rows_of(tmp_path, "lasting/x") == {}

    async def test_that_shares_the_transaction_of_the_deletion_is_refused(
        self, tmp_path: Path, create: bool
    ):
        async with hosting(Lasting, tmp_path) as host:
            agent = (await host.agent(LASTING, create=create)).agent
            await agent.storage.set("a", 1)
            mark = host._deletions._mark(LASTING.id)  # pyright: ignore[reportPrivateUsage]
            said = await asyncio.gather(mark, agent.storage.set("a", 2), return_exceptions=True)
            assert repr(said) == """[None, AgentDeletedError("Agent 'lasting/x' is deleted.")]"""
            assert await agent.storage.get("a") == 1

    async def test_does_not_disturb_the_agent_that_came_after(self, tmp_path: Path, create: bool):
        async with hosting(Lasting, tmp_path) as host:
            old = (await host.agent(LASTING, create=create)).agent
            await old.storage.set("a", 1)
            assert await host.delete(LASTING)
            new = (await host.agent(LASTING, create=create)).agent
            said = await asyncio.gather(
                old.storage.set("old", 2), new.storage.set("new", 3), return_exceptions=True
            )
            assert [type(each) for each in said] == [AgentDeletedError, type(None)]
            assert await new.storage.list() == {"new": 3}


async def test_of_two_that_had_no_row_only_the_newer_one_writes(tmp_path: Path):
    async with hosting(Lasting, tmp_path, idle_timeout=0.0) as host:
        old = (await host.agent(LASTING, create=False)).agent
        await host.put_to_sleep()
        new = (await host.agent(LASTING, create=False)).agent
        assert new is not old
        with pytest.raises(OwnershipLostError):
            await old.storage.set("old", 1)
        await new.storage.set("new", 2)
        with pytest.raises(OwnershipLostError):
            await old.storage.set("old", 1)


async def test_rows_that_lost_their_agent_can_be_deleted_too(tmp_path: Path):
    async with hosting(Lasting, tmp_path) as host:
        for name in ("x", "y"):
            agent = (await host.agent(AgentAddress("lasting", name))).agent
            await agent.storage.set("secret", name)
    with closing(sqlite3.connect(tmp_path / "a.db")) as file:
        file.execute("DELETE FROM agents")
        file.commit()
    async with hosting(Lasting, tmp_path) as host:
        assert await host.delete(LASTING)
        assert not await host.delete(LASTING)
    assert rows_of(tmp_path, "lasting/x") == {}
    assert rows_of(tmp_path, "lasting/y") == {"storage": 1}


@pytest.mark.parametrize("create", [True, False])
async def test_the_epochs_of_a_name_go_on_after_it_was_deleted(tmp_path: Path, create: bool):
    """DESIGN §5: whoever wrote for the old one must never be taken for the owner of the new one."""
    seen: list[int] = []
    async with hosting(Lasting, tmp_path) as host:
        for _ in range(3):
            agent = (await host.agent(LASTING, create=create)).agent
            await agent.storage.set("a", 1)
            with closing(sqlite3.connect(tmp_path / "a.db")) as file:
                seen += file.execute("SELECT epoch FROM agents WHERE id = 'lasting/x'").fetchone()
            assert await host.delete(LASTING)
    assert seen == [1, 2, 3]


class Broken(Agent):
    """Cannot start once it is broken."""

    broken = False

    async def on_start(self) -> None:
        if self.broken:
            raise RuntimeError("it cannot start")

    async def work(self) -> None:
        """A job."""


BROKEN = AgentAddress("broken", "x")


async def test_an_agent_whose_start_fails_can_be_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async with hosting(Broken, tmp_path) as host:
        agent = (await host.agent(BROKEN)).agent
        await agent.jobs.enqueue("work", delay=3600)
    monkeypatch.setattr(Broken, "broken", True)
    async with hosting(Broken, tmp_path) as host:
        with pytest.raises(RuntimeError, match="cannot start"):
            await host.agent(BROKEN)
        assert await host.delete(BROKEN)
        assert rows_of(tmp_path, BROKEN.id) == {}
        assert not await host.delete(BROKEN)
        monkeypatch.setattr(Broken, "broken", False)
        assert await (await host.agent(BROKEN)).agent.jobs.list() == []


async def test_nobody_goes_on_trying_to_wake_an_agent_that_was_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    tried, again = asyncio.Event(), asyncio.Event()

    async def sleep(_: float) -> None:
        tried.set()
        await again.wait()

    async with hosting(Broken, tmp_path) as host:
        agent = (await host.agent(BROKEN)).agent
        await agent.jobs.enqueue("work", delay=3600)
    with closing(sqlite3.connect(tmp_path / "a.db")) as file:
        file.execute("UPDATE jobs SET due_at = 1 WHERE agent = ?", (BROKEN.id,))
        file.commit()
    monkeypatch.setattr(Broken, "broken", True)
    async with hosting(Broken, tmp_path, sleep=sleep) as host:
        await tried.wait()  # its due job could not be run
        assert await host.delete(BROKEN)
        again.set()
        failing = host._jobs._failing  # pyright: ignore[reportPrivateUsage]
        while failing:
            await asyncio.sleep(0)


async def test_a_parked_agent_can_be_deleted_and_its_name_used_again(tmp_path: Path):
    """DESIGN §8.16: its start killed the process three times; the next one's did not."""
    async with hosting(Lasting, tmp_path) as host:
        await (await host.agent(LASTING)).agent.storage.set("a", 1)
    async with hosting(Lasting, tmp_path) as host:
        starts = host._starts  # pyright: ignore[reportPrivateUsage]
        starts._deaths[LASTING.id] = 3  # pyright: ignore[reportPrivateUsage]
        starts._parked.add(LASTING.id)  # pyright: ignore[reportPrivateUsage]
        with pytest.raises(AgentParkedError):
            await host.agent(LASTING)
        assert await host.delete(LASTING)
        assert rows_of(tmp_path, LASTING.id) == {}
        assert await (await host.agent(LASTING)).agent.storage.list() == {}


class Slow(Feature):
    """Takes its time to close."""

    name = "slow"
    begun: asyncio.Event
    gate: asyncio.Event

    async def on_close(self) -> None:
        self.begun.set()
        await self.gate.wait()


class Closing(Think):
    features = [Slow()]


async def test_who_comes_while_an_agent_is_deleted_is_told_so(caplog: pytest.LogCaptureFixture):
    Slow.begun, Slow.gate = asyncio.Event(), asyncio.Event()
    async with running(Closing, "never asked") as stage:
        client = await stage.connect()
        await stage.agent.storage.set("a", 1)
        deleting = asyncio.ensure_future(stage.host.delete(AgentAddress("closing", "x")))
        await Slow.begun.wait()
        await client.ask("hello?")
        assert client.ends() == [
            {
                "type": "cf_agent_use_chat_response",
                "id": "q1",
                "body": "Agent 'closing/x' is deleted.",
                "done": True,
                "error": True,
                "outcome": "error",
            }
        ]
        with pytest.raises(AgentDeletedError):
            await stage.agent.run("hello?")
        with pytest.raises(AgentDeletedError):
            await stage.connect()
        assert not [r for r in caplog.records if r.exc_info]
        Slow.gate.set()
        assert await deleting


async def test_over_the_network_too(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    Slow.begun, Slow.gate = asyncio.Event(), asyncio.Event()
    app = App(agents=[Closing], store=f"sqlite:///{tmp_path / 'a.db'}")
    async with serving(app) as url, aiohttp.ClientSession() as http:
        await app.agent(Closing, "x").storage.set("a", 1)
        deleting = asyncio.ensure_future(app.delete(Closing, "x"))
        await Slow.begun.wait()
        async with http.post(f"{url}/agents/closing/x/run", json={"input": "hello?"}) as answer:
            assert (answer.status, await answer.text()) == (410, "Agent 'closing/x' is deleted.")
        async with http.ws_connect(f"{url}/agents/closing/x") as socket:
            assert await socket.receive_json() == {"error": "Agent 'closing/x' is deleted."}
            await socket.receive()
            assert socket.close_code == 4410
        Slow.gate.set()
        assert await deleting
    assert not [r for r in caplog.records if r.levelno >= logging.ERROR]


async def test_a_job_whose_agent_is_deleted_under_its_feet_is_no_error_in_the_log(
    caplog: pytest.LogCaptureFixture,
):
    class Writing(Think):
        features = [Slow()]
        begun, ended = asyncio.Event(), asyncio.Event()

        async def work(self, payload: Any, ctx: JobContext) -> None:
            self.begun.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.ended.set()
                raise AgentDeletedError("writing/x") from None

    Slow.begun, Slow.gate = asyncio.Event(), asyncio.Event()
    Slow.gate.set()
    async with running(Writing, "never asked") as stage:
        await stage.agent.jobs.enqueue("work")
        await Writing.begun.wait()
        assert await stage.host.delete(AgentAddress("writing", "x"))
        await Writing.ended.wait()
    assert not [r for r in caplog.records if r.levelno >= logging.ERROR]


async def test_who_asks_twice_waits_for_the_same_end(tmp_path: Path):
    async with hosting(Lasting, tmp_path) as host:
        agent = (await host.agent(LASTING)).agent
        await agent.storage.set("a", 1)
        assert await asyncio.gather(host.delete(LASTING), host.delete(LASTING)) == [True, True]
        assert not await host.delete(LASTING)


async def test_one_whose_caller_left_goes_to_its_end(tmp_path: Path):
    async with hosting(Lasting, tmp_path) as host:
        agent = (await host.agent(LASTING)).agent
        await agent.storage.set("a", 1)
        asked = asyncio.ensure_future(host.delete(LASTING))
        while not host._deleting:  # pyright: ignore[reportPrivateUsage]
            await asyncio.sleep(0)
        asked.cancel()
        while host._deleting:  # pyright: ignore[reportPrivateUsage]
            await asyncio.sleep(0)
    assert rows_of(tmp_path, "lasting/x") == {}


async def test_others_write_between_the_pieces_of_a_large_one(tmp_path: Path):
    """DESIGN §5: the loop thread runs only short, bounded statements."""
    async with hosting(Lasting, tmp_path) as host:
        agent = (await host.agent(LASTING)).agent
        other = (await host.agent(AgentAddress("lasting", "y"))).agent
        async with agent.storage.together():
            for n in range(5 * PIECE):
                await agent.storage.set(f"k{n}", n)
        left: list[int] = []
        deleting = asyncio.ensure_future(host.delete(LASTING))
        while not deleting.done():
            await other.storage.set("a", 1)
            left.append(rows_of(tmp_path, "lasting/x").get("storage", 0))
        steps = [before - after for before, after in pairwise(left)]
        assert max(steps) <= PIECE
        assert left[-1] == 0


class TestWhatADeadProcessHadMarked:
    """DESIGN §5: nobody owns it, and its rows go, whatever the first write after the boot met."""

    async def test_is_removed_although_the_first_write_found_a_full_disk(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        await leave_marked(tmp_path)
        refuse_writes(monkeypatch, StoreUnavailableError("the disk is full"))
        async with hosting(Lasting, tmp_path, sleep=no_pause) as host, asyncio.timeout(10):
            while rows_of(tmp_path, LASTING.id):
                await asyncio.sleep(0)
            await (await host.agent(LASTING)).agent.storage.set("new", 2)
        assert rows_of(tmp_path, LASTING.id) == {"agents": 1, "storage": 1}

    async def test_stays_marked_for_the_next_try_however_often_one_fails(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        await leave_marked(tmp_path)
        damage, full = StoreError("a damaged page"), StoreUnavailableError("the disk is full")
        refuse_writes(monkeypatch, damage, full, damage)
        async with hosting(Lasting, tmp_path, sleep=no_pause) as host:
            boot = host._deletions._going[LASTING.id]  # pyright: ignore[reportPrivateUsage]
            await asyncio.wait([boot])
            with pytest.raises(StoreError, match="damaged"):
                await host.delete(LASTING)
            await (await host.agent(LASTING)).agent.storage.set("new", 2)
        assert rows_of(tmp_path, LASTING.id) == {"agents": 1, "storage": 1}


async def leave_marked(folder: Path) -> None:
    """As a process leaves an agent that dies right after it has marked it."""
    async with hosting(Lasting, folder) as host:
        await (await host.agent(LASTING)).agent.storage.set("old", 1)
    with closing(sqlite3.connect(folder / "a.db")) as file:
        file.execute("UPDATE agents SET deleted_at = 1 WHERE id = ?", (LASTING.id,))
        file.commit()


def refuse_writes(monkeypatch: pytest.MonkeyPatch, *errors: StoreError) -> None:
    """The first writes of a deletion fail, one with each error; those after them succeed."""
    left, execute = [*errors], SqliteTransaction.execute

    async def refuse(tx: SqliteTransaction, query: str, params: Params, /) -> int:
        if left and query == "remove_conversations":
            raise left.pop(0)
        return await execute(tx, query, params)

    monkeypatch.setattr(SqliteTransaction, "execute", refuse)


async def no_pause(_: float) -> None:
    await asyncio.sleep(0)


LASTING = AgentAddress("lasting", "x")


@asynccontextmanager
async def hosting(cls: type[Agent], folder: Path, **options: Any) -> AsyncIterator[Host]:
    host = Host([cls], SqliteStore(folder / "a.db"), **options)
    await host.start()
    try:
        yield host
    finally:
        await host.stop()


def rows_of(folder: Path, agent_id: str) -> dict[str, int]:
    """How many rows an agent has, by table."""
    with closing(sqlite3.connect(folder / "a.db")) as file:
        columns = {**dict.fromkeys(tables_of_agents(), "agent"), "agents": "id"}
        sql = "SELECT COUNT(*) FROM {} WHERE {} = ?"
        found = {
            t: file.execute(sql.format(t, column), (agent_id,)).fetchone()[0]
            for t, column in columns.items()
        }
    return {table: n for table, n in found.items() if n}


async def test_an_app_that_does_not_run_deletes_nothing():
    app = App(agents=[Keeper], store="sqlite://:memory:")
    with pytest.raises(HostClosedError):
        await app.delete(Keeper, "ann")


def test_every_table_that_names_agents_is_thought_of():
    named = {f"remove_{table}" for table in tables_of_agents()}
    assert "remove_storage" in named
    # Live rows go by position, texts together with what says who uses them. The index
    # of the search follows the messages (tests/search/test_keeping.py).
    by_others = {"remove_journal", "remove_blob_uses", "remove_search_entries"}
    assert named - set(REMOVALS) == by_others
