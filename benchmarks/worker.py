"""The subject's side: read an order, do it, say what it cost.

An order is one JSON line on stdin, `{"scenario": …, "turns": n}`; the answer is one JSON line on
stdout with the CPU seconds this process spent per turn. CPU is `time.process_time()`, every thread
included, so the provider and the harness, which are other processes, cost the subject nothing.
`warm` names a model for one uncounted turn that opens connections and wakes the agent. Garbage is
collected before each order, never switched off.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

RunTurn = Callable[[dict[str, Any]], Awaitable[None]]


async def serve_orders(run_turn: RunTurn) -> None:
    """Answer orders until stdin ends."""
    while line := await asyncio.to_thread(sys.stdin.readline):
        order = json.loads(line)
        print(json.dumps(await carry_out(order, run_turn)), flush=True)


async def carry_out(order: dict[str, Any], run_turn: RunTurn) -> dict[str, float]:
    """Run the ordered turns and give the cost of one."""
    turns = int(order.get("turns", 1))
    if warm := order.get("warm"):
        await run_turn({**order, "model": warm})
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(turns):
        await run_turn(order)
    return {
        "cpu": (time.process_time() - cpu) / turns,
        "wall": (time.perf_counter() - wall) / turns,
    }
