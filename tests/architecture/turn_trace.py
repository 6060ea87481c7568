"""Which code one turn goes through: `python -m tests.architecture.turn_trace` prints it.

A real client's turn, traced: one agent class without tools or hooks is served on a real port, one
turn warms everything up, and the next one is traced with `sys.setprofile` from the client's frame
to the last task it leaves. Every function that is entered counts, whatever task it runs in.

- *touched*: the files of `src/thinkwell` with a function that was called, a property or a generator
  included. Every package counts; only the fakes in `testing/` do not, they are no part of the
  product.
- *crossed*: those of them from which another file was called. The others are ends: a helper that
  answers by itself need not be opened to follow the turn.
- *crossings*: calls from `agent/` into `turn/` or back. The caller is the nearest function of the
  two packages on the stack, so a detour through another package hides nothing. A coroutine that is
  resumed is no new call, and what a task of its own begins has no caller.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import thinkwell
from tests.wire.room import room
from thinkwell import Think

SOURCE = f"{Path(thinkwell.__file__).parent}/"
OURS = ("agent", "turn")
PRODUCT = tuple(p.name for p in Path(SOURCE).iterdir() if p.name != "testing")
BEFORE = {"touched": 107, "crossed": 66, "crossings": 32}
"""Counted the same way at 1f9060e, before the turn had its folder."""
LEFT_OVER = 50
"""Rounds of the loop in which the tasks that a turn leaves end: they wait for nothing."""


class Crossing(NamedTuple):
    """A call from one of the two packages into the other."""

    caller: str
    callee: str


class Trace:
    """What was called while it ran."""

    def __init__(self) -> None:
        self.files: Counter[str] = Counter()
        """How many calls went into each file, by its path below `src/thinkwell`."""
        self.crossed: set[str] = set()
        """Those from which another file was called."""
        self.crossings: list[Crossing] = []
        self._seen: set[FrameType] = set()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Trace this thread."""
        sys.setprofile(self._note)
        try:
            yield
        finally:
            sys.setprofile(None)
            self._seen.clear()

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        name = frame.f_code.co_filename
        if event != "call" or not name.startswith(SOURCE) or frame in self._seen:
            return
        self._seen.add(frame)  # also keeps it: the next frame must not be taken for this one
        file = name.removeprefix(SOURCE)
        if file.startswith("testing/"):
            return
        self.files[file] += 1
        before = _nearest(frame.f_back, *PRODUCT)
        if before is not None:
            self.crossed |= {before.partition(":")[0]} - {file}
        caller = _nearest(frame.f_back, *OURS)
        if package(file) in OURS and caller and package(caller) != package(file):
            self.crossings.append(Crossing(caller, f"{file}:{frame.f_code.co_name}"))


def package(place: str) -> str:
    """The package of a file below `src/thinkwell`."""
    return place.partition("/")[0]


def _nearest(frame: FrameType | None, *packages: str) -> str | None:
    """The next function up the stack in one of these packages."""
    while frame is not None:
        file = frame.f_code.co_filename.removeprefix(SOURCE)
        if file != frame.f_code.co_filename and package(file) in packages:
            return f"{file}:{frame.f_code.co_name}"
        frame = frame.f_back
    return None


class Plain(Think, name="plain-to-trace"):
    """An agent that only talks."""


async def trace_text_turn() -> Trace:
    """One text turn over a WebSocket, from the client's frame to the last task of the turn."""
    trace = Trace()
    async with room("warm", "Hello there", cls=Plain) as served:
        tab = await served.tab()
        await tab.ask("warm up", "q1")
        await tab.stream("q1")
        await _left_over()
        with trace.running():
            await tab.ask("hello", "q2")
            await tab.stream("q2")
            await _left_over()
    return trace


async def _left_over() -> None:
    for _ in range(LEFT_OVER):
        await asyncio.sleep(0)


def report(trace: Trace) -> str:
    """The trace for people; a `>` stands before the files that were crossed."""
    files = [
        f"  {count:4}  {'>' if file in trace.crossed else ' '} {file}"
        for file, count in sorted(trace.files.items())
    ]
    crossings = [f"  {caller} -> {callee}" for caller, callee in trace.crossings]
    return "\n".join(
        [
            f"{sum(trace.files.values())} calls:",
            *files,
            f"crossings between {' and '.join(OURS)}:",
            *crossings,
            *(f"{what}: {n} (before: {BEFORE[what]})" for what, n in figures(trace).items()),
        ]
    )


def figures(trace: Trace) -> dict[str, int]:
    """What the test holds."""
    return {
        "touched": len(trace.files),
        "crossed": len(trace.crossed),
        "crossings": len(trace.crossings),
    }


if __name__ == "__main__":
    print(report(asyncio.run(trace_text_turn())))  # noqa: T201 - it is a command
