"""Ours under load: several tabs, a thousand agents at once, a turn beside 2,000, idle agents."""

from __future__ import annotations

from dataclasses import dataclass

import psutil

from benchmarks.end_to_end import Subject, run
from benchmarks.processes import Listener, Worker
from benchmarks.provider import BURST, SMALL
from benchmarks.spread import Spread

TABS = 3
TAB_TURNS = 3

AGENTS = 1_000
INTERVAL_MS = 100
RAMP = 0.006
"""Seconds between the starts of two agents: the beginnings are not what is measured."""
WINDOW = 10.0
STREAM_RUNS = 5
"""Each with a fresh server: the target holds for every one of them."""
RATES = (0.95 * 1000 / INTERVAL_MS, 1.05 * 1000 / INTERVAL_MS)
"""Deltas per second and agent between which a window is what the target speaks of.

Fewer are a lighter load; more are a backlog being worked off, which costs less per delta.
"""

OTHERS = 2_000
ENDLESS = "paced-2-100000000"
"""A model whose second delta does not come."""
BESIDE_TURNS = 20

IDLE_AGENTS = 200
IDLE_TURNS = 10
"""Each leaves two messages."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Stream:
    """Many agents that stream at the same time."""

    agents: int
    window: float
    rate: float
    """Deltas per second and agent that arrived."""
    p50: float
    p99: float
    """Seconds from the provider's socket to the client's."""
    longest: float
    cpu: float
    """Of the server, as a share of one core."""
    provider: float
    client: float
    """The same of the two other processes; near 1 they would be what is slow."""
    waited: float
    """Share of the time in which the server was ready to run, but other processes had the cores."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Memory:
    """Resident memory of a server, in bytes."""

    empty: int
    """Just started, after the first turn of one agent."""
    full: int
    """With all agents connected and idle."""


def tabs_cost(subject: Subject, driver: Worker, rounds: int) -> tuple[Spread, Spread]:
    """CPU seconds of a turn with many deltas, watched by one tab and by three."""
    samples: dict[int, list[float]] = {1: [], TABS: []}
    for number in range(rounds):
        for tabs, values in samples.items():
            names = [f"tabs-{tabs}-{number}"]
            cost = run(driver, subject, BURST, names, turns=TAB_TURNS, tabs=tabs)
            values.append(cost["cpu"] / TAB_TURNS)
    return Spread(tuple(samples[1])), Spread(tuple(samples[TABS]))


def beside_others(subject: Subject, driver: Worker, rounds: int) -> tuple[Spread, Spread]:
    """CPU seconds of a small turn alone, and while 2,000 other agents are in the middle of one."""
    place = {"protocol": subject.protocol, "base": subject.server.address}

    def turns(when: str) -> Spread:
        values: list[float] = []
        for number in range(rounds):
            driver.order("open", model=SMALL, names=[f"{when}-{number}"], **place)
            driver.order("turns", pid=subject.server.pid)
            cost = driver.order("turns", pid=subject.server.pid, count=BESIDE_TURNS)
            driver.order("leave")
            values.append(cost["cpu"] / BESIDE_TURNS)
        return Spread(tuple(values))

    alone = turns("alone")
    driver.order("open", model=ENDLESS, names=[f"other-{n}" for n in range(OTHERS)], **place)
    driver.order("hold")
    beside = turns("beside")
    driver.order("close")
    return alone, beside


def stream(
    subject: Subject, driver: Worker, provider: Listener, *, agents: int, window: float
) -> Stream:
    """All agents stream; lag and CPU are taken in a window in which none begins or ends."""
    # Starts, the window and a large reserve have to fit into one answer.
    deltas = int((agents * RAMP + window + 120) * 1000 / INTERVAL_MS)
    names = [f"stream-{number}" for number in range(agents)]
    model = f"paced-{deltas}-{INTERVAL_MS}"
    place = {"protocol": subject.protocol, "base": subject.server.address, "model": model}
    driver.order("open", names=names, **place)
    pids = {"pid": subject.server.pid, "provider": provider.pid}
    seen = driver.order("stream", ramp=RAMP, window=window, **pids)
    driver.order("close")
    return Stream(
        agents=agents,
        window=window,
        rate=seen["deltas"] / seen["wall"] / agents,
        p50=seen["p50"],
        p99=seen["p99"],
        longest=seen["max"],
        cpu=seen["cpu"],
        provider=seen["provider"],
        client=seen["client"],
        waited=seen["waited"],
    )


def idle_memory(subject: Subject, driver: Worker) -> Memory:
    """What a fresh server holds for agents that are connected, have a history, and do nothing."""
    process = psutil.Process(subject.server.pid)
    run(driver, subject, SMALL, ["first"])
    empty = process.memory_info().rss
    names = [f"idle-{number}" for number in range(IDLE_AGENTS)]
    place = {"protocol": subject.protocol, "base": subject.server.address, "model": SMALL}
    driver.order("open", names=names, **place)
    driver.order("turns", pid=subject.server.pid, count=IDLE_TURNS)
    full = process.memory_info().rss
    driver.order("close")
    return Memory(empty=empty, full=full)
