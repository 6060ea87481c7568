"""A client's question that finds the slot free starts in the transaction that accepts it (DESIGN
§1, §5): nobody waits for a second commit, and nothing else is different.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.turns.support import running
from thinkwell import Think
from thinkwell.store.sqlite import SqliteStore


class Plain(Think):
    """Overrides nothing."""


class Noting(SqliteStore):
    """Remembers how many transactions began before a turn was assembled."""

    begun = 0

    def transaction(self) -> Any:
        self.begun += 1
        return super().transaction()


@pytest.mark.parametrize(("hooked", "commits"), [(False, 1), (True, 2)])
async def test_it_takes_one_commit_unless_a_hook_wants_to_hear_of_the_start(
    *, hooked: bool, commits: int
):
    store, counts = Noting(":memory:"), list[int]()
    async with running(Plain, "Hello", store=store) as stage:
        client = await stage.connect()
        if hooked:
            stage.agent.add_hook("on_turn_start", lambda _: None)
        stage.agent.add_hook("before_turn", lambda _: counts.append(store.begun))
        before = store.begun
        await client.ask("hi", "q1")
        await client.until_end("q1")
        assert counts == [before + commits]
        assert [message["role"] for message in await stage.messages()] == ["user", "assistant"]


async def test_a_second_question_waits_for_its_slot_outside_the_tree():
    seen: list[int] = []
    async with running(Plain, "one", "two") as stage:
        client = await stage.connect()

        async def ask_again(_: Any) -> None:
            if not seen:
                await client.ask("and?", "q2")
            seen.append(len(await stage.messages()))

        stage.agent.add_hook("before_turn", ask_again)
        await client.ask("hi", "q1")
        await client.until_end("q2")
        assert seen == [1, 3]


@pytest.mark.parametrize("cleared_first", [True, False])
async def test_a_clear_beside_it_leaves_no_question_without_its_turn(
    tmp_path: Path, *, cleared_first: bool
):
    store = SqliteStore(tmp_path / "store.db")
    async with running(Plain, "y", store=store, suspends=True) as stage:
        client = await stage.connect()
        works = [client.ask("across", "q1"), stage.agent.clear_messages()]
        await asyncio.gather(*(reversed(works) if cleared_first else works))
        await client.until_end("q1")
        turn = await store.fetch_one("turn_by_id", {"agent": "plain/x", "id": "q1"})
        assert turn is not None
        stored = [message["role"] for message in await stage.messages()]
        assert stored == (["user", "assistant"] if turn["status"] == "completed" else [])
