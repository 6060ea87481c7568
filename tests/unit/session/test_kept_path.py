"""The encoded path that is kept: what the store says, and tails that lead from old to new."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from tests.unit.session.conftest import text
from thinkwell.session import kept_path
from thinkwell.session.history import History
from thinkwell.session.kept_path import KeptPath, KeptPaths
from thinkwell.session.session import Session
from thinkwell.store.sqlite import SqliteStore


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a few messages are a long conversation."""
    monkeypatch.setattr(kept_path, "OPEN_MESSAGES", 4)
    monkeypatch.setattr(kept_path, "BLOCK_BYTES", 150)


@pytest.fixture
def kept(session: Session) -> KeptPath:
    session.history.kept = KeptPath(session.history, lambda stored: stored)
    return session.history.kept


async def test_all_kept_paths_together_are_bounded_and_the_oldest_goes_first(
    session: Session, store: SqliteStore
):
    """A thousand watched conversations must not fill the memory."""
    await session.append_message(text("m", "x" * 400))
    histories = [History(store, "a", "s", cache=session.cache) for _ in range(3)]
    paths = KeptPaths(most_bytes=1_500)
    for history in (*histories, histories[1]):
        path = history.kept or KeptPath(session.history, lambda stored: stored)
        await path.refresh()
        paths.keep(history, path)
    assert [history.kept is not None for history in histories] == [False, True, True]
    paths.drop(histories[2])
    assert histories[2].kept is None


def messages(kept: KeptPath) -> list[Any]:
    return json.loads(b"[" + b"".join(kept.blocks) + b",".join(kept.newest) + b"]")


async def write(session: Session, dice: random.Random, number: int) -> None:
    """One write of any kind."""
    ids = [row.id for row in await session.history.path()]
    there = dice.choice(ids) if ids else None
    match dice.choice(["append"] * 5 + ["remember"] * 5 + ["branch", "update", "delete", "pin"]):
        case "append":
            await session.append_message(text(f"m{number}"))
        case "remember":
            session.remember([await session.append_message(text(f"m{number}"))])
        case "branch" if there:
            await session.append_message(text(f"m{number}"), there)
        case "update" if there:
            await session.update_message(text(there, f"changed {number}"))
        case "delete" if there:
            await session.delete_messages([there])
        case "pin" if there:
            await session.set_active_leaf(there)
        case _:
            await session.append_message(text(f"m{number}"), None)


@pytest.mark.parametrize("seed", range(8))
async def test_it_is_what_the_store_says_after_any_writes(session: Session, kept: KeptPath, seed):
    dice = random.Random(seed)
    for number in range(120):
        for _ in range(dice.choice([1, 1, 3])):
            await write(session, dice, number * 10 + dice.randrange(10))
        await kept.refresh()
        stored = await session.get_history()
        assert messages(kept) == stored
        assert list(kept.ids) == [message["id"] for message in stored]
        assert all(block.endswith(b",") for block in kept.blocks)
        assert not kept.blocks or kept.newest


@pytest.mark.parametrize("seed", range(8))
async def test_a_tail_leads_from_any_older_version_to_the_newest(
    session: Session, kept: KeptPath, seed: int
):
    dice = random.Random(seed)
    known: list[tuple[int, list[Any]]] = []
    told = 0
    for number in range(100):
        await write(session, dice, number)
        await kept.refresh()
        stored = await session.get_history()
        for version, before in known:
            if (tail := kept.since(version)) is not None:
                told += 1
                ids = [message["id"] for message in before]
                first = ids.index(tail.after) + 1 if tail.after is not None else 0
                assert before[:first] + [json.loads(m) for m in tail.messages] == stored
        known = [*known[-5:], (kept.version, stored)]
    assert told > 50


async def test_a_version_of_another_path_is_not_known(session: Session, kept: KeptPath):
    await session.append_message(text("m1"))
    await kept.refresh()
    other = KeptPath(session.history, lambda stored: stored)
    await other.refresh()
    assert other.since(kept.version) is None


async def test_a_message_below_the_head_is_taken_over_without_a_read(
    session: Session, kept: KeptPath, monkeypatch: pytest.MonkeyPatch
):
    await kept.refresh()
    session.remember([await session.append_message(text("m1"))])
    monkeypatch.setattr(session.history, "ids_below", None)
    await kept.refresh()
    assert [message["id"] for message in messages(kept)] == ["m1"]
