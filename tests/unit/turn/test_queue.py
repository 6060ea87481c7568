"""One slot per agent, first come first served (spec/02 §3.1, §3.2)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from thinkwell.core.tasks import TaskOwner
from thinkwell.journal.turns import TurnRecord
from thinkwell.turn.handle import TurnHandle
from thinkwell.turn.line.line import TurnLine


class Line:
    """A queue whose runner writes down what it was given."""

    def __init__(self) -> None:
        self.tasks = TaskOwner("test")
        self.log: list[str] = []
        self.gates: dict[str, asyncio.Event] = {}
        self.failing: dict[str, BaseException] = {}
        self.queue = TurnLine(run=self._run, stale=self._stale, tasks=self.tasks, generation=0)

    def put(self, name: str, *, generation: int = 0, wait: bool = False) -> TurnHandle:
        if wait:
            self.gates[name] = asyncio.Event()
        record = TurnRecord(
            agent_id="a/x",
            request_id=name,
            trigger="programmatic",
            status="accepted",
            generation=generation,
        )
        handle = TurnHandle(record)
        self.queue.put(handle)
        self.queue.wake()
        return handle

    async def _run(self, handle: TurnHandle) -> None:
        name = handle.record.request_id
        self.log.append(f"{name} begins")
        if name in self.gates:
            await self.gates[name].wait()
        if name in self.failing:
            raise self.failing[name]
        self.log.append(f"{name} ends")

    async def _stale(self, handle: TurnHandle) -> None:
        self.log.append(f"{handle.record.request_id} is stale")


@pytest.fixture
async def line() -> AsyncIterator[Line]:
    made = Line()
    yield made
    await made.tasks.close()


async def test_turns_run_one_at_a_time_in_the_order_they_came(line: Line):
    line.put("a", wait=True)
    line.put("b")
    line.put("c")
    await asyncio.sleep(0)
    assert line.log == ["a begins"]
    line.gates["a"].set()
    await line.queue.wait_until_idle()
    assert line.log == [f"{name} {what}" for name in "abc" for what in ("begins", "ends")]


async def test_what_waits_from_an_older_generation_is_stale(line: Line):
    line.put("a", wait=True)
    line.put("b")
    line.put("c", generation=1)
    await asyncio.sleep(0)
    line.queue.generation = 1
    line.gates["a"].set()
    await line.queue.wait_until_idle()
    assert line.log == ["a begins", "a ends", "b is stale", "c begins", "c ends"]


async def test_handles_are_the_running_one_and_those_that_wait(line: Line):
    line.put("a", wait=True)
    line.put("b")
    await asyncio.sleep(0)
    assert [t.record.request_id for t in line.queue.handles()] == ["a", "b"]
    assert line.queue.active is line.queue.find("a")
    assert line.queue.find("b") is not None
    assert line.queue.find("zzz") is None


async def test_an_idle_queue_runs_what_comes_later(line: Line):
    line.put("a")
    await line.queue.wait_until_idle()
    assert line.queue.active is None
    line.put("b")
    await line.queue.wait_until_idle()
    assert line.log[-1] == "b ends"


async def test_a_handle_put_while_the_last_one_ends_is_not_forgotten(line: Line):
    line.put("a")
    while "a ends" not in line.log:
        await asyncio.sleep(0)
    line.put("b")
    await line.queue.wait_until_idle()
    assert line.log[-1] == "b ends"


async def test_a_cancelled_handle_of_a_stored_stop_is_aborted_from_the_start():
    record = TurnRecord(
        agent_id="a/x",
        request_id="t",
        trigger="submission",
        status="accepted",
        generation=0,
        cancel_requested="stopped before the crash",
    )
    assert TurnHandle(record).controller.signal.reason == "stopped before the crash"


async def test_closing_the_owner_stops_the_worker_and_leaves_the_rest(line: Line):
    line.put("a", wait=True)
    line.put("b")
    await asyncio.sleep(0)
    await line.tasks.close()
    assert line.log == ["a begins"]
    assert [t.record.request_id for t in line.queue.handles()] == ["b"]


async def test_3_1_a_turn_that_left_the_line_with_an_error_does_not_stop_it(line: Line):
    line.failing["a"] = RuntimeError("broken")
    line.put("a")
    line.put("b")
    await line.queue.wait_until_idle()
    assert line.log == ["a begins", "b begins", "b ends"]
