"""Looking into a SQLite file without opening it for writing, also while a server works on it.

For the command line: named queries, a copy of the whole file, a check of its pages. Nothing here
takes the lock of the store, migrates, or changes a byte of what is stored. What a crash has left
uncommitted is undone, as by everybody who opens a SQLite file.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from thinkwell.core.errors import StoreError
from thinkwell.store.base import Params
from thinkwell.store.migrate import load_migrations, pending, sqlite_schema_version
from thinkwell.store.queries import statements
from thinkwell.store.sqlite_look import connect_read_only, connect_to_look


class ReadOnlySqlite:
    """A database file, for reading. Use it as a context manager."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.is_file():
            raise StoreError(
                f"There is no database {path}. Name one with --store, for example "
                '--store "sqlite:///folder/file.db".'
            )
        try:
            self._connection = _connect(path)
        except sqlite3.Error as error:
            raise StoreError(f"Cannot read {path}: {error}") from error

    def __enter__(self) -> ReadOnlySqlite:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    @property
    def version(self) -> int:
        """The schema version of the file. Raises `StoreError` if it cannot be read."""
        try:
            return sqlite_schema_version(self._connection)
        except sqlite3.Error as error:
            raise StoreError(f"Cannot read {self.path}: {error}") from error

    @property
    def newest_version(self) -> int:
        """The schema version this Thinkwell knows."""
        return load_migrations()[-1].version

    def require_current(self) -> None:
        """Raise if the queries of this Thinkwell do not fit the file."""
        if pending(load_migrations(), self.version, str(self.path)):
            raise StoreError(
                f"{self.path} has schema version {self.version}; this Thinkwell reads version "
                f"{self.newest_version}. Serve it once, which brings it up to date."
            )

    def fetch_all(self, query: str, params: Params) -> list[dict[str, Any]]:
        """Every row of the named query, as of the last commit."""
        try:
            return [dict(row) for row in self._connection.execute(_sql(query), params)]
        except sqlite3.Error as error:
            raise StoreError(f"Cannot read {self.path}: {error}") from error

    @contextmanager
    def snapshot(self) -> Generator[None]:
        """Everything read in the block is as of one commit, whatever is written meanwhile."""
        self._connection.execute("BEGIN")
        try:
            yield
        finally:
            self._connection.execute("ROLLBACK")

    def rows(self, query: str, params: Params) -> Iterator[dict[str, Any]]:
        """The rows of the named query one by one, for what is too large to be held."""
        try:
            for row in self._connection.execute(_sql(query), params):
                yield dict(row)
        except sqlite3.Error as error:
            raise StoreError(f"Cannot read {self.path}: {error}") from error

    def quick_check(self) -> Sequence[str]:
        """What SQLite finds wrong with the file; nothing if it is well."""
        try:
            rows = self._connection.execute("PRAGMA quick_check(20)").fetchall()
        except sqlite3.DatabaseError as error:
            return [str(error)]
        return [str(row[0]) for row in rows if row[0] != "ok"]

    def copy_to(self, target: Path) -> int:
        """A copy of everything that is committed, complete or not there at all; its size.

        Writers go on meanwhile: a reader of a write-ahead log blocks nobody.
        """
        part = target.with_name(f"{target.name}.part")
        with suppress(FileNotFoundError):
            part.unlink()
        try:
            os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            with closing(sqlite3.connect(part)) as copy:
                self._connection.backup(copy)
                copy.execute("PRAGMA journal_mode = DELETE").fetchall()  # one file, no log
            os.replace(part, target)
        except (sqlite3.Error, OSError) as error:
            with suppress(FileNotFoundError):
                part.unlink()
            raise StoreError(f"Cannot write the copy {target}: {error}") from error
        return target.stat().st_size


def _connect(path: Path) -> sqlite3.Connection:
    """Without a server there may be no log and no right to make one: then nobody writes, and the
    file can be read as it is.
    """
    try:
        connection = connect_to_look(path)
    except sqlite3.OperationalError:
        # What a crash left beside the file is a part of it: without it we would read half a
        # transaction, or miss the last ones.
        if _left(path, "-wal") or _left(path, "-journal"):
            raise
        connection = connect_read_only(path, "mode=ro&immutable=1")
    connection.row_factory = sqlite3.Row
    return connection


def _left(path: Path, suffix: str) -> bool:
    beside = path.with_name(path.name + suffix)
    return beside.exists() and beside.stat().st_size > 0


def _sql(query: str) -> str:
    sql = statements("sqlite").get(query)
    if sql is None:
        raise StoreError(f"No query is named {query!r}.")
    return sql
