"""A file opens again after `kill -9` at any moment of its first open or migration (spec/04 §1.2).

The process kills itself between two steps of SQLite while the real `open` is under way.
"""

from __future__ import annotations

import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from thinkwell.core.errors import SchemaTooNewError, StoreError
from thinkwell.store.migrate import load_migrations
from thinkwell.store.read_only import ReadOnlySqlite
from thinkwell.store.sqlite import SqliteStore

OLD = Path(__file__).parents[2] / "fixtures" / "stores" / "0.1.0.db"
NEWEST = load_migrations()[-1].version

OPEN_UNTIL_KILLED = """
import asyncio, os, signal, sqlite3, sys
from pathlib import Path

path, beside, steps = sys.argv[1], Path(sys.argv[1] + sys.argv[2]), int(sys.argv[3])
connect, seen = sqlite3.connect, 0

def step():
    global seen
    seen += beside.exists()
    if seen > steps:
        os.kill(os.getpid(), signal.SIGKILL)

def watched(*args, **kwargs):
    connection = connect(*args, **kwargs)
    # A journal counts from its first byte on, not only once the disk has it: that moment lies
    # inside a step, where nobody can be killed on purpose.
    connection.execute("PRAGMA synchronous = OFF")
    connection.set_progress_handler(step, 1)
    return connection

sqlite3.connect = watched
from thinkwell.store.sqlite import SqliteStore
asyncio.run(SqliteStore(path).open())
"""

LEAVE_A_CUT_TRANSACTION = """
import os, signal, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA cache_size = 1")  # so that pages are written before the commit
connection.execute("BEGIN IMMEDIATE")
connection.execute("CREATE TABLE IF NOT EXISTS schema_version (version INTEGER, name TEXT)")
connection.execute("CREATE TABLE half (words TEXT)")
connection.executemany("INSERT INTO half VALUES (?)", [("x" * 3000,)] * 100)
connection.execute("DELETE FROM schema_version")
os.kill(os.getpid(), signal.SIGKILL)
"""


def run_until_killed(script: str, path: Path, *more: str) -> None:
    process = subprocess.run([sys.executable, "-c", script, str(path), *more], check=False)
    assert process.returncode == -signal.SIGKILL


def cut(path: Path) -> Path:
    """A file whose transaction was cut: half of it is in the file, the rest of the truth in the
    journal beside it.
    """
    path.touch()
    before = path.read_bytes()
    run_until_killed(LEAVE_A_CUT_TRANSACTION, path)
    assert path.read_bytes() != before
    assert journal_of(path).stat().st_size > 0
    return path


def journal_of(path: Path) -> Path:
    return path.with_name(path.name + "-journal")


@pytest.fixture(params=["new", "old"])
def path(request, tmp_path):
    path = tmp_path / "a.db"
    if request.param == "old":
        shutil.copyfile(OLD, path)
    return path


@pytest.mark.crash
class TestKilledWhileItOpens:
    async def test_the_switch_to_the_log_is_undone_and_made_again(self, path):
        run_until_killed(OPEN_UNTIL_KILLED, path, "-journal", "0")
        assert journal_of(path).stat().st_size > 0
        await opens(path)

    @pytest.mark.parametrize("steps", [0, 400, 4000])
    async def test_a_migration_is_undone_and_made_again(self, path, steps):
        run_until_killed(OPEN_UNTIL_KILLED, path, "-wal", str(steps))
        await opens(path)

    async def test_a_file_can_be_killed_time_and_again(self, path):
        for _ in range(3):
            run_until_killed(OPEN_UNTIL_KILLED, path, "-journal", "0")
        await opens(path)


@pytest.mark.crash
class TestACutTransaction:
    @pytest.fixture
    def old(self, tmp_path):
        return Path(shutil.copyfile(OLD, tmp_path / "old.db"))

    async def test_it_is_undone_by_whoever_opens_the_file(self, path):
        await opens(cut(path))

    async def test_a_file_that_was_cut_at_its_birth_still_gives_pages_back(self, tmp_path):
        await opens(cut(tmp_path / "new.db"))
        with closing(sqlite3.connect(tmp_path / "new.db")) as connection:
            assert connection.execute("PRAGMA auto_vacuum").fetchone() == (2,)

    async def test_it_is_undone_by_whoever_looks_into_the_file(self, old):
        before = old.read_bytes()
        with ReadOnlySqlite(cut(old)) as database:
            assert 0 < database.version < NEWEST
            assert database.quick_check() == []
        assert old.read_bytes() == before

    async def test_a_file_that_cannot_be_mended_is_not_read_as_it_is(self, old, tmp_path):
        cut(old)
        journal = journal_of(old)
        kept = journal.rename(tmp_path / "kept")
        journal.mkdir()  # there, but nobody can roll it back; root may write where others may not
        (journal / "file").touch()
        with pytest.raises(StoreError, match=r"old\.db"):
            ReadOnlySqlite(old)
        assert kept.exists()

    async def test_a_newer_file_is_as_its_last_commit_left_it(self, old):
        with closing(sqlite3.connect(old)) as connection:
            connection.execute("INSERT INTO schema_version VALUES (999, 'future')")
            connection.commit()
        before = old.read_bytes()
        cut(old)
        for _ in range(2):
            with pytest.raises(SchemaTooNewError):
                await SqliteStore(old).open()
        assert old.read_bytes() == before
        assert not journal_of(old).exists()


async def opens(path: Path) -> None:
    """It opens, is whole and up to date."""
    store = SqliteStore(path)
    await store.open()
    await store.close()
    with ReadOnlySqlite(path) as database:
        assert database.version == NEWEST
        assert database.quick_check() == []
