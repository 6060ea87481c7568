"""The SQLite driver keeps the store contract: in a file, with power-safe commits, in memory."""

from __future__ import annotations

import pytest

from thinkwell.store.sqlite import SqliteStore
from thinkwell.testing.contracts.store import DurableStoreContract, StoreContract


class TestSqliteFile(DurableStoreContract):
    @pytest.fixture
    async def store(self, tmp_path):
        store = SqliteStore(tmp_path / "thinkwell.db")
        await store.open()
        yield store
        await store.close()

    @pytest.fixture
    async def reopen(self, store):
        async def again():
            await store.close()
            await store.open()
            return store

        return again


class TestSqliteFileWithPowerDurability(TestSqliteFile):
    @pytest.fixture
    async def store(self, tmp_path):
        store = SqliteStore(tmp_path / "thinkwell.db", durability="power")
        await store.open()
        yield store
        await store.close()


class TestSqliteMemory(StoreContract):
    @pytest.fixture
    async def store(self):
        store = SqliteStore(":memory:")
        await store.open()
        yield store
        await store.close()
