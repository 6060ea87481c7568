"""The queue of an agent: one at a time, in order, nothing lost (spec/04 §12, §23.64)."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.jobs.support import Hours, serving
from tests.operate.test_erasing import in_thread, rows
from tests.schedules.test_scheduling import move_until
from thinkwell import Think
from thinkwell.agent.agent import Agent
from thinkwell.hooks.jobs import JobContext
from thinkwell.store.sqlite import SqliteStore
from thinkwell.testing import ScriptedModel


class Line(Agent):
    called: list[Any]
    at_once = 0
    most_at_once = 0
    broken: frozenset[Any] = frozenset()
    gate: asyncio.Event | None = None

    async def on_start(self) -> None:
        self.called = []

    async def work(self, payload: Any, ctx: JobContext) -> None:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            self.called.append(payload)
            await asyncio.sleep(0)
            if self.gate is not None:
                await self.gate.wait()
            if payload in self.broken:
                raise ConnectionError("broken")
        finally:
            self.at_once -= 1

    async def other(self) -> None: ...


async def test_items_run_one_at_a_time_and_in_order():
    async with serving(Line, suspends=True) as stage:
        agent = await stage.agent(Line)
        for n in range(40):
            await agent.schedules.queue("work", n)
        await stage.until("job:finished", 40)
        assert agent.called == list(range(40))
        assert agent.most_at_once == 1
        assert await agent.schedules.items() == []
        assert len(stage.told("queue:create")) == 40


async def test_a_queue_that_comes_from_an_export_is_still_a_queue(tmp_path: Path):
    path, file = tmp_path / "x.db", tmp_path / "ann.jsonl"
    gate = asyncio.Event()
    cls = type("Line", (Line,), {"gate": gate}, name="line")
    async with serving(cls, store=SqliteStore(path)) as stage:
        ann: Any = await stage.agent(cls, "ann")
        for n in range(10):
            await ann.schedules.queue("work", n)
        while not ann.called:
            await asyncio.sleep(0)
        file.write_text(await in_thread(path, "agents", "export", "line/ann"))
        await stage.host.import_agent(file, "line/bob")
        bob: Any = await stage.agent(cls, "bob")
        while not bob.called:
            await asyncio.sleep(0)
        in_front = "SELECT COUNT(*) FROM jobs WHERE agent = 'line/bob' AND held IS NULL"
        assert rows(path, in_front) == [(1,)]
        gate.set()
        await stage.until("job:finished", 20)
        assert (bob.called, bob.most_at_once) == (list(range(10)), 1)


async def test_erasing_whoever_is_in_front_lets_the_others_go_on(tmp_path: Path):
    path = tmp_path / "x.db"
    async with serving(Line, store=SqliteStore(path)) as stage:
        agent = await stage.agent(Line)
        agent.broken = frozenset({1})
        for n in (1, 2, 3):
            await agent.schedules.queue("work", n)
        await stage.until("queue:retry")  # the first one waits for its next try
        with closing(sqlite3.connect(path)) as file:
            file.execute(
                """UPDATE jobs SET principal = '{"id": "ann"}'
                WHERE seq = (SELECT MIN(seq) FROM jobs WHERE kind = 'queue')"""
            )
            file.commit()
        await stage.host.erase("ann")
        anew = await stage.agent(Line)
        while getattr(anew, "called", None) != [2, 3]:
            await asyncio.sleep(0)


async def test_turns_of_agents_are_apart():
    async with serving(Line) as stage:
        ann, bob = await stage.agent(Line, "ann"), await stage.agent(Line, "bob")
        ann.gate = asyncio.Event()
        await ann.schedules.queue("work", 1)
        await bob.schedules.queue("work", 2)
        await stage.until("job:finished")
        assert bob.called == [2]
        ann.gate.set()
        await stage.until("job:finished", 2)


async def test_an_item_that_fails_is_tried_again_first_and_then_kept_as_a_dead_letter():
    async with serving(Line) as stage:
        agent = await stage.agent(Line)
        agent.broken = frozenset({2})
        for n in (1, 2, 3):
            await agent.schedules.queue("work", n)
        await move_until(stage, 5, "job:finished", 2)
        assert agent.called == [1, 2, 2, 2, 3]
        assert len(stage.told("queue:retry")) == 2
        assert [e["attempts"] for e in stage.told("queue:error")] == [3]
        assert len(stage.told("queue:dead_letter")) == 1
        (letter,) = await agent.schedules.dead_letters()
        assert (letter.payload, letter.error) == (2, "ConnectionError: broken")
        agent.broken = frozenset()
        assert await agent.schedules.requeue(letter.id)
        assert not await agent.schedules.requeue(letter.id)
        await stage.until("job:finished", 3)
        assert agent.called[-1] == 2
        assert await agent.schedules.dead_letters() == []


async def test_what_is_left_in_the_queue_is_drained_at_the_next_start(tmp_path: Path):
    """spec/04 §23.64: without another `queue()` call."""
    store, clock = tmp_path / "q.db", Hours()
    async with serving(Line, store=store, hours=clock) as stage:
        agent = await stage.agent(Line)
        agent.gate = asyncio.Event()
        for n in range(10):
            await agent.schedules.queue("work", n)
        await stage.until("job:started")
    async with serving(Line, store=store, hours=clock) as stage:
        await stage.until("job:finished", 10)
        agent = await stage.agent(Line)
        assert agent.called == list(range(10))


async def test_items_can_be_withdrawn_until_they_begin():
    async with serving(Line) as stage:
        agent = await stage.agent(Line)
        agent.gate = asyncio.Event()
        items = [await agent.schedules.queue("work", n) for n in range(4)]
        other = await agent.schedules.queue("other")
        await stage.until("job:started")
        assert await agent.schedules.dequeue(items[0].id) == 0  # it has begun
        assert await agent.schedules.dequeue(items[1].id) == 1
        assert await agent.schedules.clear_queue(agent.work) == 2
        assert [item.id for item in await agent.schedules.items()] == [items[0].id, other.id]
        agent.gate.set()
        await stage.until("job:finished", 2)
        assert agent.called == [0]


async def test_withdrawing_the_first_of_a_line_that_waits_lets_the_next_one_begin():
    async with serving(Line) as stage:
        agent = await stage.agent(Line)
        agent.broken = frozenset({1})
        first = await agent.schedules.queue("work", 1)
        await agent.schedules.queue("work", 2)
        await stage.until("queue:retry")
        assert await agent.schedules.dequeue(first.id) == 1
        await stage.until("job:finished")
        assert agent.called == [1, 2]


async def test_a_cancelled_item_lets_the_next_one_begin():
    async with serving(Line) as stage:
        agent = await stage.agent(Line)
        agent.gate = asyncio.Event()
        first = await agent.schedules.queue("work", 1)
        await agent.schedules.queue("other")
        await stage.until("job:started")
        assert await agent.jobs.cancel(first.id)
        while not stage.told("job:finished"):
            stage.hours.move(10)
            await asyncio.sleep(0.01)
        assert len(stage.told("job:cancelled")) == 1


async def test_the_same_key_is_one_item():
    async with serving(Line) as stage:
        agent = await stage.agent(Line)
        agent.gate = asyncio.Event()
        first = await agent.schedules.queue("work", 1, key="k")
        assert (await agent.schedules.queue("work", 2, key="k")).id == first.id
        agent.gate.set()
        await stage.until("job:finished")
        assert agent.called == [1]


async def test_a_block_of_writes_brings_its_items_in_order():
    async with serving(Line) as stage:
        agent = await stage.agent(Line)
        async with agent.storage.together():
            for n in range(5):
                await agent.schedules.queue("work", n)
        await stage.until("job:finished", 5)
        assert agent.called == list(range(5))
        assert agent.most_at_once == 1


class Older(Line, name="line"):
    async def gone(self) -> None: ...


class Newer(Line, name="line"):
    pass


async def test_an_item_whose_method_is_gone_does_not_stop_its_line(tmp_path: Path):
    store, clock = tmp_path / "q.db", Hours()
    async with serving(Older, store=store, hours=clock) as stage:
        agent = await stage.agent(Older)
        agent.gate = asyncio.Event()
        await agent.schedules.queue("work", 1)
        await stage.until("job:started")
        await agent.schedules.queue("gone")
        await agent.schedules.queue("work", 2)
    async with serving(Newer, store=store, hours=clock) as stage:
        await stage.until("job:finished", 2)
        assert (await stage.agent(Newer)).called == [1, 2]
        assert len(stage.told("job:held")) == 1
    async with serving(Older, store=store, hours=clock) as stage:  # the method is back
        await stage.until("job:finished", 1)
        assert await (await stage.agent(Older)).schedules.items() == []


async def test_a_long_line_costs_the_same_for_each_item():
    """What waits behind others is not looked at again for each that ends."""
    async with serving(Line) as stage:
        agent = await stage.agent(Line)
        async with agent.storage.together():
            for n in range(500):
                await agent.schedules.queue("work", n)
        await stage.until("job:finished", 500)
        assert agent.called == list(range(500))


class ChattingLine(Think):
    model = ScriptedModel([])

    async def work(self, payload: Any) -> None:
        await asyncio.Event().wait()


async def test_the_references_names_do_the_same():
    async with serving(ChattingLine) as stage:
        agent = await stage.agent(ChattingLine)
        first = await agent.queue("work", {"to": "ann"})
        await stage.until("job:started")
        second = await agent.queue(agent.work, {"to": "bob"})
        third = await agent.queue("work", {"to": "ann"})
        assert (await agent.get_queue(first)).running
        assert (await agent.get_queue("nobody")) is None
        assert [item.id for item in await agent.get_queues("to", "ann")] == [first, third]
        assert await agent.dequeue(second)
        assert not await agent.dequeue(first)
        assert await agent.dequeue_all_by_callback("work") == 1
        assert await agent.dequeue_all() == 0
