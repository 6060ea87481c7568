"""After a kill, the journal still says what every model call was given (DESIGN §5, §11)."""

from __future__ import annotations

import pytest

from tests.crash.evidence import settled
from tests.crash.model import as_json
from tests.crash.process import World
from tests.crash.scenario import AGENT, crash
from thinkwell.journal.events import AttemptBegun, CallClaimed, read_events
from thinkwell.journal.turns import find_turn
from thinkwell.store.sqlite import SqliteStore
from thinkwell.turn.recorded_requests import journal_of, recorded_requests

pytestmark = pytest.mark.crash

QUESTION = "whole|think,say:3,pure;say:3,idempotent;say:4"


@pytest.mark.parametrize("point", ["c4:2", "c5", "c6", "c7", "c8", "c9", "c10"])
async def test_every_request_of_both_lives_comes_back(world: World, point: str):
    await crash(world, point, {"r1": QUESTION})
    server = await world.start()
    await settled(world, "r1")
    await server.stop()
    store = SqliteStore(world.store)
    await store.open()
    try:
        record = await find_turn(store, AGENT, "r1")
        assert record is not None
        requests = [as_json(each.request) for each in await recorded_requests(store, record)]
        journal = await journal_of(store, record)
    finally:
        await store.close()
    assert requests == [line["request"] for line in world.lines("calls")]
    assert journal is not None
    events = read_events(journal)
    assert [e.attempt for e in events if isinstance(e, AttemptBegun)] == [1, 2]
    claimed = {e.tool_name for e in events if isinstance(e, CallClaimed)}
    assert claimed == {"pure", "idempotent"}
