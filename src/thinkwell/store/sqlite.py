"""The SQLite driver: one WAL file (or memory) for all agents of an app.

Owned here: opening and closing, the pragmas, and which work runs where. Short statements run on
the event loop's own connection; long reads, checkpoints and commits that wait for the disk run in
threads.

Invariants: one process per file (OS lock); a transaction block that returned survives `kill -9`,
and with `durability="power"` also a power cut; a file opens again whenever its process was killed;
a file of a newer schema is refused untouched.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Literal

from thinkwell.core.errors import StoreError
from thinkwell.store.base import Params, Row
from thinkwell.store.migrate import load_migrations, migrate_sqlite, pending, sqlite_schema_version
from thinkwell.store.queries import statements
from thinkwell.store.sqlite_checkpoint import LOG_LIMIT_BYTES, Checkpointer
from thinkwell.store.sqlite_link import FAILURES, FileIdentity, SqliteLink, fail
from thinkwell.store.sqlite_lock import FileLock
from thinkwell.store.sqlite_look import connect_to_look
from thinkwell.store.sqlite_transaction import SqliteTransaction
from thinkwell.store.threads import WorkerThread

Durability = Literal["process", "power"]

MEMORY = ":memory:"
BUSY_TIMEOUT_MS = 5000
OLDEST_SQLITE = (3, 35, 0)  # RETURNING


class SqliteStore:
    """A `Store` in one SQLite file, or in memory with the path `":memory:"`."""

    def __init__(self, path: str | Path, *, durability: Durability = "process") -> None:
        self._memory = str(path) == MEMORY
        self._path = Path(path)
        self._durability: Durability = durability
        self._link: SqliteLink | None = None
        self._lock: FileLock | None = None
        self._files: tuple[FileIdentity, ...] = ()
        self._log = self._path.with_name(self._path.name + "-wal")
        self._log_was_left = False
        self._checkpointer: Checkpointer | None = None
        self._committer: WorkerThread | None = None
        self._reader: WorkerThread | None = None
        self._reading: sqlite3.Connection | None = None

    async def open(self) -> None:
        """Lock the file, bring its schema up to date.

        Raises `StoreLockedError`, `SchemaTooNewError`.
        """
        if self._link is not None:
            return
        opener = WorkerThread("thinkwell-open")
        try:
            self._start(await opener.run(self._prepare))
        except BaseException:
            self._release()
            raise
        finally:
            opener.stop()

    async def close(self) -> None:
        """Wait for the open transaction, empty the log, release the file. Idempotent."""
        link = self._link
        if link is None:
            return
        link.refuse_own_transaction("close")
        async with link.lock:
            if self._link is None:
                return
            self._link, self._files = None, ()
            try:
                await self._stop_threads()
            finally:
                link.close()
                self._release()

    def check(self) -> None:
        """Raise if the file, or the log with the last commits beside it, was deleted or replaced:
        what is written now would be lost.
        """
        for file in self._files:
            file.check()

    def transaction(self) -> SqliteTransaction:
        """A write transaction: commits when the block ends, rolls back when the block raises."""
        return SqliteTransaction(self._opened(), self._committer)

    async def fetch_all(self, query: str, params: Params, /) -> Sequence[Row]:
        """Every row of the named query, as of the last commit."""
        link = self._opened()
        if link.lock.locked():
            link.refuse_own_transaction("fetch_all")
            async with link.lock:
                return link.fetch_all(query, params)
        return link.fetch_all(query, params)

    async def fetch_one(self, query: str, params: Params, /) -> Row | None:
        """The first row of the named query, as of the last commit, or None."""
        link = self._opened()
        if link.lock.locked():
            link.refuse_own_transaction("fetch_one")
            async with link.lock:
                return link.fetch_one(query, params)
        return link.fetch_one(query, params)

    async def scrub(self) -> None:
        """Content was erased: the log, which still holds it, is emptied soon.

        The database itself is overwritten where something is deleted (`secure_delete`).
        """
        self._opened()
        if self._checkpointer is not None:
            self._checkpointer.empty_soon()

    async def rewrite(self) -> None:
        """Write the file anew: `secure_delete` overwrites what is deleted, but not the copies that
        were left in unused space when rows moved from one page to another.
        """
        link = self._opened()
        link.refuse_own_transaction("rewrite")
        if self._checkpointer is not None:
            await self._checkpointer.rewrite(link.lock)

    async def shrink(self) -> bool:
        """Give some unused pages of the file back, if a good part of it is unused.

        Free pages are used again, so a little of them saves work. A file of an older release
        keeps its size until `thinkwell doctor --compact` has rewritten it.
        """
        link = self._opened()
        if self._memory:
            return False
        link.refuse_own_transaction("shrink")
        async with link.lock:
            return link.shrink()

    async def fetch_in_background(self, query: str, params: Params, /) -> Sequence[Row]:
        """A long read in a thread, as of the last commit. A store in memory reads in place."""
        self._opened()
        if self._reader is None:
            return await self.fetch_all(query, params)
        return await self._reader.run(lambda: self._read(query, params))

    def _prepare(self) -> sqlite3.Connection:
        if sqlite3.sqlite_version_info < OLDEST_SQLITE:
            raise StoreError(
                f"SQLite {sqlite3.sqlite_version} is too old; Thinkwell needs 3.35 or newer."
            )
        try:
            connection = _connect(MEMORY) if self._memory else self._lock_and_connect()
            try:
                migrate_sqlite(connection, str(self._path))
            except BaseException:
                connection.close()
                raise
        except (sqlite3.Error, OSError) as error:
            raise StoreError(f"Cannot open the store {self._path}: {error}") from error
        return connection

    def _lock_and_connect(self) -> sqlite3.Connection:
        # The lock comes before any look at the file: two processes that both find no schema would
        # both make one.
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = FileLock(self._path)
        lock.acquire()
        self._lock = lock
        self._log_was_left = self._log.exists() and self._log.stat().st_size > 0
        make_private(self._path)
        self._refuse_newer_file()
        # Asked only now: a file whose first transaction was cut has become empty again.
        return self._connect_file(new=self._path.stat().st_size == 0)

    def _refuse_newer_file(self) -> None:
        """Look at the version read-only: the pragmas of a normal connection change a file."""
        if not self._path.exists() or self._path.stat().st_size == 0:
            return
        # An older program must leave a newer file exactly as its last commit left it, WAL mode
        # included: somebody will go back to the newer program.
        with closing(connect_to_look(self._path)) as connection:
            pending(load_migrations(), sqlite_schema_version(connection), str(self._path))

    def _connect_file(self, *, new: bool = False) -> sqlite3.Connection:
        connection = _connect(self._path)
        try:
            self._set_up(connection, new=new)
        except BaseException:
            connection.close()
            raise
        return connection

    def _set_up(self, connection: sqlite3.Connection, *, new: bool) -> None:
        if new:  # only a file without tables can be told that its pages are given back (`shrink`)
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL").fetchall()
        synchronous = "FULL" if self._durability == "power" else "NORMAL"
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
        # NORMAL does not wait for the disk: the kernel has the commit, so it survives the process
        # but not the machine.
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        # A checkpoint inside a commit made 6 % of commits slower than 5 ms; the `Checkpointer`
        # does it beside the loop.
        connection.execute("PRAGMA wal_autocheckpoint = 0").fetchall()
        connection.execute(f"PRAGMA journal_size_limit = {LOG_LIMIT_BYTES}").fetchall()

    def _start(self, connection: sqlite3.Connection) -> None:
        queries = statements("sqlite")
        if self._memory:
            self._link = SqliteLink(connection, queries, lambda: None)
            return
        checkpointer = Checkpointer(self._path, self._connect_file)
        # The log is there from the first read on, and stays the same file while it is in use.
        database, *_ = self._files = tuple(map(FileIdentity, (self._path, self._log)))
        self._link = SqliteLink(connection, queries, checkpointer.look, database.check)
        checkpointer.start(self._link.lock)
        if self._log_was_left:  # by a crash: it may hold what a clear had erased
            checkpointer.empty_soon()
        self._checkpointer = checkpointer
        self._reader = WorkerThread("thinkwell-read")
        if self._durability == "power":
            self._committer = WorkerThread("thinkwell-commit")

    async def _stop_threads(self) -> None:
        if self._reading is not None:
            # A long read may take minutes; a stop does not wait for it.
            self._reading.interrupt()
        if self._reader is not None:
            await self._reader.run(self._close_reading)
            self._reader.stop()
        if self._checkpointer is not None:
            await self._checkpointer.close()
        if self._committer is not None:
            self._committer.stop()
        self._reader = self._checkpointer = self._committer = None

    def _read(self, query: str, params: Params) -> Sequence[Row]:
        sql = statements("sqlite").get(query)
        if sql is None:
            raise StoreError(f"No query is named {query!r}.")
        try:
            if self._reading is None:
                self._reading = self._connect_file()
                # Whatever a query says, this connection cannot write: there is one writer, on the
                # loop.
                self._reading.execute("PRAGMA query_only = ON")
            return self._reading.execute(sql, params).fetchall()
        except FAILURES as error:
            fail(query, error)

    def _close_reading(self) -> None:
        if self._reading is not None:
            self._reading.close()
            self._reading = None

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _opened(self) -> SqliteLink:
        if self._link is None:
            raise StoreError("The store is not open. Call `await store.open()` first.")
        return self._link


def make_private(path: Path) -> None:
    """A new file is its owner's alone; SQLite gives what it makes beside it the same mode.

    One that exists keeps its mode: somebody may have shared it on purpose.
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def _connect(target: str | Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        # `isolation_level=None`: transactions begin where we say so, not where the driver
        # guesses. `check_same_thread=False`: it is opened in a thread and then used on the loop
        # alone. Room for every named query, so that none is parsed twice.
        target,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=512,
    )
    connection.row_factory = sqlite3.Row
    connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}").fetchall()
    # What is deleted is overwritten: a clear erases, also what was replaced or trimmed before it.
    connection.execute("PRAGMA secure_delete = ON").fetchall()
    return connection
