"""A look into a SQLite file that leaves what is stored in it as it is.

Invariant: whoever looks sees what was committed. A process that is killed while a file is not in
WAL mode (a new one until its first open is through, a copy, one of another program) leaves half a
transaction in it and a hot journal beside it. That has to be undone before anybody can read, also
by those who change nothing else.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

BUSY_TIMEOUT = 5.0
"""Seconds to wait for a page that is being written."""


def connect_to_look(path: Path) -> sqlite3.Connection:
    """A read-only connection. Raises `sqlite3.Error` if the file cannot be read, or mended."""
    try:
        return connect_read_only(path)
    except sqlite3.OperationalError as error:
        if error.sqlite_errorname != "SQLITE_READONLY_ROLLBACK":
            raise
    _roll_back(path)
    return connect_read_only(path)


def connect_read_only(path: Path, options: str = "mode=ro") -> sqlite3.Connection:
    """A connection that has read from the file once: only then SQLite says whether it can."""
    connection = _connect(path, options)
    try:
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def _roll_back(path: Path) -> None:
    """Undo the transaction that a crash cut.

    Only for a hot journal: a connection that may write would also empty the log of a file in WAL
    mode when it closes. SQLite's own locks keep this from the journal of a living process.
    """
    with closing(_connect(path, "mode=rw")) as connection:
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()


def _connect(path: Path, options: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?{options}", uri=True, timeout=BUSY_TIMEOUT)
