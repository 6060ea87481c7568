"""What each model adapter costs: a delta, a call, a turn, and 200 streams at once.

`python -m benchmarks --only models` measures these figures alone and rewrites their section of
RESULTS.md. Adapters take turns within a round, so that a busy moment of the machine hits all.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from benchmarks.measure import per_delta
from benchmarks.processes import Worker
from benchmarks.provider import BURST, SMALL, start_provider
from benchmarks.report import MICRO, MILLI, Row, duration
from benchmarks.spread import Spread
from benchmarks.subjects.adapters import STREAMS

ROUNDS = 5
CALLS = 50
NATIVE: Mapping[str, str] = {
    "openai-chat": "chat completions",
    "openai": "responses",
    "anthropic": "messages",
}
BRIDGE = "bridge"
DELTA_LIMIT, CALL_LIMIT = 8.0, 0.4
STREAM = "paced-40-25"
"""One second of a steady answer."""
STUCK_LIMIT = 1.1

Samples = dict[tuple[str, str], list[float]]


def measure(folder: Path) -> list[Row]:
    """All figures of the section."""
    with (
        start_provider() as provider,
        Worker(
            "subjects.adapters",
            *("--address", provider.address, "--store", f"sqlite:///{folder}/models.db"),
        ) as worker,
    ):
        samples = _samples(worker)
        alone, beside = _streams(worker)
    rows: list[Row] = []
    for adapter, title in NATIVE.items():
        rows.append(_delta(title, samples, adapter, limit=DELTA_LIMIT))
    rows.append(_delta("bridge to pydantic-ai", samples, BRIDGE, limit=None))
    for adapter, title in NATIVE.items():
        rows.append(_call(title, samples, adapter))
    return [*rows, _stuck_row(alone, beside)]


def _samples(worker: Worker) -> Samples:
    samples: Samples = {}
    for number in range(ROUNDS):
        for adapter in (*NATIVE, BRIDGE):
            for scenario, model, turns in (
                ("call", SMALL, CALLS),
                ("call", BURST, 3),
                ("turn", SMALL, 10),
                ("turn", BURST, 3),
            ):
                agent = f"{adapter}-{number}-{scenario}-{model}"
                order = {"adapter": adapter, "model": model, "warm": SMALL, "agent": agent}
                cost = worker.order(scenario, turns=turns, **order)
                key = f"{scenario} {'burst' if model == BURST else 'small'}"
                samples.setdefault((adapter, key), []).append(cost["cpu"])
    return samples


def _streams(worker: Worker) -> tuple[Spread, Spread]:
    """Seconds until all streams have ended, alone and beside one that nobody reads."""
    taken: dict[str, list[float]] = {"streams": [], "stuck": []}
    order = {"adapter": "openai-chat", "model": STREAM, "warm": SMALL}
    for _ in range(ROUNDS):
        for scenario, seconds in taken.items():
            seconds.append(worker.order(scenario, **order)["wall"])
    return Spread(tuple(taken["streams"])), Spread(tuple(taken["stuck"]))


def _delta(title: str, samples: Samples, adapter: str, *, limit: float | None) -> Row:
    turn = _per_delta(samples, adapter, "turn")
    call = _per_delta(samples, adapter, "call")
    return Row(
        what=f"delta, burst, {title}",
        shown=f"{turn.show(duration)}; the adapter alone {duration(call.median)}",
        value=turn.median * MICRO,
        limit=limit,
        unit="µs",
    )


def _per_delta(samples: Samples, adapter: str, scenario: str) -> Spread:
    many, few = samples[adapter, f"{scenario} burst"], samples[adapter, f"{scenario} small"]
    return Spread(tuple(map(per_delta, many, few)))


def _call(title: str, samples: Samples, adapter: str) -> Row:
    call = Spread(tuple(samples[adapter, "call small"]))
    return Row(
        what=f"model call, {title}",
        shown=call.show(duration),
        value=call.median * MILLI,
        limit=CALL_LIMIT,
        unit="ms",
    )


def _stuck_row(alone: Spread, beside: Spread) -> Row:
    ratio = beside.median / alone.median
    return Row(
        what=f"{STREAMS} streams beside one that nobody reads",
        shown=f"{ratio:.2f} x: {beside.median:.2f} s beside {alone.median:.2f} s",
        value=ratio,
        limit=STUCK_LIMIT,
    )
