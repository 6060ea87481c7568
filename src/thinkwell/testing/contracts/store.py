"""What every store must do, as a pytest class.

Subclass `StoreContract` and give it a `store` fixture: an open, empty store, closed afterwards. A
store that keeps its data subclasses `DurableStoreContract` and has a `reopen` fixture as well: a
function that closes the store and opens the same database again. The suite needs pytest and
pytest-asyncio.

    class TestMyStore(DurableStoreContract):
        @pytest.fixture
        async def store(self): ...
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from thinkwell.core.errors import StoreError
from thinkwell.core.tasks import TaskOwner
from thinkwell.store.base import Reader, Store, Transaction
from thinkwell.store.deleting import remove_agent
from thinkwell.store.ownership import check_epochs, claim

Reopen = Callable[[], Awaitable[Store]]


def agent_params(agent_id: str) -> dict[str, Any]:
    """Parameters of the query `claim_agent`, which the suite uses as its write."""
    return {"id": agent_id, "class": "assistant", "name": agent_id, "now": 1.0}


async def epoch_of(reader: Reader, agent_id: str) -> int | None:
    """The epoch a reader sees, None without the row."""
    row = await reader.fetch_one("agent_epoch", {"id": agent_id})
    return None if row is None else row["epoch"]


async def write_agent(store: Store, agent_id: str) -> None:
    """One committed row."""
    async with store.transaction() as tx:
        await tx.execute("claim_agent", agent_params(agent_id))


async def fail_after_writing_a_part(tx: Transaction, agent_id: str) -> None:
    """A part of a transaction that writes and then raises."""
    async with tx.savepoint():
        await tx.execute("bear_agent", agent_params(agent_id))
        raise ValueError("the part failed")


async def fail_after_writing(store: Store, agent_id: str) -> None:
    """A block that writes and then raises."""
    async with store.transaction() as tx:
        await tx.execute("claim_agent", agent_params(agent_id))
        raise ValueError("the block failed")


async def read_then_write(store: Store, agent_id: str) -> None:
    """Raise the epoch by reading it, giving way, and writing one more claim per number seen."""
    async with store.transaction() as tx:
        before = await epoch_of(tx, agent_id) or 0
        await asyncio.sleep(0)
        await tx.execute("claim_agent", agent_params(agent_id))
        after = await epoch_of(tx, agent_id)
        assert after == before + 1, "another transaction wrote in between"


class Held:
    """A transaction held open by a task of its own until it is told to end."""

    def __init__(self, store: Store, agent_id: str) -> None:
        self.wrote = asyncio.Event()
        self.may_end = asyncio.Event()
        self._tasks = TaskOwner("contract")
        self.task = self._tasks.spawn(self._run(store, agent_id), name="held")

    async def _run(self, store: Store, agent_id: str) -> None:
        async with store.transaction() as tx:
            await tx.execute("claim_agent", agent_params(agent_id))
            self.wrote.set()
            await self.may_end.wait()


@pytest.mark.asyncio
class StoreContract:
    """The promises of `thinkwell.store.base.Store` for any driver."""

    async def test_a_block_that_ends_commits(self, store: Store) -> None:
        """What was written is there for everybody."""
        await write_agent(store, "a")
        assert await epoch_of(store, "a") == 1

    async def test_a_block_that_raises_rolls_back(self, store: Store) -> None:
        """The error comes out and no row stays."""
        with pytest.raises(ValueError, match="the block failed"):
            await fail_after_writing(store, "a")
        assert await epoch_of(store, "a") is None

    async def test_a_savepoint_that_raises_undoes_only_its_own_part(self, store: Store) -> None:
        """What stands before and behind it stays."""
        async with store.transaction() as tx:
            await tx.execute("bear_agent", agent_params("before"))
            with pytest.raises(ValueError, match="the part failed"):
                await fail_after_writing_a_part(tx, "inside")
            async with tx.savepoint():
                await tx.execute("bear_agent", agent_params("after"))
        found = [await epoch_of(store, name) is not None for name in ("before", "inside", "after")]
        assert found == [True, False, True]

    async def test_a_cancelled_block_rolls_back_and_lets_the_next_one_in(
        self, store: Store
    ) -> None:
        """No transaction stays open behind a cancelled task."""
        held = Held(store, "a")
        await held.wrote.wait()
        held.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await held.task
        await write_agent(store, "b")
        assert (await epoch_of(store, "a"), await epoch_of(store, "b")) == (None, 1)

    async def test_cancelled_while_waiting_it_never_begins(self, store: Store) -> None:
        """A waiter that gives up neither writes nor blocks the others."""
        held = Held(store, "a")
        await held.wrote.wait()
        waiting = Held(store, "b")
        await asyncio.sleep(0)
        waiting.task.cancel()
        held.may_end.set()
        await asyncio.gather(held.task, waiting.task, return_exceptions=True)
        await write_agent(store, "c")
        assert (await epoch_of(store, "a"), await epoch_of(store, "b")) == (1, None)

    async def test_a_transaction_sees_its_own_writes(self, store: Store) -> None:
        """Reads inside the block follow the writes before them."""
        async with store.transaction() as tx:
            await tx.execute("claim_agent", agent_params("a"))
            assert await epoch_of(tx, "a") == 1

    async def test_nobody_else_sees_a_transaction_before_it_commits(self, store: Store) -> None:
        """A reader outside gets the state before or after the block, nothing in between."""
        held = Held(store, "a")
        await held.wrote.wait()
        tasks = TaskOwner("contract")
        outside = tasks.spawn(epoch_of(store, "a"), name="read")
        await asyncio.sleep(0)
        assert not outside.done() or outside.result() is None
        held.may_end.set()
        await held.task
        assert await outside in (None, 1)
        assert await epoch_of(store, "a") == 1

    async def test_concurrent_transactions_follow_each_other(self, store: Store) -> None:
        """Twenty tasks that read, wait and write lose no update."""
        await asyncio.gather(*(read_then_write(store, "a") for _ in range(20)))
        assert await epoch_of(store, "a") == 20

    async def test_one_failing_transaction_does_not_touch_its_neighbours(
        self, store: Store
    ) -> None:
        """The failed block is undone alone."""
        work = [write_agent(store, "a"), fail_after_writing(store, "b"), write_agent(store, "c")]
        await asyncio.gather(*work, return_exceptions=True)
        seen = [await epoch_of(store, agent_id) for agent_id in ("a", "b", "c")]
        assert seen == [1, None, 1]

    async def test_execute_says_how_many_rows_changed(self, store: Store) -> None:
        """Conditional updates decide by this number who won."""
        await write_agent(store, "a")
        async with store.transaction() as tx:
            hit = await tx.execute("set_agent_state", {"id": "a", "state": "1"})
            miss = await tx.execute("set_agent_state", {"id": "nobody", "state": "1"})
        assert (hit, miss) == (1, 0)

    async def test_execute_many_runs_once_per_row(self, store: Store) -> None:
        """A batch of rows is one call."""
        async with store.transaction() as tx:
            await tx.execute_many("touch_session", [_session(n) for n in range(5)])
        rows = await store.fetch_all("session_ids", {"agent": "a"})
        assert [row["id"] for row in rows] == ["s0", "s1", "s2", "s3", "s4"]

    async def test_a_row_that_breaks_a_unique_key_is_refused(self, store: Store) -> None:
        """The second turn with an id raises and its whole block is undone."""
        await _insert_turns(store, "t1")
        with pytest.raises(StoreError):
            await _insert_turns(store, "t2", "t1")
        rows = await store.fetch_all("unsettled_turns", {"agent": "a"})
        assert [row["id"] for row in rows] == ["t1"]

    async def test_an_unknown_query_raises_and_names_it(self, store: Store) -> None:
        """Everywhere a query can be named."""
        with pytest.raises(StoreError, match="no_such_query"):
            await store.fetch_all("no_such_query", {})
        with pytest.raises(StoreError, match="no_such_query"):
            await store.fetch_in_background("no_such_query", {})

    async def test_a_missing_parameter_raises_with_its_cause(self, store: Store) -> None:
        """The driver's own error is kept as the cause."""
        with pytest.raises(StoreError, match="agent_epoch") as caught:
            await store.fetch_one("agent_epoch", {})
        assert caught.value.__cause__ is not None

    async def test_a_transaction_is_useless_after_its_block(self, store: Store) -> None:
        """A handle that escaped cannot write outside a transaction."""
        async with store.transaction() as tx:
            pass
        with pytest.raises(StoreError):
            await tx.execute("claim_agent", agent_params("a"))

    async def test_texts_come_back_as_they_went_in(self, store: Store) -> None:
        """Quotes, percent signs, colons, emoji and newlines are data."""
        text = 'it\'s 100% :name "x"\n\U0001f642 漢字'
        await write_agent(store, "a")
        async with store.transaction() as tx:
            await tx.execute("set_agent_state", {"id": "a", "state": text})
        row = await store.fetch_one("agent_row", {"id": "a"})
        assert row is not None
        assert row["state"] == text

    async def test_a_background_read_sees_the_last_commit(self, store: Store) -> None:
        """It is away from the loop, not behind it."""
        await write_agent(store, "a")
        rows = await store.fetch_in_background("agent_epoch", {"id": "a"})
        assert [row["epoch"] for row in rows] == [1]

    async def test_a_json_array_stands_for_a_list_of_values(self, store: Store) -> None:
        """The one spelling that differs between drivers."""
        for agent_id in ("a", "b", "c"):
            await write_agent(store, agent_id)
        rows = await store.fetch_all("agent_epochs", {"ids": '["a","c","x"]'})
        assert sorted(row["id"] for row in rows) == ["a", "c"]

    async def test_each_claim_raises_the_epoch(self, store: Store) -> None:
        """The first claim makes the agent; its generation starts at 0 and its state is empty."""
        first = await claim(store, "a", cls="assistant", name="a", now=1.0)
        second = await claim(store, "a", cls="assistant", name="a", now=2.0)
        assert (first.epoch, first.generation, first.state) == (1, 0, None)
        assert second.epoch == 2

    async def test_the_epochs_of_a_name_go_on_when_its_agent_is_removed(self, store: Store) -> None:
        """Whoever wrote for the old agent is never taken for the owner of the new one."""
        for _ in range(3):
            await claim(store, "a", cls="assistant", name="a", now=1.0)
        async with store.transaction() as tx:
            await remove_agent(tx, "a")
        again = await claim(store, "a", cls="assistant", name="a", now=2.0)
        assert again.epoch == 4

    async def test_check_epochs_names_the_agents_that_lost(self, store: Store) -> None:
        """Others in the same batch are not touched; an agent without a row has lost too."""
        for agent_id in ("a", "b", "b"):
            await claim(store, agent_id, cls="assistant", name=agent_id, now=1.0)
        async with store.transaction() as tx:
            assert await check_epochs(tx, {"a": 1, "b": 1, "ghost": 1}) == {"b", "ghost"}
            assert await check_epochs(tx, {"b": 2}) == set()
            assert await check_epochs(tx, {"b": 1}) == {"b"}

    async def test_open_and_close_may_be_repeated(self, store: Store) -> None:
        """Both are idempotent, and a closed store says so."""
        await store.open()
        await store.close()
        await store.close()
        with pytest.raises(StoreError, match="open"):
            await store.fetch_all("agent_epoch", {"id": "a"})


class DurableStoreContract(StoreContract):
    """The promises of a store that keeps its data."""

    async def test_committed_rows_are_there_after_reopening(
        self, store: Store, reopen: Reopen
    ) -> None:
        """Commit, close, open: the row is there and the undone one is not."""
        await write_agent(store, "a")
        with pytest.raises(ValueError, match="the block failed"):
            await fail_after_writing(store, "b")
        again = await reopen()
        assert (await epoch_of(again, "a"), await epoch_of(again, "b")) == (1, None)

    async def test_epochs_go_on_after_reopening(self, store: Store, reopen: Reopen) -> None:
        """A restarted host gets a higher epoch than the one before it."""
        before = await claim(store, "a", cls="assistant", name="a", now=1.0)
        after = await claim(await reopen(), "a", cls="assistant", name="a", now=2.0)
        assert after.epoch > before.epoch


def _session(number: int) -> dict[str, Any]:
    return {"agent": "a", "session": f"s{number}"}


async def _insert_turns(store: Store, *ids: str) -> None:
    empty = dict.fromkeys(
        ("input", "options", "body", "client_tools", "message_id", "idempotency_key", "metadata",
         "message_ids", "principal", "incident", "journal_start", "started_at", "code")
    )  # fmt: skip
    fixed = {"agent": "a", "trigger": "programmatic", "status": "accepted", "created_at": 1.0}
    async with store.transaction() as tx:
        for turn_id in ids:
            numbers = {"generation": 0, "continuation": 0, "attempt": 0}
            await tx.execute("insert_turn", {**empty, **fixed, **numbers, "id": turn_id})
