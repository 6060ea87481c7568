"""`python -m benchmarks.driver`: one JSON order per line on stdin, one JSON answer on stdout.

`open` connects conversations, `turns` runs turns on all of them at once, `stream` measures a window
in the middle of long answers, `hold` keeps turns running beside others, `live` has all others ask
again and again until `still`, `leave` disconnects all but those held, `close` all. CPU is read
here, right before and right after, from the CPU clocks of the processes whose ids the order names.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import uvloop

from benchmarks.cpu import cpu_seconds, cpu_when_quiet, waited_seconds
from benchmarks.driver.arrivals import Arrivals
from benchmarks.driver.chainlit import ChainlitConversation
from benchmarks.driver.conversation import Conversation, Place
from benchmarks.driver.sse import AgnoConversation, PydanticAiConversation
from benchmarks.driver.thinkwell import (
    BridgedConversation,
    ThinkwellConversation,
    ThinkwellHttpConversation,
)
from thinkwell.core import json

KINDS = {
    "thinkwell": ThinkwellConversation,
    "thinkwell-http": ThinkwellHttpConversation,
    "thinkwell-bridge": BridgedConversation,
    "chainlit": ChainlitConversation,
    "agno": AgnoConversation,
    "pydantic-ai": PydanticAiConversation,
}
MILLION = 1e6
OPEN_AT_ONCE = 20
STARTS_APART = 0.002
STALLED = 120.0
"""Seconds without any end of a turn after which the run is given up."""


class Driver:
    """The open conversations and what arrived on them."""

    def __init__(self) -> None:
        self._open: list[Conversation] = []
        self._arrivals = Arrivals()
        self._running: list[asyncio.Task[None]] = []
        self._held: list[Conversation] = []
        self._asking: list[asyncio.Task[None]] = []

    async def carry_out(self, order: dict[str, Any]) -> dict[str, Any]:
        """Do what the order says."""
        action = order.pop("scenario")
        if action == "open":
            return await self.open(**order)
        if action == "turns":
            return await self.turns(**order)
        if action == "stream":
            return await self.stream(**order)
        if action == "hold":
            return await self.hold()
        if action == "live":
            return self.live(**order)
        if action == "still":
            return await self.still()
        if action == "leave":
            return await self.leave()
        return await self.close()

    async def open(
        self, protocol: str, base: str, *, model: str, names: Sequence[str], tabs: int = 1
    ) -> dict[str, Any]:
        """Connect one conversation per name."""
        places = [Place(base=base, model=model, name=name, tabs=tabs) for name in names]
        fresh: list[Conversation] = [KINDS[protocol](place, self._arrivals) for place in places]
        for start in range(0, len(fresh), OPEN_AT_ONCE):
            await asyncio.gather(*(each.open() for each in fresh[start : start + OPEN_AT_ONCE]))
        self._open += fresh
        return {}

    async def turns(self, pid: int, count: int = 1) -> dict[str, Any]:
        """So many turns on every conversation, all conversations at once."""
        arrivals = self._arrivals
        arrivals.deltas = 0
        del arrivals.firsts[:]
        before, start = await cpu_when_quiet(pid), time.monotonic()
        await asyncio.gather(*(self._turns_of(each, count) for each in self._open))
        wall = time.monotonic() - start
        return {
            "cpu": await cpu_when_quiet(pid) - before,
            "wall": wall,
            "deltas": arrivals.deltas,
            "firsts": [lag / MILLION for lag in arrivals.firsts],
        }

    async def stream(self, pid: int, provider: int, ramp: float, window: float) -> dict[str, Any]:
        """Start a long answer on every conversation, then watch all of them for a while."""
        self._running = [
            asyncio.get_running_loop().create_task(self._start_later(each, index * ramp))
            for index, each in enumerate(self._open)
        ]
        arrivals = self._arrivals
        del arrivals.firsts[:]
        while len(arrivals.firsts) < len(self._open):
            self._check_alive("before the window")
            await asyncio.sleep(0.05)
        await asyncio.sleep(1.0)  # the last ones have begun; let their beginnings settle
        self._check_alive("before the window")
        del arrivals.lags[:]
        pids = {"cpu": pid, "provider": provider}
        before = {name: cpu_seconds(each) for name, each in pids.items()}
        waited, own, start = waited_seconds(pid), time.process_time(), time.monotonic()
        arrivals.recording = True
        await asyncio.sleep(window)
        arrivals.recording = False
        wall, own = time.monotonic() - start, time.process_time() - own
        used = {name: (cpu_seconds(each) - before[name]) / wall for name, each in pids.items()}
        waited = (waited_seconds(pid) - waited) / wall
        self._check_alive("in the window")
        others = {"client": own / wall, "wall": wall, "waited": waited}
        return {**used, **others, **summary(list(arrivals.lags))}

    async def hold(self) -> dict[str, Any]:
        """Start a turn that does not end on every conversation; others are opened beside them."""
        del self._arrivals.firsts[:]
        for each in self._open:
            self._running.append(asyncio.get_running_loop().create_task(each.turn()))
            await asyncio.sleep(STARTS_APART)
        while len(self._arrivals.firsts) < len(self._open):
            self._check_alive("before all had begun")
            await asyncio.sleep(0.05)
        self._held += self._open
        self._open.clear()
        return {}

    def live(self, pause: float) -> dict[str, Any]:
        """Every conversation asks, waits for the end, pauses, and asks again."""
        del self._arrivals.waits[:]

        async def ask(conversation: Conversation, number: int) -> None:
            await asyncio.sleep(pause * number / len(self._open))  # not all at the same moment
            while True:
                await self._turns_of(conversation, 1)
                await asyncio.sleep(pause)

        loop = asyncio.get_running_loop()
        self._asking = [loop.create_task(ask(each, i)) for i, each in enumerate(self._open)]
        return {}

    async def still(self) -> dict[str, Any]:
        """They stop. How long each turn's first delta was waited for, in seconds."""
        for task in self._asking:
            task.cancel()
        ends = await asyncio.gather(*self._asking, return_exceptions=True)
        self._asking.clear()
        for end in ends:
            if isinstance(end, Exception):
                raise end
        return {"waits": [wait / MILLION for wait in self._arrivals.waits]}

    def _check_alive(self, when: str) -> None:
        """Every answer has to be under way: figures of fewer streams would look like good ones."""
        over = [task for task in self._running if task.done()]
        if not over:
            return
        reasons = Counter(str(task.exception() or "it ended") for task in over)
        told = "; ".join(f"{count} x {reason}" for reason, count in reasons.most_common(3))
        raise RuntimeError(f"{len(over)} of {len(self._running)} answers were over {when}: {told}")

    async def close(self) -> dict[str, Any]:
        """Disconnect everything."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        self._running.clear()
        self._open += self._held
        self._held.clear()
        return await self.leave()

    async def leave(self) -> dict[str, Any]:
        """Disconnect all but those that are held."""
        for each in self._open:
            await each.close()
        self._open.clear()
        return {}

    async def _turns_of(self, conversation: Conversation, count: int) -> None:
        for _ in range(count):
            async with asyncio.timeout(STALLED):
                await conversation.turn()

    async def _start_later(self, conversation: Conversation, delay: float) -> None:
        await asyncio.sleep(delay)
        await conversation.turn()


def summary(lags: list[int]) -> dict[str, float]:
    """How long deltas were under way, in seconds."""
    parts = statistics.quantiles(lags, n=100)
    middle, late, latest = parts[49] / MILLION, parts[98] / MILLION, max(lags) / MILLION
    return {"deltas": len(lags), "p50": middle, "p99": late, "max": latest}


async def main() -> None:
    """Take orders until stdin ends."""
    driver = Driver()
    while line := await asyncio.to_thread(sys.stdin.readline):
        try:
            answer = await driver.carry_out(json.loads(line))
        except Exception as error:  # noqa: BLE001 - told to the harness, which decides
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    uvloop.run(main())
