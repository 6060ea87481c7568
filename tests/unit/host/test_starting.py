"""A start of the host that fails, and one that lasts (DESIGN §5, §8.16)."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from thinkwell import App, Think, create_agent
from thinkwell.core.errors import StoreUnavailableError
from thinkwell.host.host import Host
from thinkwell.host.upkeep import Upkeep
from thinkwell.store.sqlite import SqliteStore
from thinkwell.store.sqlite_transaction import SqliteTransaction
from thinkwell.testing import ScriptedModel


class Shop(Think):
    model = ScriptedModel(["hi"] * 9)


class BrokenError(Exception):
    pass


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Something of the start raises what nobody thought of."""

    async def ensure(_: Upkeep) -> None:
        raise BrokenError

    monkeypatch.setattr(Upkeep, "ensure", ensure)
    return monkeypatch


class TestAStartThatFails:
    async def test_of_an_app_leaves_no_lock_and_no_task(
        self, tmp_path: Path, broken: pytest.MonkeyPatch
    ):
        store = f"sqlite:///{tmp_path / 'a.db'}"
        with pytest.raises(BrokenError):
            await App(agents=[Shop], store=store).start()
        assert asyncio.all_tasks() == {asyncio.current_task()}
        broken.undo()
        async with App(agents=[Shop], store=store) as app:
            assert (await app.agent(Shop).run("hello")).text == "hi"

    async def test_of_an_inline_agent_leaves_no_lock_and_no_task(
        self, tmp_path: Path, broken: pytest.MonkeyPatch
    ):
        store = f"sqlite:///{tmp_path / 'a.db'}"
        with pytest.raises(BrokenError):
            await create_agent(model=ScriptedModel(["hi"]), store=store).run("hello")
        assert asyncio.all_tasks() == {asyncio.current_task()}
        broken.undo()
        async with create_agent(model=ScriptedModel(["hi"]), store=store) as agent:
            assert (await agent.run("hello")).text == "hi"


async def test_a_damaged_row_of_the_upkeep_keeps_nobody_from_starting(tmp_path: Path):
    store = f"sqlite:///{tmp_path / 'a.db'}"
    async with App(agents=[Shop], store=store):
        pass
    with closing(sqlite3.connect(tmp_path / "a.db")) as file:
        changed = file.execute("UPDATE jobs SET payload = '{' WHERE agent = '/host'")
        assert changed.rowcount == 1
        file.commit()
    async with App(agents=[Shop], store=store) as app:
        assert (await app.agent(Shop).run("hello")).text == "hi"


class Refusing(SqliteStore):
    """Writes nothing while it is told so."""

    refuses = False

    def transaction(self) -> SqliteTransaction:
        if self.refuses:
            raise StoreUnavailableError("the disk is full")
        return super().transaction()


async def test_a_life_that_lasts_while_the_store_refuses_is_marked_later(tmp_path: Path):
    store, lasts = Refusing(tmp_path / "a.db"), asyncio.Event()
    tried = asyncio.Event()

    async def lasted(_: float) -> None:
        await lasts.wait()

    async def sleep(_: float) -> None:
        tried.set()
        await asyncio.sleep(0)

    host = Host([Shop], store, sleep=sleep, lasted=lasted)
    await host.start()
    store.refuses = True
    lasts.set()
    await tried.wait()
    store.refuses = False
    async with asyncio.timeout(10):
        while not (await store.fetch_all("last_boots", {}))[0]["steady"]:
            await asyncio.sleep(0)
    await host.stop()
