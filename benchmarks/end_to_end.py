"""End to end: provider socket to client socket, the CPU of the server process alone.

Provider, server and client are three processes. Subjects take turns within a round, so that a busy
moment of the machine hits all of them; what is reported are medians. A subject that fails is left
out from then on and reported with the reason.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.measure import per_delta
from benchmarks.processes import Listener, Worker
from benchmarks.provider import BURST, CROWD, CROWD_DELTAS, DELTAS, PACED, SMALL, SMALL_DELTAS

SMALL_TURNS = 10
SMALL_AGENTS = 4
CROWD_AGENTS = 50


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """A running server and how to talk to it."""

    protocol: str
    server: Listener


@dataclass(frozen=True, kw_only=True, slots=True)
class Costs:
    """What one server costs, in seconds."""

    burst_delta: float
    """CPU per delta, all at once."""
    paced_delta: float
    """CPU per delta, one each millisecond."""
    turn: float
    """CPU of a turn with two deltas."""
    crowd: float
    """CPU of 50 conversations with 200 deltas each, at the same time."""
    first_delta: float
    """Wall from the model's first delta to its arrival at the client, median."""
    first_delta_p99: float


@dataclass(slots=True)
class Samples:
    """Measured values of one subject, scenario by scenario."""

    values: dict[str, list[float]] = field(default_factory=dict)
    firsts: list[float] = field(default_factory=list)

    def add(self, scenario: str, value: float) -> None:
        """One more."""
        self.values.setdefault(scenario, []).append(value)

    def costs(self) -> Costs:
        """The medians."""
        middle = {name: statistics.median(values) for name, values in self.values.items()}
        return Costs(
            burst_delta=per_delta(middle["burst"], middle["small"]),
            paced_delta=per_delta(middle["paced"], middle["small"]),
            turn=middle["small"],
            crowd=middle["crowd"],
            first_delta=statistics.median(self.firsts),
            first_delta_p99=percentile(self.firsts, 99),
        )


Outcome = Costs | str
"""What a subject costs, or why that is not known."""


def end_to_end(
    subjects: Mapping[str, Subject | str],
    driver: Worker,
    rounds: int,
    limits: Mapping[str, int],
) -> dict[str, Outcome]:
    """Measure every subject, round by round; a text instead of a subject is passed on.

    `limits` holds the rounds of those that get fewer.
    """
    failed = {name: each for name, each in subjects.items() if isinstance(each, str)}
    samples = {name: Samples() for name in subjects}
    for number in range(rounds):
        for name, subject in subjects.items():
            if isinstance(subject, str) or name in failed or number >= limits.get(name, rounds):
                continue
            print(f"  round {number + 1}: {name}", file=sys.stderr, flush=True)
            try:
                one_round(subject, driver, samples[name], number)
            except RuntimeError as error:
                driver.order("close")
                failed[name] = str(error)
    return {name: failed.get(name) or samples[name].costs() for name in subjects}


def one_round(subject: Subject, driver: Worker, samples: Samples, number: int) -> None:
    """Every scenario once."""
    for agent in range(SMALL_AGENTS):
        cost = run(driver, subject, SMALL, [f"small-{number}-{agent}"], turns=SMALL_TURNS)
        samples.add("small", cost["cpu"] / SMALL_TURNS)
        samples.firsts += cost["firsts"]
    samples.add("burst", run(driver, subject, BURST, [f"burst-{number}"])["cpu"])
    samples.add("paced", run(driver, subject, PACED, [f"paced-{number}"])["cpu"])
    crowd = [f"crowd-{number}-{agent}" for agent in range(CROWD_AGENTS)]
    samples.add("crowd", run(driver, subject, CROWD, crowd, warm=0)["cpu"])


def run(
    driver: Worker,
    subject: Subject,
    model: str,
    names: Sequence[str],
    *,
    turns: int = 1,
    warm: int = 1,
    tabs: int = 1,
) -> dict[str, Any]:
    """Open conversations, run uncounted turns, then counted ones; check that all deltas came."""
    base, pid = subject.server.address, subject.server.pid
    opening = {"protocol": subject.protocol, "base": base, "model": model, "tabs": tabs}
    driver.order("open", names=list(names), **opening)
    for _ in range(warm):
        driver.order("turns", pid=pid)
    cost = driver.order("turns", pid=pid, count=turns)
    driver.order("close")
    wanted = EXPECTED[model] * len(names) * turns * tabs
    if cost["deltas"] != wanted:
        raise RuntimeError(f"the client saw {cost['deltas']} deltas instead of {wanted}")
    return cost


EXPECTED = {SMALL: SMALL_DELTAS, CROWD: CROWD_DELTAS, BURST: DELTAS, PACED: DELTAS}


def percentile(values: Sequence[float], number: int) -> float:
    """The value below which `number` percent of them are."""
    return statistics.quantiles(values, n=100, method="inclusive")[number - 1]
