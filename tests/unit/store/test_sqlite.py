"""What is particular to the SQLite driver: one process, one connection, the log (DESIGN §5)."""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from thinkwell.core.errors import StoreError, StoreLockedError, StoreUnavailableError
from thinkwell.store.sqlite import SqliteStore
from thinkwell.store.sqlite_checkpoint import Checkpointer
from thinkwell.store.sqlite_link import COMMITS_BETWEEN_REPORTS
from thinkwell.store.threads import WorkerThread
from thinkwell.testing.contracts.store import epoch_of, write_agent

OPEN_IN_ANOTHER_PROCESS = """
import asyncio, sys
from thinkwell.core.errors import StoreLockedError
from thinkwell.store.sqlite import SqliteStore
try:
    asyncio.run(SqliteStore(sys.argv[1]).open())
except StoreLockedError as error:
    print(error)
    sys.exit(7)
"""


@pytest.fixture
async def store(tmp_path):
    store = SqliteStore(tmp_path / "a.db")
    await store.open()
    yield store
    await store.close()


class TestOneProcessPerFile:
    async def test_a_second_process_is_refused_and_told_who_holds_it(self, store, tmp_path):
        path = tmp_path / "a.db"
        result = subprocess.run(
            [sys.executable, "-c", OPEN_IN_ANOTHER_PROCESS, str(path)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == 7, result.stderr
        assert f"pid {os.getpid()}" in result.stdout
        assert f"{path}.lock" in result.stdout

    async def test_a_second_store_in_this_process_is_refused_too(self, store, tmp_path):
        with pytest.raises(StoreLockedError, match=r"a\.db is open in this program already"):
            await SqliteStore(tmp_path / "a.db").open()
        await write_agent(store, "still-works")

    async def test_a_process_of_another_container_may_have_our_pid(self, store, tmp_path):
        """The pid in the lock file says nothing then."""
        path = tmp_path / "shared.db"
        with (tmp_path / "shared.db.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            lock.write(str(os.getpid()))
            lock.flush()
            with pytest.raises(StoreLockedError, match=f"by another process .pid {os.getpid()};"):
                await SqliteStore(path).open()

    async def test_closing_gives_the_file_back(self, store, tmp_path):
        await store.close()
        second = SqliteStore(tmp_path / "a.db")
        await second.open()
        await second.close()


class TestAskingTheStoreInsideATransaction:
    @pytest.mark.parametrize("call", ["fetch_all", "fetch_one"])
    async def test_a_read_raises_instead_of_waiting_for_itself(self, store, call):
        async with store.transaction():
            with pytest.raises(StoreError, match="Use the transaction"):
                await getattr(store, call)("agent_epoch", {"id": "a"})

    async def test_a_second_transaction_raises_instead_of_waiting_for_itself(self, store):
        async with store.transaction():
            with pytest.raises(StoreError, match="wait for itself"):
                async with store.transaction():
                    pass

    async def test_closing_raises_instead_of_waiting_for_itself(self, store):
        async with store.transaction():
            with pytest.raises(StoreError, match="wait for itself"):
                await store.close()


class TestErrors:
    @pytest.mark.parametrize("value", [1 << 70, "\ud800", object()])
    async def test_values_the_database_cannot_hold_raise_a_store_error(self, store, value):
        with pytest.raises(StoreError, match="agent_epoch"):
            await store.fetch_one("agent_epoch", {"id": value})

    async def test_a_failed_commit_is_reported_and_frees_the_store(self, store):
        block = store.transaction()
        await block.__aenter__()
        block._link.rollback()  # as SQLite itself does when the disk is full
        with pytest.raises(StoreError, match="COMMIT failed"):
            await block.__aexit__(None, None, None)
        await write_agent(store, "a")

    async def test_an_unopened_store_says_what_to_call(self, tmp_path):
        with pytest.raises(StoreError, match=r"await store\.open\(\)"):
            SqliteStore(tmp_path / "a.db").transaction()

    async def test_a_folder_in_place_of_the_file_is_a_store_error(self, tmp_path):
        with pytest.raises(StoreError, match="Cannot open the store"):
            await SqliteStore(tmp_path).open()

    async def test_a_writer_from_outside_is_reported_as_a_store_error(self, store, tmp_path):
        link = store.transaction()._link
        link._connection.execute("PRAGMA busy_timeout = 0")
        intruder = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
        intruder.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="locked"):
            await write_agent(store, "a")
        intruder.close()
        await write_agent(store, "a")


class TestTheLog:
    async def test_closing_empties_it(self, store, tmp_path):
        await write_agent(store, "a")
        await store.close()
        log = tmp_path / "a.db-wal"
        assert not log.exists() or log.stat().st_size == 0

    async def test_many_commits_wake_the_checkpointer(self, store, monkeypatch):
        looked = asyncio.Event()

        async def run_if_large(self, lock):
            looked.set()

        monkeypatch.setattr(Checkpointer, "run_if_large", run_if_large)
        for _ in range(COMMITS_BETWEEN_REPORTS):
            await write_agent(store, "a")
        await looked.wait()

    async def test_a_large_log_is_moved_into_the_database(self, store, tmp_path):
        path = tmp_path / "a.db"
        checkpointer = Checkpointer(path, lambda: sqlite3.connect(path), limit=4096)
        await fill(store)
        before = path.stat().st_size
        await checkpointer.run_if_large(asyncio.Lock())
        assert path.stat().st_size > before
        await checkpointer.close()

    async def test_a_log_far_too_large_is_finished_while_no_transaction_is_open(
        self, store, tmp_path
    ):
        path = tmp_path / "a.db"
        checkpointer = Checkpointer(path, lambda: sqlite3.connect(path), limit=0)
        lock = asyncio.Lock()
        await fill(store)
        await lock.acquire()
        running = asyncio.ensure_future(checkpointer.run_if_large(lock))
        while not lock._waiters:
            await asyncio.sleep(0)
        lock.release()
        await running
        await checkpointer.close()

    async def test_a_failing_checkpoint_is_logged_and_tried_again(self, tmp_path, caplog):
        def connect():
            raise sqlite3.OperationalError("disk I/O error")

        (tmp_path / "a.db-wal").write_bytes(b"x")
        checkpointer = Checkpointer(tmp_path / "a.db", connect, limit=0)
        checkpointer.start(asyncio.Lock())
        for number in range(1, 3):
            checkpointer.look()
            while caplog.text.count("checkpoint failed") < number:
                await asyncio.sleep(0)
        await checkpointer.close()


class TestBackgroundReads:
    async def test_they_cannot_write(self, store):
        await write_agent(store, "a")
        with pytest.raises(StoreError, match="readonly"):
            await store.fetch_in_background("bump_generation", {"id": "a"})

    async def test_they_do_not_wait_for_an_open_transaction(self, store):
        await write_agent(store, "a")
        async with store.transaction() as tx:
            await tx.execute("claim_agent", {"id": "a", "class": "c", "name": "n", "now": 1.0})
            rows = await store.fetch_in_background("agent_epoch", {"id": "a"})
        assert [row["epoch"] for row in rows] == [1]
        assert await epoch_of(store, "a") == 2


class TestWorkerThread:
    async def test_a_cancelled_caller_waits_until_its_work_is_over(self):
        worker = WorkerThread("test")
        steps: list[str] = []
        started, may_end = asyncio.Event(), threading.Event()
        loop = asyncio.get_running_loop()

        def work():
            loop.call_soon_threadsafe(started.set)
            may_end.wait()
            steps.append("worked")

        task = asyncio.ensure_future(worker.run(work))
        await started.wait()
        task.cancel()
        await asyncio.sleep(0)
        assert not task.done()
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert steps == ["worked"]
        worker.stop()


async def fill(store):
    for number in range(40):
        await write_agent(store, f"{number}-" + "x" * 2000)


@pytest.mark.parametrize("suffix", ["", "-wal"])
async def test_a_deleted_file_is_noticed_and_so_is_its_log(tmp_path: Path, suffix: str):
    """The log holds the last commits: without a name it is lost with the process (DESIGN §8.17)."""
    store = SqliteStore(tmp_path / "x.db")
    await store.open()
    store.check()
    (tmp_path / f"x.db{suffix}").unlink()
    with pytest.raises(StoreUnavailableError, match=f"x.db{suffix} was deleted"):
        store.check()
    await store.close()


async def test_a_log_that_a_crash_left_is_emptied_after_the_start(tmp_path: Path):
    """It may hold what a clear had erased from the tables."""
    crashed, later = tmp_path / "crashed.db", tmp_path / "later.db"
    store = SqliteStore(crashed)
    await store.open()
    async with store.transaction() as tx:
        await tx.execute("write_probe", {"body": "secret"})
        await tx.execute("erase_probe", {})
    for suffix in ("", "-wal"):
        shutil.copy(f"{crashed}{suffix}", f"{later}{suffix}")
    await store.close()
    log = later.with_name("later.db-wal")
    assert log.stat().st_size > 0
    again = SqliteStore(later)
    await again.open()
    while log.stat().st_size > 0:
        await asyncio.sleep(0.01)
    await again.close()
