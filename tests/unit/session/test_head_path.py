"""The kept path to the head is what the store would say (DESIGN §5: a turn costs the same)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thinkwell.session.session import Session
from thinkwell.store.sqlite import SqliteStore

STEPS = ("append", "remember", "branch", "update", "delete", "pin", "clear", "lose", "read")


def message(number: int) -> Any:
    return {"id": f"m{number}", "role": "user", "parts": [{"type": "text", "text": "x" * number}]}


class LostError(Exception):
    """The transaction of a test that does not commit."""


async def _append_in_vain(session: Session, store: SqliteStore, number: int) -> None:
    async with store.transaction() as tx:
        await session.append(tx, message(number))
        raise LostError


async def step(session: Session, store: SqliteStore, what: str, number: int) -> None:
    known = [row.id for row in await Session(store, "a/x").history.path()]
    match what:
        case "append":
            await session.append_message(message(number))
        case "remember":
            async with store.transaction() as tx:
                added = [await session.append(tx, message(number))]
            session.remember(added)
        case "branch":
            await session.append_message(message(number), known[0] if known else None)
        case "update" if known:
            changed: Any = {**message(number * 3), "id": known[-1]}
            await session.update_message(changed)
        case "delete" if known:
            await session.delete_messages([known[number % len(known)]])
        case "pin" if known:
            await session.set_active_leaf(known[number % len(known)])
        case "clear" if number % 5 == 0:
            await session.clear_messages()
        case "lose":
            with pytest.raises(LostError):
                await _append_in_vain(session, store, number)
        case _:
            await session.get_history()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(STEPS), max_size=14))
async def test_whatever_happens_it_is_the_path_of_a_fresh_reader(steps: list[str]):
    store = SqliteStore(":memory:")
    await store.open()
    session = Session(store, "a/x")
    try:
        for number, what in enumerate(steps, start=1):
            await step(session, store, what, number)
            fresh = Session(store, "a/x")
            for max_bytes in (0, 150, 10_000):
                ours = await session.get_recent_history(max_bytes, 2)
                theirs = await fresh.get_recent_history(max_bytes, 2)
                assert [m.id for m in ours.messages] == [m.id for m in theirs.messages]
                assert ours.total_content_bytes == theirs.total_content_bytes
                assert ours.truncated == theirs.truncated
            # Last: what a window that reaches the root has kept must be the whole path.
            assert await session.history.path() == await fresh.history.path()
            for other in range(len(steps) + 1):
                known = session.history.head_path.is_known_to_lack(f"m{other}")
                assert not (known and await fresh.history.is_stored(f"m{other}"))
    finally:
        await store.close()


async def test_of_ids_that_were_looked_for_in_vain_only_the_newest_is_kept(session: Session):
    """Clients choose ids, and one that may not write can ask for as many as it likes."""
    for number in range(3):
        assert not await session.history.is_stored(f"m{number}")
    lacks = session.history.head_path.is_known_to_lack
    assert [number for number in range(4) if lacks(f"m{number}")] == [2]
    await session.append_message(message(2))
    assert not any(lacks(f"m{number}") for number in range(4))


async def test_what_is_not_on_the_only_path_is_known_to_be_missing(session: Session):
    """A question is looked for before it is accepted; without branches memory has the answer."""
    lacks = session.history.head_path.is_known_to_lack
    first = await session.append_message(message(0))
    await session.history.path()
    assert (lacks("m0"), lacks("m1")) == (False, True)
    session.remember([await session.append_message(message(1))])
    assert (lacks("m1"), lacks("m2")) == (False, True)
    await session.append_message(message(2), first.row.id)  # a branch: the path is one of two now
    await session.history.path()
    assert [lacks(f"m{number}") for number in range(4)] == [False] * 4
