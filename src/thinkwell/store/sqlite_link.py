"""The connection of the event loop: short statements, errors translated, one transaction at a time.

Owned here: the connection, the lock that makes transactions follow each other, and the rule that
nobody else reads in the middle of one. A task that asks the store while its own transaction is
open would wait for itself for ever; it gets an error instead, and so does everybody once the file
is gone (`FileIdentity`).
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from thinkwell.core.errors import StoreError, StoreUnavailableError
from thinkwell.store.base import Params, Row

COMMITS_BETWEEN_REPORTS = 64
INCREMENTAL = 2
"""What SQLite calls an `auto_vacuum` that is asked for."""
SHRUNK_PAGES = 64
"""Pages that are cut off at once: a millisecond or two."""
MIN_FREE, FREE_SHARE = 1024, 4
"""So many free pages, and one page in so many, are left alone: they will be used again."""

# What sqlite3 raises for values it cannot bind, beside its own errors.
FAILURES = (sqlite3.Error, OverflowError, UnicodeEncodeError)


_NOT_WRITING = frozenset(
    {
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_PROTOCOL,
    }
)
"""What says something about the machine, not about what was to be written."""


class FileIdentity:
    """The file behind a path at the time this was made.

    A deleted file lives on without a name for whoever has it open: writes succeed and are lost with
    the process. So does one that was replaced, by a restored backup for example.
    """

    __slots__ = ("_known", "_path")

    def __init__(self, path: Path) -> None:
        self._path = os.fspath(path.absolute())
        self._known = _identity(self._path)

    def check(self) -> None:
        """Raise `StoreUnavailableError` if the path leads somewhere else now. Costs one `stat`."""
        try:
            if _identity(self._path) == self._known:
                return
            what = "replaced"
        except FileNotFoundError:
            what = "deleted"
        except OSError as error:
            raise StoreUnavailableError(
                f"the file {os.path.basename(self._path)} cannot be reached: {error.strerror}"
            ) from error
        raise StoreUnavailableError(
            f"the file {os.path.basename(self._path)} was {what} while it was in use; "
            "put it back, or restart"
        )


def _identity(path: str) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_dev, found.st_ino


class SqliteLink:
    """One open connection and the right to use it."""

    __slots__ = ("_check", "_commits", "_connection", "_owner", "_report", "_statements", "lock")

    def __init__(
        self,
        connection: sqlite3.Connection,
        statements: Mapping[str, str],
        report: Callable[[], None],
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """`check` raises if writes would be lost; `report` hears of every so many commits."""
        self.lock = asyncio.Lock()
        self._connection = connection
        self._statements = statements
        self._report = report
        self._check = check
        self._commits = 0
        self._owner: asyncio.Task[Any] | None = None

    def fetch_all(self, query: str, params: Params) -> Sequence[Row]:
        """Every row of a named query."""
        try:
            return self._connection.execute(self._sql(query), params).fetchall()
        except FAILURES as error:
            fail(query, error)

    def fetch_one(self, query: str, params: Params) -> Row | None:
        """The first row of a named query."""
        try:
            cursor = self._connection.execute(self._sql(query), params)
            row: Row | None = cursor.fetchone()
            cursor.close()  # an unfinished statement would stand in the way of the commit
        except FAILURES as error:
            fail(query, error)
        return row

    def execute(self, query: str, params: Params) -> int:
        """Run a named query; how many rows it changed."""
        try:
            return self._connection.execute(self._sql(query), params).rowcount
        except FAILURES as error:
            fail(query, error)

    def execute_many(self, query: str, rows: Sequence[Params]) -> None:
        """Run a named query once per row."""
        try:
            self._connection.executemany(self._sql(query), rows)
        except FAILURES as error:
            fail(query, error)

    def shrink(self) -> bool:
        """Cut free pages off the file. The caller holds the lock; no transaction is open."""
        try:
            free, pages, mode = (
                self._connection.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("freelist_count", "page_count", "auto_vacuum")
            )
            if mode != INCREMENTAL or free < MIN_FREE or free * FREE_SHARE < pages:
                return False
            # A script: sqlite3 runs this pragma for one page only when it is a single statement.
            self._connection.executescript(f"PRAGMA incremental_vacuum({SHRUNK_PAGES})")
        except sqlite3.Error as error:
            fail("shrink", error)
        return True

    def begin(self) -> None:
        """Start a write transaction. The caller holds the lock."""
        self._check()
        try:
            # The write lock now: a transaction that reads first and writes later could fail in
            # the middle.
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            fail("BEGIN", error)
        self._owner = asyncio.current_task()

    def commit(self) -> None:
        """Make the transaction last, or undo it and raise."""
        try:
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            self.rollback()
            fail("COMMIT", error)

    def rollback(self) -> None:
        """Undo the transaction. SQLite may have done so already, after a full disk for example."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def set_savepoint(self) -> None:
        """From here on, what is written can be undone without the rest."""
        try:
            self._connection.execute("SAVEPOINT part")
        except sqlite3.Error as error:
            fail("SAVEPOINT", error)

    def leave_savepoint(self, *, undo: bool) -> None:
        """Keep what was written since, or take it back."""
        if not self._connection.in_transaction:
            return  # a full disk: SQLite has undone everything, and the block raises that
        try:
            if undo:
                self._connection.execute("ROLLBACK TO part")
            self._connection.execute("RELEASE part")
        except sqlite3.Error as error:
            fail("RELEASE", error)

    def end(self, *, committed: bool) -> None:
        """Let the next one in. Every so many commits the store is told, to look after the log."""
        self._owner = None
        self.lock.release()
        if committed:
            self._commits += 1
            # A look at the size of the log is a system call; 64 commits cannot make it grow much.
            if self._commits % COMMITS_BETWEEN_REPORTS == 0:
                self._report()

    def refuse_own_transaction(self, call: str) -> None:
        """Raise if the current task has a transaction open and would wait for itself."""
        # Waiting would never end, and nothing would say why.
        if self._owner is not None and self._owner is asyncio.current_task():
            raise StoreError(
                f"{call}() was called on the store inside a transaction of the same task and would "
                "wait for itself. Use the transaction: `async with store.transaction() as tx: "
                "await tx.fetch_all(...)`."
            )

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _sql(self, query: str) -> str:
        try:
            return self._statements[query]
        except KeyError:
            raise StoreError(
                f"No query is named {query!r}. Named queries stand in store/queries/*.sql below "
                "a line `-- name: …`."
            ) from None


def fail(query: str, error: Exception) -> NoReturn:
    """Raise what the database said as a `StoreError`, with the cause kept."""
    text = f"{query} failed: {error}"
    # The low byte is the primary code; the rest says which of its causes it was.
    if getattr(error, "sqlite_errorcode", 0) & 0xFF in _NOT_WRITING:
        raise StoreUnavailableError(text) from error
    raise StoreError(text) from error
