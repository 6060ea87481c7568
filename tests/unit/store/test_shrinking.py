"""The file gets smaller again when much of it is unused (DESIGN §5)."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from thinkwell.core.errors import StoreLockedError
from thinkwell.store.sqlite import SqliteStore
from thinkwell.store.sqlite_compact import compact_file
from thinkwell.store.sqlite_link import MIN_FREE

TEXT = "x" * 4000
MANY = 3 * MIN_FREE


async def filled(store: SqliteStore, rows: int = MANY) -> None:
    async with store.transaction() as tx:
        for number in range(rows):
            await tx.execute("keep_blob", {"hash": f"{number}", "body": TEXT})
            await tx.execute("use_blob", {"agent": "a", "hash": f"{number}", "used_at": 0.0})


async def emptied(store: SqliteStore) -> None:
    async with store.transaction() as tx:
        await tx.execute("drop_own_blobs", {"agent": "a"})


def size_of(path: Path) -> int:
    return path.stat().st_size


async def test_a_file_gives_its_unused_pages_back_a_piece_at_a_time(tmp_path: Path):
    store = SqliteStore(tmp_path / "t.db")
    await store.open()
    await filled(store)
    await emptied(store)
    pieces = 0
    while await store.shrink():
        pieces += 1
    assert pieces > 10
    await store.close()
    assert size_of(tmp_path / "t.db") < MANY * len(TEXT) / 1.5


async def test_a_file_that_is_in_use_keeps_its_pages(tmp_path: Path):
    store = SqliteStore(tmp_path / "t.db")
    await store.open()
    await filled(store)
    assert not await store.shrink()
    await store.close()


def old_file(path: Path) -> None:
    """As an older release made it: no page of it can be given back."""
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA auto_vacuum = NONE")
        file.execute("CREATE TABLE schema_version (version INTEGER PRIMARY KEY, name TEXT)")
        file.execute("DROP TABLE schema_version")


async def test_a_file_of_an_older_release_can_once_it_was_compacted(tmp_path: Path):
    path = tmp_path / "t.db"
    old_file(path)
    store = SqliteStore(path)
    await store.open()
    await filled(store)
    await emptied(store)
    assert not await store.shrink()
    with pytest.raises(StoreLockedError):
        compact_file(path)
    await store.close()
    before, after = compact_file(path)
    assert after < before / 2
    await store.open()
    await filled(store)
    await emptied(store)
    assert await store.shrink()
    await store.close()
