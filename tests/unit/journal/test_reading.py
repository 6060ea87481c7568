"""Reading a live journal back: what was told is there, or its reader hears that it is not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.unit.journal.conftest import Bench, body_of
from thinkwell.core import json
from thinkwell.core.errors import StoreError
from thinkwell.journal import left_rows
from thinkwell.journal.left_rows import LeftRows
from thinkwell.journal.reading import live_journal, read_journal
from thinkwell.journal.turn_log import TurnLog
from thinkwell.journal.turns import TurnRecord, insert_turn
from thinkwell.store.base import Params, Row


def record_of(log: TurnLog) -> TurnRecord:
    return TurnRecord(
        agent_id=log.owner.agent_id,
        request_id=log.request_id,
        trigger="submission",
        status="running",
        generation=0,
        journal_start=0,
    )


async def test_chunks_of_several_commits_come_back_in_order(bench: Bench):
    log = await bench.log()
    for number in range(3):
        bench.say(log, number)
        await bench.commits.flush()
    stored = await read_journal(bench.store, record_of(log))
    assert stored.bodies == tuple(map(body_of, range(3)))


async def test_a_missing_chunk_is_an_error_and_not_renumbered(bench: Bench):
    log = await bench.log()
    bench.say(log, 0)
    await bench.commits.flush()
    log.append(body_of(1))
    log.written = 2  # as if told, and never stored
    bench.say(log, 2)
    await bench.commits.flush()
    with pytest.raises(StoreError, match="chunk 1 is missing"):
        await read_journal(bench.store, record_of(log))


class Counting:
    """A reader that says how often each query was asked."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.asked: dict[str, int] = {}

    async def fetch_all(self, query: str, params: Params) -> Sequence[Row]:
        self.asked[query] = self.asked.get(query, 0) + 1
        return await self._store.fetch_all(query, params)

    async def fetch_one(self, query: str, params: Params) -> Row | None:
        return await self._store.fetch_one(query, params)


async def left_by_many(bench: Bench, turns: int) -> list[TurnLog]:
    """The journals of turns that spoke in turn, none of which has ended."""
    logs = [await bench.log(f"turn-{number}") for number in range(turns)]
    async with bench.store.transaction() as tx:
        for log in logs:
            await insert_turn(tx, record_of(log))
    for number in range(3):
        for log in logs:
            bench.say(log, number)
        await bench.commits.flush()
    return logs


async def test_the_journals_of_many_interrupted_turns_are_found_in_one_pass(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
):
    """Spec/04 §5: a thousand scans over all that a thousand turns left would take minutes."""
    monkeypatch.setattr(left_rows, "_SLICE", 4)  # rows of one turn stand in several slices
    logs = await left_by_many(bench, 8)
    reader = Counting(bench.store)
    left = LeftRows(reader)
    for log in logs:
        rows = await left.take(log.owner.agent_id, log.request_id, 0)
        assert live_journal(record_of(log), rows).bodies == tuple(map(body_of, range(3)))
    assert reader.asked["journal_places"] == 24 // 4 + 1
    assert reader.asked["journal_rows_at"] == len(logs)


async def test_what_is_written_after_that_pass_is_found_too(bench: Bench):
    logs = await left_by_many(bench, 2)
    left = LeftRows(bench.store)
    await left.take(logs[0].owner.agent_id, logs[0].request_id, 0)
    bench.say(logs[1], 3)
    await bench.commits.flush()
    rows = await left.take(logs[1].owner.agent_id, logs[1].request_id, 0)
    assert live_journal(record_of(logs[1]), rows).bodies == tuple(map(body_of, range(4)))


async def test_a_turn_that_is_taken_up_a_second_time_has_all_its_rows(bench: Bench):
    """Spec/04 §5: an attempt that fails in this process too is followed by another one."""
    logs = await left_by_many(bench, 2)
    left = LeftRows(bench.store)
    for number in (3, 4):
        await left.take(logs[0].owner.agent_id, logs[0].request_id, 0)
        bench.say(logs[0], number)
        await bench.commits.flush()
    rows = await left.take(logs[0].owner.agent_id, logs[0].request_id, 0)
    assert live_journal(record_of(logs[0]), rows).bodies == tuple(map(body_of, range(5)))


async def test_rows_of_a_journal_that_was_emptied_after_that_pass_are_found(bench: Bench):
    """An emptied journal counts its positions anew, from before where the pass ended."""
    old, again = await left_by_many(bench, 2)
    left = LeftRows(bench.store)
    await left.take(old.owner.agent_id, old.request_id, 0)
    async with bench.store.transaction() as tx:
        for log in (old, again):
            named = {"agent": log.owner.agent_id, "ids": json.dumps([log.request_id])}
            await tx.execute("erase_live_journal", named)
    new, reborn = await bench.log("new"), TurnLog(again.owner, again.request_id)
    for log in (new, reborn):
        for number in range(2):
            bench.say(log, number)
            await bench.commits.flush()
        rows = await left.take(log.owner.agent_id, log.request_id, 0)
        assert live_journal(record_of(log), rows).bodies == tuple(map(body_of, range(2)))
