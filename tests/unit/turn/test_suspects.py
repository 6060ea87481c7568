"""Suspects run one after another while the process is young (DESIGN §8.16)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec

from thinkwell.core.tasks import TaskOwner
from thinkwell.host.host import Host
from thinkwell.journal.boots import Boot, begin_boot, mark_steady, mark_stopped, suspects_of
from thinkwell.journal.budget import Incident
from thinkwell.journal.turns import TurnRecord, insert_turn, start_attempt
from thinkwell.store.sqlite import SqliteStore
from thinkwell.turn.handle import TurnHandle
from thinkwell.turn.line.line import TurnLine
from thinkwell.turn.line.suspects import Suspects


def record(agent: str, boots: tuple[int, ...] = ()) -> TurnRecord:
    return TurnRecord(
        agent_id=agent,
        request_id="t",
        trigger="programmatic",
        status="accepted",
        generation=0,
        incident=Incident(boots=boots),
    )


class Line:
    """The lines of several agents, whose turns stand until they are let go."""

    def __init__(self, suspects: Suspects) -> None:
        self.tasks = TaskOwner("test")
        self.suspects = suspects
        self.began: list[str] = []
        self.queues: dict[str, TurnLine] = {}

    def put(self, agent: str) -> TurnHandle:
        async def run(handle: TurnHandle) -> None:
            self.began.append(handle.record.agent_id)
            await handle.until_over()

        queue = self.queues[agent] = TurnLine(run=run, stale=run, tasks=self.tasks, generation=0)
        queue.suspects = self.suspects
        handle = TurnHandle(record(agent))
        queue.put(handle)
        queue.wake()
        return handle

    async def moves(self) -> list[str]:
        """Who has begun when nothing moves any more."""
        for _ in range(20):
            await asyncio.sleep(0)
        return self.began


def keys(*agents: str) -> set[tuple[str, str]]:
    return {(agent, "t") for agent in agents}


async def test_one_suspect_runs_at_a_time_and_all_others_as_usual():
    line = Line(Suspects(keys("a", "b"), until=60.0, monotonic=lambda: 0.0))
    first = line.put("a")
    line.put("b")
    line.put("c")
    assert await line.moves() == ["a", "c"]
    first.finish(RuntimeError("over"))
    assert await line.moves() == ["a", "c", "b"]
    await line.tasks.close()


async def test_a_suspect_that_is_stopped_waits_for_nobody():
    line = Line(Suspects(keys("a", "b"), until=60.0, monotonic=lambda: 0.0))
    line.put("a")
    waiting = line.put("b")
    assert await line.moves() == ["a"]
    waiting.controller.abort("stop")
    line.queues["b"].wake()
    assert await line.moves() == ["a", "b"]
    await line.tasks.close()


async def test_when_the_process_has_lasted_nobody_waits():
    line = Line(Suspects(keys("a", "b"), until=60.0, monotonic=lambda: 61.0))
    line.put("a")
    line.put("b")
    assert await line.moves() == ["a", "b"]
    await line.tasks.close()


class TestWhoIsSuspected:
    async def stored(self, path: Path, *records: TurnRecord) -> SqliteStore:
        store = SqliteStore(path / "s.db")
        await store.open()
        async with store.transaction() as tx:
            for row in records:
                await insert_turn(tx, row)
                begun = msgspec.structs.replace(row, message_id="m")
                await start_attempt(tx, begun, now=0.0, seq=0)
        return store

    async def test_turns_that_had_begun_in_both_lives(self, tmp_path: Path):
        store = await self.stored(tmp_path, record("a", (1, 2)), record("b", (2,)), record("c"))
        before = [Boot(id=2, started_at=1.0), Boot(id=1, started_at=0.0)]
        assert await suspects_of(store, before) == keys("a")
        await store.close()

    async def test_nobody_after_a_life_that_lasted_or_was_stopped(self, tmp_path: Path):
        store = await self.stored(tmp_path, record("a", (1, 2)))
        first, _ = await begin_boot(store, 0.0)
        second, before = await begin_boot(store, 1.0)
        assert [boot.id for boot in before] == [first]
        async with store.transaction() as tx:
            await mark_steady(tx, first)
        _, before = await begin_boot(store, 2.0)
        assert [(boot.id, boot.died_soon) for boot in before] == [(second, True), (first, False)]
        assert await suspects_of(store, before) == set()
        await mark_stopped(store, second, 3.0)
        _, before = await begin_boot(store, 4.0)
        assert not before[1].died_soon
        await store.close()

    async def test_a_host_writes_down_that_its_end_was_planned(self, tmp_path: Path):
        for _ in range(2):
            host = Host([], SqliteStore(tmp_path / "h.db"))
            await host.start()
            await host.stop()
        store = SqliteStore(tmp_path / "h.db")
        await store.open()
        _, before = await begin_boot(store, 5.0)
        assert [boot.died_soon for boot in before] == [False, False]
        await store.close()
