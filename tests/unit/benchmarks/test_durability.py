"""What the durability benchmark relies on: its sink, its counters and its page."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks.document import with_section
from benchmarks.durability import make_due, read_stamps, statements
from benchmarks.report import Row
from benchmarks.storage import size_row, sizes
from benchmarks.subjects.durable import DiscardingSink, Stamps, count_statements
from tests.unit.journal.conftest import FakeClock, body_of
from thinkwell.journal.turn_log import Owner, TurnLog
from thinkwell.store.ownership import claim
from thinkwell.store.sqlite import SqliteStore


async def test_the_sink_tells_chunks_and_stores_none_of_them():
    store = SqliteStore(":memory:")
    await store.open()
    claimed = await claim(store, "a/x", cls="a", name="x", now=0.0)
    sink, log = DiscardingSink(store, FakeClock()), TurnLog(Owner("a/x", claimed.epoch), "t")
    log.append(body_of(0))
    sink.note(log)
    await sink.flush()
    assert log.written == 1
    log.append(body_of(1))
    sink.note(log)
    await sink.run(log.owner, lambda tx: tx.fetch_all("journal_ends", {}))
    assert log.written == 2
    ends = await store.fetch_one("journal_ends", {})
    assert ends is not None
    assert ends["last"] is None
    await sink.close()
    await store.close()


def test_every_statement_of_a_connection_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sqlite3, "connect", sqlite3.connect)  # put back what is replaced below
    count = tmp_path / "count"
    count_statements(count)
    with closing(sqlite3.connect(":memory:")) as file:
        file.execute("CREATE TABLE x (y)")
        before = statements(count)
        file.execute("SELECT y FROM x").fetchall()
        assert statements(count) == before + 1


def test_stamps_of_one_kind_are_read_back(tmp_path: Path):
    stamps = Stamps(str(tmp_path / "stamps"))
    stamps.write("delta", "ann", 1.5)
    stamps.write("job", "ann", 2.5)
    assert read_stamps(tmp_path / "stamps", "job") == [("ann", 2.5)]
    assert read_stamps(tmp_path / "none", "job") == []


def test_stored_schedules_become_due_one_after_another(tmp_path: Path):
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as file:
        file.execute("CREATE TABLE jobs (seq INTEGER PRIMARY KEY, name, due_at, scheduled_for)")
        file.executemany("INSERT INTO jobs (name) VALUES (?)", [("work",), ("other",), ("work",)])
        file.commit()
        first = make_due(path, apart=2.0)
        dues = file.execute("SELECT due_at FROM jobs ORDER BY seq").fetchall()
    assert dues == [(first,), (None,), (first + 2.0,)]


def test_bytes_count_indexes_and_are_compared_with_the_messages(tmp_path: Path):
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as file:
        file.execute("CREATE TABLE messages (body)")
        file.execute("CREATE TABLE turns (body)")
        file.execute("INSERT INTO messages VALUES (?)", ("x" * 1000,))
        file.execute("INSERT INTO turns VALUES (?)", ("x" * 1000,))
        file.commit()
        assert size_row("bytes", sizes(path), 1).value == pytest.approx(1.0)
        file.execute("CREATE INDEX by_body ON turns (body)")
        file.commit()
    row = size_row("bytes", sizes(path), 1)
    assert row.value > 1.9
    assert not row.met


def test_a_section_takes_the_place_of_the_one_with_its_heading():
    page = "# Results\n\n## One\n\nold\n\n## Two\n\nstays\n"
    assert with_section(page, "## One\n\nnew") == "# Results\n\n## One\n\nnew\n\n## Two\n\nstays\n"
    assert with_section(page, "## Three\n\nnew").endswith("stays\n\n## Three\n\nnew\n")


def test_a_row_with_a_problem_is_not_met():
    assert not Row(what="x", shown="", value=0.0, problem="the server ended").met
