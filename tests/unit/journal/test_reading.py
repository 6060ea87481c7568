"""Reading a live journal back: what was told is there, or its reader hears that it is not."""

from __future__ import annotations

import pytest

from tests.unit.journal.conftest import Bench, body_of
from thinkwell.core.errors import StoreError
from thinkwell.journal.reading import read_journal
from thinkwell.journal.turn_log import TurnLog
from thinkwell.journal.turns import TurnRecord


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
