"""Rewriting a SQLite file without the space that nothing uses, while nobody serves it.

A file of this release gives that space back by itself, a piece at a time (`SqliteStore.shrink`).
One that an older release has made cannot, until it is rewritten once: that is what this does.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from thinkwell.core.errors import StoreError
from thinkwell.store.migrate import load_migrations, pending, sqlite_schema_version
from thinkwell.store.sqlite_lock import FileLock


def compact_file(path: Path) -> tuple[int, int]:
    """Rewrite a database; its size before and after.

    Needs as much free space as the file has content. Raises `StoreLockedError` if a process uses
    it, and leaves it as it was if anything fails.
    """
    if not path.is_file():
        raise StoreError(f"There is no database {path}.")
    lock = FileLock(path)
    lock.acquire()
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            pending(load_migrations(), sqlite_schema_version(connection), str(path))
            # What waits in the log is moved first, so that both sizes tell the truth.
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            before = path.stat().st_size
            connection.execute("PRAGMA secure_delete = ON").fetchall()
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL").fetchall()
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return before, path.stat().st_size
    except sqlite3.Error as error:
        raise StoreError(f"Cannot rewrite {path}: {error}") from error
    finally:
        lock.release()
