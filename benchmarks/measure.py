"""The scenarios in process: interleaved rounds, and what is subtracted from what.

CPU per delta is the CPU of a turn with many deltas minus that of a turn with two, divided by the
difference. Subjects take turns within a round, so that a busy moment of the machine hits both.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.processes import ROOT, Worker
from benchmarks.provider import BURST, DELTAS, PACED, SMALL, SMALL_DELTAS
from benchmarks.spread import Spread

ROUNDS = 5
SMALL_TURNS = 10
HISTORY = (100, 1_000, 10_000)
IMPORTS = 9
HOOKS = (0, 20)
BURST_TURNS = 3

Samples = dict[str, list[float]]


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnCosts:
    """What turns of one subject cost."""

    burst_delta: Spread
    """CPU seconds per delta, all deltas at once."""
    paced_delta: Spread
    """CPU seconds per delta, one each millisecond."""
    small_turn: Spread
    """CPU seconds of a turn with two deltas."""
    tool_turn: Spread
    """CPU seconds of a turn with one tool call and two deltas."""


def turn_costs(
    workers: Mapping[str, Worker], with_tool: Mapping[str, Worker]
) -> dict[str, TurnCosts]:
    """Measure every subject, round by round. `with_tool` talk to the provider that calls a tool."""
    plan = (
        ("small", SMALL, SMALL_TURNS, workers),
        ("burst", BURST, 1, workers),
        ("tool", SMALL, SMALL_TURNS, with_tool),
        ("paced", PACED, 1, workers),
    )
    samples: dict[str, Samples] = {name: {} for name in workers}
    for number in range(ROUNDS):
        for scenario, model, turns, subjects in plan:
            for name, worker in subjects.items():
                agent = f"round-{number}-{scenario}"
                answer = worker.order("turn", model=model, warm=SMALL, agent=agent, turns=turns)
                samples[name].setdefault(scenario, []).append(answer["cpu"])
    return {name: _costs(samples[name]) for name in workers}


def _costs(samples: Samples) -> TurnCosts:
    small = samples["small"]

    def deltas(scenario: str) -> Spread:
        return Spread(tuple(map(per_delta, samples[scenario], small)))

    return TurnCosts(
        burst_delta=deltas("burst"),
        paced_delta=deltas("paced"),
        small_turn=Spread(tuple(small)),
        tool_turn=Spread(tuple(samples["tool"])),
    )


def per_delta(many: float, few: float) -> float:
    """CPU seconds of one delta, the turn around it taken off."""
    return (many - few) / (DELTAS - SMALL_DELTAS)


def history_costs(worker: Worker) -> dict[int, Spread]:
    """CPU seconds of a small turn on top of so many stored messages."""
    for count in HISTORY:
        worker.order("history", agent=f"history-{count}", messages=count)
    samples: dict[int, list[float]] = {count: [] for count in HISTORY}
    for _ in range(ROUNDS):
        for count, taken in samples.items():
            order = {"model": SMALL, "warm": SMALL, "agent": f"history-{count}"}
            taken.append(worker.order("turn", turns=SMALL_TURNS, **order)["cpu"])
    return {count: Spread(tuple(values)) for count, values in samples.items()}


def hook_costs(worker: Worker) -> dict[int, Spread]:
    """CPU seconds per delta in burst with so many registered `on_chunk` hooks."""
    samples: dict[int, list[float]] = {count: [] for count in HOOKS}
    for number in range(ROUNDS):
        for count in HOOKS:
            where = {"agent": f"hooks-{count}-{number}", "hooks": count, "warm": SMALL}
            few = worker.order("turn", model=SMALL, turns=SMALL_TURNS, **where)["cpu"]
            many = worker.order("turn", model=BURST, turns=BURST_TURNS, **where)["cpu"]
            samples[count].append(per_delta(many, few))
    return {count: Spread(tuple(values)) for count, values in samples.items()}


def import_seconds(statements: Mapping[str, str]) -> dict[str, float]:
    """Wall seconds of import statements, each in fresh interpreters."""
    code = "import time; t = time.perf_counter(); {}; print(time.perf_counter() - t)"
    samples: dict[str, list[float]] = {name: [] for name in statements}
    for _ in range(IMPORTS):
        for name, statement in statements.items():
            command = [sys.executable, "-c", code.format(statement)]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
            samples[name].append(float(done.stdout))
    return {name: statistics.median(values) for name, values in samples.items()}
