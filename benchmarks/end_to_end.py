"""End to end: provider socket to client socket, the CPU of the server process alone.

Provider, server and client are three processes. Subjects take turns within a round, so that a busy
moment of the machine hits all of them; what is reported is each round's figure, see `Spread`. A
subject that fails is left out from then on and reported with the reason.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.measure import per_delta
from benchmarks.processes import Listener, Worker
from benchmarks.provider import BURST, CROWD, CROWD_DELTAS, DELTAS, PACED, SMALL, SMALL_DELTAS
from benchmarks.spread import Spread

SMALL_TURNS = 10
SMALL_AGENTS = 4
CROWD_AGENTS = 50
BUSY_TURNS = 10

ALL = ("small", "burst", "paced", "crowd", "busy")


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """A running server and how to talk to it."""

    protocol: str
    server: Listener
    scenarios: tuple[str, ...] = ALL
    """Which of them are run; `small` always is."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Costs:
    """What one server costs, in seconds; None where a scenario was left out."""

    turn: Spread
    """CPU of a turn with two deltas."""
    burst_delta: Spread | None
    """CPU per delta, all at once."""
    paced_delta: Spread | None
    """CPU per delta, one each millisecond."""
    crowd: Spread | None
    """CPU of 50 conversations with 200 deltas each, at the same time."""
    busy: Spread | None
    """Turns per second (wall), 50 conversations at the same time."""
    busy_turn: Spread | None
    """CPU of one of these turns."""
    first_delta: Spread
    """Wall from the model's first delta to its arrival at the client, median."""
    first_delta_p99: Spread


class Samples:
    """Measured values of one subject, one per round for every figure."""

    def __init__(self) -> None:
        self._values: dict[str, list[float]] = {}

    def add(self, figure: str, value: float) -> None:
        """One more."""
        self._values.setdefault(figure, []).append(value)

    def of(self, figure: str) -> Spread | None:
        """All rounds of it."""
        return Spread(tuple(self._values[figure])) if figure in self._values else None

    def costs(self) -> Costs:
        """Everything."""
        turn, first, late = self.of("turn"), self.of("first_delta"), self.of("first_delta_p99")
        if turn is None or first is None or late is None:
            raise RuntimeError("no round was measured")
        return Costs(
            turn=turn,
            burst_delta=self.of("burst_delta"),
            paced_delta=self.of("paced_delta"),
            crowd=self.of("crowd"),
            busy=self.of("busy"),
            busy_turn=self.of("busy_turn"),
            first_delta=first,
            first_delta_p99=late,
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
    turns: list[float] = []
    firsts: list[float] = []
    for agent in range(SMALL_AGENTS):
        cost = run(driver, subject, SMALL, [f"small-{number}-{agent}"], turns=SMALL_TURNS)
        turns.append(cost["cpu"] / SMALL_TURNS)
        firsts += cost["firsts"]
    turn = statistics.median(turns)
    samples.add("turn", turn)
    samples.add("first_delta", statistics.median(firsts))
    samples.add("first_delta_p99", percentile(firsts, 99))
    for scenario, model in (("burst", BURST), ("paced", PACED)):
        if scenario in subject.scenarios:
            cost = run(driver, subject, model, [f"{scenario}-{number}"])
            samples.add(f"{scenario}_delta", per_delta(cost["cpu"], turn))
    if "crowd" in subject.scenarios:
        crowd = [f"crowd-{number}-{agent}" for agent in range(CROWD_AGENTS)]
        samples.add("crowd", run(driver, subject, CROWD, crowd, warm=0)["cpu"])
    if "busy" in subject.scenarios:
        crowd = [f"busy-{number}-{agent}" for agent in range(CROWD_AGENTS)]
        cost = run(driver, subject, SMALL, crowd, turns=BUSY_TURNS)
        samples.add("busy", CROWD_AGENTS * BUSY_TURNS / cost["wall"])
        samples.add("busy_turn", cost["cpu"] / CROWD_AGENTS / BUSY_TURNS)


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
