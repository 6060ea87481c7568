"""What a turn leaves in the store (DESIGN §5): how many bytes, and for how long."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from tests.turns.support import running
from thinkwell import Think
from thinkwell.journal.reading import read_packed_journal
from thinkwell.journal.trimming import TRIM_EVERY, trim_journal
from thinkwell.messages.message import text_of
from thinkwell.store.sqlite import SqliteStore
from thinkwell.testing import text

WORDS = [f" word{number % 7}" for number in range(200)]


class Plain(Think):
    system_prompt = "You are brief."


def stored_bytes(path: Path) -> dict[str, int]:
    """The bytes of all values in each table, the live journal left out: it is trimmed."""
    with closing(sqlite3.connect(path)) as file:
        tables = file.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        return {name: _bytes_of(file, name) for (name,) in tables if name != "journal"}


def _bytes_of(file: sqlite3.Connection, table: str) -> int:
    columns = [row[1] for row in file.execute(f"PRAGMA table_info({table})")]
    lengths = " + ".join(f"COALESCE(LENGTH(CAST({name} AS BLOB)), 0)" for name in columns)
    return file.execute(f"SELECT COALESCE(SUM({lengths}), 0) FROM {table}").fetchone()[0]


async def live_rows(store: SqliteStore) -> int:
    rows = await store.fetch_one("journal_ends", {})
    assert rows is not None
    return 0 if rows["first"] is None else rows["last"] - rows["first"] + 1


async def test_a_turn_of_200_deltas_takes_at_most_three_kilobytes(tmp_path: Path):
    path = tmp_path / "t.db"
    async with running(Plain, "one", [text(*WORDS)], store=SqliteStore(path)) as stage:
        await stage.agent.run("hi")  # the first turn also stores what all have in common
        before = stored_bytes(path)
        await stage.agent.run("hi")
        after = stored_bytes(path)
    grown = {name: after[name] - before[name] for name in after}
    assert sum(grown.values()) <= 3_000, grown


async def test_a_short_turn_is_not_compressed_and_not_larger(tmp_path: Path):
    path = tmp_path / "t.db"
    store = SqliteStore(path)
    async with running(Plain, "one", store=store) as stage:
        result = await stage.agent.run("hi")
        kept = await read_packed_journal(store, "plain/x", result.request_id)
    with closing(sqlite3.connect(path)) as file:
        (stream,) = file.execute("SELECT stream FROM packed_journals").fetchone()
    assert kept is not None
    assert stream == f"[{','.join(kept.bodies)}]".encode()


async def test_live_rows_of_ended_turns_go_later_and_for_many_turns_at_once():
    store = SqliteStore(":memory:")
    async with running(Plain, *["one"] * 3, store=store) as stage:
        for _ in range(3):
            await stage.agent.run("hi")
        assert await live_rows(store) > 0
        await trim_journal(store)
        assert await live_rows(store) == 0
        assert text_of(await stage.answer()) == "one"


async def test_a_busy_host_trims_its_journal_by_itself():
    store = SqliteStore(":memory:")
    turns = TRIM_EVERY // 3
    async with running(Plain, *["one"] * turns, store=store) as stage:
        for _ in range(turns):
            await stage.agent.run("hi")
        assert await live_rows(store) < TRIM_EVERY
