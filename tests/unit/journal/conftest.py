"""A real store with two agents, and a clock the test moves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.turns.support import Log, LoggingStore
from thinkwell.core import json
from thinkwell.journal.group_commit import GroupCommit
from thinkwell.journal.turn_log import Owner, TurnLog
from thinkwell.store.ownership import claim
from thinkwell.store.sqlite import SqliteStore


class FakeClock:
    """Time stands still until the test moves it."""

    def __init__(self) -> None:
        self.time = 1000.0

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time


def body_of(number: int) -> str:
    """A chunk that is easy to tell from others."""
    return json.dumps({"type": str(number)})


class Bench:
    """One store, one clock, one group commit."""

    def __init__(self, store: LoggingStore, log: Log) -> None:
        self.store = store
        self.clock = FakeClock()
        self.commits = GroupCommit(store, self.clock)
        self.diary = log

    async def owner(self, name: str) -> Owner:
        """Claim an agent."""
        claimed = await claim(self.store, f"a/{name}", cls="a", name=name, now=0.0)
        return Owner(f"a/{name}", claimed.epoch)

    async def log(self, name: str = "x", turn: str = "t") -> TurnLog:
        """The log of a turn of a fresh agent."""
        return TurnLog(await self.owner(name), turn)

    async def rows(self, log: TurnLog) -> list[Any]:
        """What the journal holds of a turn: (kind, body)."""
        found = await self.store.fetch_all(
            "read_journal", {"agent": log.owner.agent_id, "turn": log.request_id, "start": 0}
        )
        return [(row["kind"], json.loads(row["body"])) for row in found]

    async def chunks(self, log: TurnLog) -> list[Any]:
        """The chunks of a turn that are durable."""
        rows = await self.rows(log)
        return [int(chunk["type"]) for kind, body in rows if kind == "chunks" for chunk in body]

    def say(self, log: TurnLog, *numbers: int) -> bool:
        """Append chunks and note them, as a turn does."""
        must_wait = False
        for number in numbers:
            log.append(body_of(number))
            must_wait = self.commits.note(log)
        return must_wait


@pytest.fixture(params=[False, True], ids=["store", "suspending store"])
async def bench(request: pytest.FixtureRequest) -> AsyncIterator[Bench]:
    log = Log()
    store = LoggingStore(SqliteStore(":memory:"), log, suspends=request.param)
    await store.open()
    made = Bench(store, log)
    yield made
    await made.commits.close()
    await store.close()
