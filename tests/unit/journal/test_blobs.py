"""Texts that many turns have in common are stored once, and go when nobody refers to them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from thinkwell.journal.blobs import Blob, BlobStore, drop_unused_blobs, read_blob
from thinkwell.store.sqlite import SqliteStore

PROMPT = Blob.of("You are careful.")
DAY = 24 * 3600.0


@pytest.fixture
async def store() -> AsyncIterator[SqliteStore]:
    made = SqliteStore(":memory:")
    await made.open()
    yield made
    await made.close()


async def use(store: SqliteStore, blobs: BlobStore, agent: str, now: float = 0.0) -> int:
    """How many rows it cost."""
    async with store.transaction() as tx:
        await blobs.write(tx, [(agent, PROMPT)], now)
    blobs.committed()
    rows = await store.fetch_all("old_blob_uses", {"before": 1e12, "limit": 100})
    return len(rows)


async def drop(store: SqliteStore, before: float) -> int:
    async with store.transaction() as tx:
        return await drop_unused_blobs(tx, before=before, limit=10)


async def test_the_same_text_is_stored_once_for_all_agents(store: SqliteStore):
    blobs = BlobStore()
    assert [await use(store, blobs, agent) for agent in ("a/x", "a/y", "a/x")] == [1, 2, 2]
    assert await read_blob(store, PROMPT.hash) == PROMPT.text


async def test_a_clear_takes_only_what_nobody_else_refers_to(store: SqliteStore):
    blobs = BlobStore()
    for agent in ("a/x", "a/y"):
        await use(store, blobs, agent)
    for agent, left in (("a/x", PROMPT.text), ("a/y", None)):
        async with store.transaction() as tx:
            await tx.execute("drop_own_blobs", {"agent": agent})
            await tx.execute("drop_blob_uses", {"agent": agent})
        assert await read_blob(store, PROMPT.hash) == left


async def test_a_text_stays_as_long_as_somebody_used_it_lately(store: SqliteStore):
    blobs = BlobStore()
    await use(store, blobs, "a/x", 0.0)
    await use(store, blobs, "a/y", 3 * DAY)
    assert await drop(store, 2 * DAY) == 1
    assert await read_blob(store, PROMPT.hash) == PROMPT.text
    assert await drop(store, 3.5 * DAY) == 0  # a use is written once a day
    assert await drop(store, 5 * DAY) == 1
    assert await read_blob(store, PROMPT.hash) is None


async def test_what_was_dropped_is_written_again_with_its_next_use(store: SqliteStore):
    blobs = BlobStore()
    await use(store, blobs, "a/x", 0.0)
    blobs.forget("a/x")
    async with store.transaction() as tx:
        await tx.execute("drop_own_blobs", {"agent": "a/x"})
        await tx.execute("drop_blob_uses", {"agent": "a/x"})
    await use(store, blobs, "a/x", 1.0)
    assert await read_blob(store, PROMPT.hash) == PROMPT.text
