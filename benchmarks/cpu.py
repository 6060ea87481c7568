"""CPU of another process, all its threads, to the nanosecond.

Linux lets a process read the CPU clock of another one; the id of that clock is made of the process
id (`clock_getcpuclockid(3)`). The numbers of `/proc` count in ticks of 10 ms, which would blur a
turn of 2 ms.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

_CPU_CLOCK = 2
QUIET, LOOK_EVERY, PATIENCE = 0.002, 0.05, 5.0
"""Quiet is less than 2 ms of CPU in 50 ms; a process that is never quiet is read after 5 s."""


def cpu_seconds(pid: int) -> float:
    """The CPU time a process has used so far."""
    return time.clock_gettime((~pid << 3) | _CPU_CLOCK)


def waited_seconds(pid: int) -> float:
    """How long its threads were ready to run while other processes had the cores."""
    files = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(file.read_text().split()[1]) for file in files) / 1e9


async def cpu_when_quiet(pid: int) -> float:
    """The same once the process has nothing left to do: what follows an answer belongs to it."""
    until = time.monotonic() + PATIENCE
    last = cpu_seconds(pid)
    while time.monotonic() < until:
        await asyncio.sleep(LOOK_EVERY)
        now = cpu_seconds(pid)
        if now - last < QUIET:
            return now
        last = now
    return last
