"""The process dies while messages are indexed: afterwards none is missing and none is there twice
(spec/03 §9, DESIGN §1).
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.crash.process import ROOT
from tests.search.support import Talker, rows, said, store_at
from tests.search.test_keeping import check_index
from thinkwell import App, Think
from thinkwell.session.session import Session
from thinkwell.testing import ScriptedModel

pytestmark = pytest.mark.crash

MESSAGES = 260
SERVE = """
import asyncio, sys
from tests.search.support import Talker
from thinkwell import App

async def main():
    async with App(agents=[Talker], store=f"sqlite:///{sys.argv[1]}"):
        await asyncio.Event().wait()

asyncio.run(main())
"""


class Before(Think, name="talker"):
    """The class as it was, without search."""

    model: Any = ScriptedModel([])

    async def fill(self) -> None:
        chain = [said(f"walrus number{n}x", message_id=f"m{n}") for n in range(MESSAGES)]
        chain[7] = said(" ".join(f"long{n}" for n in range(3000)), message_id="m7")
        await self.session.add_messages(chain)


async def fill(path: Path) -> None:
    async with App(agents=[Before], store=f"sqlite:///{path}") as app:
        await app.agent(Before).fill()


async def die_at(path: Path, point: str) -> None:
    """Index in a process that kills itself at a point."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-c", SERVE, str(path)),
        cwd=ROOT,
        env={
            **os.environ,
            "THINKWELL_CRASH_AT": point,
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")]),
        },
    )
    assert await process.wait() == -signal.SIGKILL


async def check_whole(path: Path) -> None:
    """Every message is in the index exactly once, and found."""
    async with App(agents=[Talker], store=f"sqlite:///{path}") as app:
        find = app.agent(Talker).search.find
        while rows(path, "SELECT MAX(upto) FROM search_marks") < rows(
            path, "SELECT MAX(seq) FROM messages"
        ):
            await asyncio.sleep(0.02)
        for number in (0, 6, 8, 100, MESSAGES - 1):
            assert [hit.id for hit in await find(f"number{number}x", mode="all")] == [f"m{number}"]
        for word in ("long0", "long2999"):
            assert [hit.id for hit in await find(word, mode="all")] == ["m7"]
    counted = "SELECT COUNT(DISTINCT seq), COUNT(*) - COUNT(DISTINCT seq) FROM search_entries"
    messages, more = rows(path, counted)[0]
    assert messages == MESSAGES
    assert more == len(rows(path, "SELECT 1 FROM search_entries WHERE message_id = 'm7'")) - 1
    check_index(path)


@pytest.mark.parametrize("point", ["x0", "x0:4", "x0:9", "x1", "x1:2"])
async def test_a_process_that_dies_while_it_indexes_leaves_nothing_out(tmp_path: Path, point: str):
    path = tmp_path / "a.db"
    await fill(path)
    await die_at(path, point)
    await check_whole(path)


async def test_a_process_that_is_killed_again_and_again_gets_there(tmp_path: Path):
    path = tmp_path / "a.db"
    await fill(path)
    for _ in range(2):
        await die_at(path, "x0:3")
    assert 0 < rows(path, "SELECT MAX(upto) FROM search_marks")[0][0] < MESSAGES
    await check_whole(path)


async def test_x2_what_was_deleted_and_changed_meanwhile_is_never_found(tmp_path: Path):
    path = tmp_path / "a.db"
    await fill(path)
    async with App(agents=[Talker], store=f"sqlite:///{path}") as app:
        while len(rows(path, "SELECT DISTINCT seq FROM search_entries")) < MESSAGES:
            await asyncio.sleep(0.02)
        await app.agent(Talker).search.find("walrus")
    async with store_at(path) as (store, _):
        session = Session(store, "talker/default")
        await session.delete_messages([f"m{n}" for n in range(20, 60)])
        await session.update_message(said("a heron now", message_id="m100"))
    await die_at(path, "x2")
    async with App(agents=[Talker], store=f"sqlite:///{path}") as app:
        find = app.agent(Talker).search.find
        assert await find("number25x", mode="all") == []
        assert await find("number100x", mode="all") == []
        assert [hit.id for hit in await find("heron", mode="all")] == ["m100"]
        assert [hit.id for hit in await find("number60x", mode="all")] == ["m60"]
        while rows(path, "SELECT * FROM search_again"):
            await asyncio.sleep(0.02)
    assert len(rows(path, "SELECT DISTINCT seq FROM search_entries")) == MESSAGES - 40
    check_index(path)
