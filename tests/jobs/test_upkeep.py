"""Rows past their time are dropped by a job, in pieces (DESIGN §5; ended jobs are kept as long)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.jobs.support import Hours, Stage, serving
from thinkwell import Think
from thinkwell.agent.agent import Agent
from thinkwell.core.errors import StoreError
from thinkwell.host import upkeep
from thinkwell.host.upkeep import HOST, PAUSE
from thinkwell.store.base import Transaction
from thinkwell.store.sqlite import SqliteStore
from thinkwell.testing import ScriptedModel

WEEK = 7 * 24 * 3600.0
"""How long journals and ended jobs are kept by default."""


class Busy(Agent):
    async def work(self) -> None:
        """Nothing to do."""


class Talker(Think):
    model = ScriptedModel(["One.", "Two.", "Three.", "Four.", "Five."])


def rounds(stage: Stage) -> list[Any]:
    """Every time the upkeep has run to its end."""
    return [told for told in stage.told("job:retried") if told["agent"] == HOST]


async def test_ended_jobs_are_dropped_after_their_time(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(upkeep, "JOB_PIECE", 2)
    store = SqliteStore(":memory:")
    async with serving(Busy, store=store) as stage:
        agent = await stage.agent(Busy)
        for _ in range(5):
            await agent.jobs.enqueue("work")
        await stage.until("job:finished", 5)
        stage.hours.move(PAUSE)
        await stage.until_true(lambda: len(rounds(stage)) == 1)
        assert len(await agent.jobs.list()) == 5
        stage.hours.move(WEEK)
        await stage.until_true(lambda: len(rounds(stage)) == 4)
        assert await agent.jobs.list() == []
        pieces = [told["due_at"] for told in rounds(stage)[1:]]
        now = stage.hours.now()
        assert pieces == [now, now, now + PAUSE]


async def test_old_streams_are_dropped_and_the_messages_stay():
    store = SqliteStore(":memory:")
    async with serving(Talker, store=store) as stage:
        agent = await stage.agent(Talker)
        first = await agent.run("hello")
        stage.hours.move(WEEK)
        second = await agent.run("hello again")
        await stage.until_true(lambda: len(rounds(stage)) == 1)
        stage.hours.move(PAUSE)
        await stage.until_true(lambda: len(rounds(stage)) == 2)

        async def kept(request_id: str) -> bool:
            named = {"agent": "talker/x", "turn": request_id}
            return await store.fetch_one("packed_journal", named) is not None

        assert (await kept(first.request_id), await kept(second.request_id)) == (False, True)
        assert len(await agent.get_messages()) == 4


async def test_a_start_finds_the_row_that_is_there(tmp_path: Path):
    store, hours = tmp_path / "jobs.db", Hours()
    for _ in range(3):
        async with serving(Busy, store=store, hours=hours):
            pass
    reader = SqliteStore(store)
    await reader.open()
    everything = {"agent": HOST, "status": None, "name": None, "limit": 9}
    rows = await reader.fetch_all("jobs_of_agent", everything)
    assert [(row["name"], row["status"]) for row in rows] == [("drop_old_rows", "waiting")]
    await reader.close()


async def test_what_old_streams_refer_to_goes_a_day_later_and_live_rows_at_once():
    store = SqliteStore(":memory:")
    async with serving(Talker, store=store) as stage:
        agent = await stage.agent(Talker)
        await agent.run("hello")
        first = (await agent.get_messages())[0]
        await agent.session.update_message({**first, "parts": []})
        scope = {"agent": "talker/x", "session": "", "ids": json.dumps([first["id"]])}
        uses = {"before": 1e12, "limit": 9}

        async def kept() -> tuple[int, int, bool]:
            ends = await store.fetch_one("journal_ends", {})
            versions = await store.fetch_all("message_versions", scope)
            texts = await store.fetch_all("old_blob_uses", uses)
            return len(versions), len(texts), ends is not None and ends["last"] is not None

        assert await kept() == (1, 1, True)
        stage.hours.move(PAUSE)
        await stage.until_true(lambda: len(rounds(stage)) == 1)
        assert await kept() == (1, 1, False)
        stage.hours.move(WEEK)
        await stage.until_true(lambda: len(rounds(stage)) == 2)
        assert await kept() == (0, 1, False)
        stage.hours.move(25 * 3600.0)
        await stage.until_true(lambda: len(rounds(stage)) == 3)
        assert await kept() == (0, 0, False)


async def test_the_file_gets_smaller_when_much_was_dropped(tmp_path: Path):
    path = tmp_path / "t.db"
    store = SqliteStore(path)
    async with serving(Busy, store=store) as stage:
        async with store.transaction() as tx:
            for number in range(3_000):
                body = {"hash": f"{number}", "body": "x" * 4_000}
                await tx.execute("keep_blob", body)
                await tx.execute("use_blob", {"agent": "a", "hash": f"{number}", "used_at": -1e9})
        stage.hours.move(PAUSE)
        await stage.until_true(lambda: any(r["due_at"] > stage.hours.now() for r in rounds(stage)))
    assert path.stat().st_size < 3_000 * 4_000 / 2


async def test_a_damaged_page_ends_neither_the_upkeep_nor_what_else_it_drops(
    monkeypatch: pytest.MonkeyPatch,
):
    async def damaged(_tx: Transaction, *, before: float, limit: int) -> int:
        raise StoreError(f"a damaged page among what is older than {before}, of {limit}")

    monkeypatch.setattr(upkeep, "drop_old_streams", damaged)
    async with serving(Busy) as stage:
        agent = await stage.agent(Busy)
        await agent.jobs.enqueue("work")
        await stage.until("job:finished")
        stage.hours.move(WEEK + PAUSE)
        for done in range(1, 8):  # more often than a job may fail
            await stage.until_true(lambda done=done: len(rounds(stage)) >= done)
            stage.hours.move(PAUSE)
        assert all(told["error"] is None for told in rounds(stage))
        assert await agent.jobs.list() == []
