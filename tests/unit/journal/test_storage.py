"""Values that agents and features keep (DESIGN §3, §5, §8.9)."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.journal.conftest import Bench
from thinkwell.journal.joined_writes import Together
from thinkwell.journal.storage import LARGEST_VALUE, Storage
from thinkwell.journal.turn_log import Owner


@pytest.fixture
async def storage(bench: Bench) -> Storage:
    return storage_of(bench, await bench.owner("x"))


def storage_of(bench: Bench, owner: Owner, owned_by: str = "notes") -> Storage:
    return Storage(bench.store, bench.commits, owner, owned_by)


class TestValues:
    async def test_a_value_is_kept_replaced_and_forgotten(self, storage: Storage):
        assert await storage.get("a", "none") == "none"
        await storage.set("a", {"n": [1, None, "ä"]})
        await storage.set("a", {"n": 2})
        assert await storage.get("a") == {"n": 2}
        await storage.delete("a")
        await storage.delete("a")
        assert await storage.get("a") is None

    async def test_null_is_a_value(self, storage: Storage):
        await storage.set("a", None)
        assert await storage.get("a", "none") is None

    async def test_every_owner_and_every_agent_has_its_own_keys(self, bench: Bench):
        x, y = await bench.owner("x"), await bench.owner("y")
        others = [storage_of(bench, x, "agent"), storage_of(bench, y)]
        await storage_of(bench, x).set("a", 1)
        assert [await other.get("a") for other in others] == [None, None]

    async def test_keys_are_listed_by_their_beginning_a_page_at_a_time(self, storage: Storage):
        for key in ("n:1", "n:2", "n:3", "o:1", "n"):
            await storage.set(key, key)
        assert list(await storage.list("n:")) == ["n:1", "n:2", "n:3"]
        assert list(await storage.list("n:", limit=2)) == ["n:1", "n:2"]
        assert await storage.list("n:", after="n:2") == {"n:3": "n:3"}
        assert len(await storage.list()) == 5

    async def test_what_cannot_be_kept_is_refused_with_its_key(self, storage: Storage):
        with pytest.raises(ValueError, match="'big' has"):
            await storage.set("big", "x" * LARGEST_VALUE)
        with pytest.raises(ValueError, match="A key has 1 to"):
            await storage.set("", 1)


class TestTogether:
    async def test_writes_are_one_commit_at_the_end_of_the_block(self, storage: Storage):
        async with storage.together():
            await storage.set("a", 1)
            await storage.set("b", 2)
            assert await storage.list() == {}
        assert await storage.list() == {"a": 1, "b": 2}

    async def test_a_block_that_raises_writes_nothing(self, storage: Storage):
        async def fail() -> None:
            async with storage.together():
                await storage.set("a", 1)
                raise RuntimeError

        with pytest.raises(RuntimeError):
            await fail()
        assert await storage.list() == {}

    async def test_a_block_inside_joins_the_one_around_it(self, storage: Storage):
        async with storage.together():
            async with storage.together():
                await storage.set("a", 1)
            assert await storage.list() == {}
        assert await storage.list() == {"a": 1}

    async def test_a_task_started_inside_writes_for_itself(self, storage: Storage):
        async with storage.together():
            await asyncio.gather(storage.set("a", 1))
            assert await storage.list() == {"a": 1}

    async def test_whoever_has_a_transaction_takes_the_writes_into_it(self, bench: Bench):
        owner = await bench.owner("x")
        storage = storage_of(bench, owner)
        together = Together(owner.agent_id)
        with together.collecting():
            await storage.set("a", 1)
        assert await storage.list() == {}
        await bench.commits.run(owner, together.write)
        assert await storage.list() == {"a": 1}
