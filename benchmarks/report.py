"""The tables: what was measured, beside the peers and beside the targets."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.end_to_end import CROWD_AGENTS, Costs, Outcome
from benchmarks.load import AGENTS, IDLE_AGENTS, OTHERS, RATES, TABS, Memory, Stream
from benchmarks.measure import TurnCosts
from benchmarks.provider import CROWD_DELTAS
from benchmarks.spread import Spread

MICRO = 1e6
MILLI = 1e3
MEGABYTE = 1e6
TURNS_PER_SECOND = 500
BUSY = 0.05
"""Share of the time waited for a core from which wall times say more about the machine."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One line of a table of our own figures."""

    what: str
    shown: str
    value: float
    """The number the target speaks about, in the target's unit."""
    limit: float | None = None
    unit: str = "x"
    problem: str = ""
    """Why there is no value; a target is missed then."""

    @property
    def met(self) -> bool:
        """Whether the target is reached; a row without one counts as reached."""
        return not self.problem and (self.limit is None or self.value <= self.limit)

    def cells(self) -> tuple[str, ...]:
        """The line as text."""
        shown = f"not measured: {one_line(self.problem)}" if self.problem else self.shown
        if self.limit is None:
            return (self.what, shown, "", "")
        return (self.what, shown, f"<= {self.limit:g} {self.unit}", verdict(self.met))


def missing_row(what: str, problem: str) -> Row:
    """A figure that could not be taken."""
    return Row(what=what, shown="", value=0.0, problem=problem)


def one_line(text: str) -> str:
    """The last line of a text, with nothing in it that would end a table's cell."""
    return text.strip().splitlines()[-1].replace("|", "/")[:160]


def verdict(met: bool) -> str:  # noqa: FBT001 - a word for it is the whole function
    """A cell that says whether a target is met."""
    return "yes" if met else "**no**"


def end_to_end_rows(costs: Costs, bare: Costs | None) -> list[Row]:
    """Ours, one client, from the provider's socket to the client's; beside the bare path."""
    figures = [
        ("delta, burst", costs.burst_delta, MICRO, 9.6, "µs"),
        ("delta, one each ms", costs.paced_delta, MICRO, 180, "µs"),
        ("turn with 2 deltas", costs.turn, MILLI, None, "ms"),
        (f"{CROWD_AGENTS} agents x {CROWD_DELTAS} deltas", costs.crowd, 1.0, 0.4, "s"),
        ("first delta (wall), median", costs.first_delta, MILLI, 3, "ms"),
        ("first delta (wall), p99", costs.first_delta_p99, MILLI, None, "ms"),
    ]
    rows = [
        Row(what=what, shown=cost.show(duration), value=cost.median * scale, limit=top, unit=unit)
        for what, cost, scale, top, unit in figures
        if cost is not None
    ]
    if bare is not None:
        rows.append(ratio_row("turn, of the bare path", costs.turn, bare.turn, 1.8))
        if costs.paced_delta is not None and bare.paced_delta is not None:
            what = "delta, one each ms, of the bare path"
            rows.append(ratio_row(what, costs.paced_delta, bare.paced_delta, 1.2))
    if costs.busy is not None and costs.busy_turn is not None:
        rows.append(busy_row(costs.busy, costs.busy_turn))
    return rows


def ratio_row(what: str, own: Spread, other: Spread, limit: float | None) -> Row:
    """A figure as a multiple of another one of the same rounds."""
    ratio = own.over(other)
    shown = f"{ratio.show(times)}: {duration(own.median)} beside {duration(other.median)}"
    return Row(what=what, shown=shown, value=ratio.median, limit=limit)


def busy_row(rate: Spread, turn: Spread) -> Row:
    """Turns per second. The target is a floor, so the value is how many times it is missed."""
    shown = f"{rate.show('{:.0f}'.format)}; {duration(turn.median)} of CPU each"
    what = f"turns/s (wall), {CROWD_AGENTS} agents at once, at least {TURNS_PER_SECOND}"
    return Row(what=what, shown=shown, value=TURNS_PER_SECOND / rate.median, limit=1)


def tabs_row(one: Spread, three: Spread) -> Row:
    """A turn with many deltas, watched by three tabs instead of one."""
    return ratio_row(f"{TABS} tabs instead of one, turn of 2,000 deltas", three, one, 1.5)


def others_row(alone: Spread, beside: Spread) -> Row:
    """A turn while many others run. The two are measured one after the other, not interleaved."""
    return ratio_row(f"turn beside {OTHERS:,} running ones", beside, alone, 1.15)


def stream_rows(runs: Sequence[Stream]) -> list[Row]:
    """Many agents that stream at once: the worst run counts."""
    some = runs[0]
    what = f"{some.agents:,} agents, 10 deltas/s each, {len(runs)} x {some.window:.0f} s"
    full = some.agents == AGENTS
    late = Spread(tuple(run.p99 for run in runs))
    cpu = Spread(tuple(run.cpu for run in runs))
    middle = statistics.median(run.p50 for run in runs)
    waited = max(run.waited for run in runs)
    note = f"; waited {waited:.0%} for a core" if waited >= BUSY else ""
    busiest = max(max(run.provider, run.client) for run in runs)
    lowest, highest = RATES
    uneven = [f"{run.rate:.1f}" for run in runs if not lowest <= run.rate <= highest]
    problem = f"{', '.join(uneven)} instead of 10 deltas/s an agent arrived" if uneven else ""
    return [
        Row(
            what=f"{what}: lag, p99, every run",
            shown=f"{late.show(duration)}, median delta {duration(middle)}{note}",
            value=late.high * MILLI,
            limit=50 if full else None,
            unit="ms",
        ),
        Row(
            what=f"{what}: share of a core, every run",
            shown=f"{cpu.show('{:.0%}'.format)}; provider and client at most {busiest:.0%}",
            value=cpu.high * 100,
            limit=75 if full else None,
            unit="%",
            problem=problem,
        ),
    ]


def memory_row(memory: Memory) -> Row:
    """Idle agents with their sockets open."""
    each = (memory.full - memory.empty) / IDLE_AGENTS / 1000
    size = memory.full / MEGABYTE
    shown = f"{size:.0f} MB ({memory.empty / MEGABYTE:.0f} MB before, {each:.0f} kB each)"
    what = f"{IDLE_AGENTS} idle connected agents, 20 messages each: RSS"
    return Row(what=what, shown=shown, value=size, limit=120, unit="MB")


def turn_rows(ours: TurnCosts, libraries: Mapping[str, TurnCosts]) -> list[Row]:
    """Turns in process, without sockets to clients; beside libraries that store nothing."""
    figures = [
        ("delta, burst", "burst_delta", 0.08),
        ("delta, one each ms", "paced_delta", 0.35),
        ("turn with 2 deltas", "small_turn", 0.25),
        ("turn with a tool call", "tool_turn", 0.25),
    ]
    rows: list[Row] = []
    for what, field, limit in figures:
        own: Spread = getattr(ours, field)
        others: dict[str, Spread] = {name: getattr(x, field) for name, x in libraries.items()}
        beside = [
            f"{name} {duration(other.median)}: {own.over(other).median:.3g} x"
            for name, other in others.items()
        ]
        shown = "; ".join([own.show(duration), *beside])
        value = max((own.over(other).median for other in others.values()), default=0.0)
        rows.append(Row(what=what, shown=shown, value=value, limit=limit if others else None))
    return rows


def hook_rows(costs: Mapping[int, Spread]) -> list[Row]:
    """A delta with registered hooks, beside one without."""
    rows = [Row(what="delta without a hook", shown=costs[0].show(duration), value=0.0)]
    return rows + [
        ratio_row(f"delta with {count} on_chunk hooks, of none", cost, costs[0], 2.0)
        for count, cost in costs.items()
        if count
    ]


def history_rows(costs: Mapping[int, Spread]) -> list[Row]:
    """Turns on top of a history, beside the one on top of 100 messages."""
    limits = {10_000: 1.2}
    return [
        ratio_row(f"turn after {count:,} messages, of 100", cost, costs[100], limits.get(count))
        for count, cost in costs.items()
    ]


def import_rows(seconds: Mapping[str, float]) -> list[Row]:
    """Wall time of imports."""
    whole, names = seconds["import"], seconds["agent"]
    beside = f" (pydantic-ai {duration(seconds['peer'])})" if "peer" in seconds else ""
    shown = f"{duration(whole)}{beside}"
    return [
        Row(what="import thinkwell (wall)", shown=shown, value=whole * MILLI, limit=150, unit="ms"),
        Row(
            what="import of App, Think, tool (wall)",
            shown=duration(names),
            value=names * MILLI,
            unit="ms",
        ),
    ]


def times(ratio: float) -> str:
    """A multiple."""
    return f"{ratio:.2f} x"


def duration(seconds: float) -> str:
    """A cost in the unit one would say."""
    if seconds < 1e-3:
        return f"{seconds * MICRO:.1f} µs"
    if seconds < 1:
        return f"{seconds * MILLI:.2f} ms"
    return f"{seconds:.2f} s"


OWN_HEAD = ("figure", "value", "target", "met")
PEER_HEAD = ("server", "delta, burst", "delta, each ms", "turn", "50 x 200", "first delta (wall)")


def own_table(rows: Sequence[Row]) -> str:
    """Our figures beside their targets."""
    return table(OWN_HEAD, [row.cells() for row in rows])


def peer_table(outcomes: Mapping[str, Outcome]) -> str:
    """All servers beside each other; one that could not be measured says why."""
    return table(PEER_HEAD, [peer_cells(name, each) for name, each in outcomes.items()])


def peer_cells(name: str, outcome: Outcome) -> tuple[str, ...]:
    """One server's line: medians, with the spread of a turn."""
    if isinstance(outcome, str):
        return (name, f"not measured: {one_line(outcome)}", "", "", "", "")
    return (
        name,
        middle(outcome.burst_delta),
        middle(outcome.paced_delta),
        outcome.turn.show(duration),
        middle(outcome.crowd),
        middle(outcome.first_delta),
    )


def middle(spread: Spread | None) -> str:
    """The median alone."""
    return "" if spread is None else duration(spread.median)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table with aligned columns."""
    lines = [head, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    texts = [_line(line, widths) for line in lines]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([texts[0], rule, *texts[1:]])


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "| " + " | ".join(f"{c:<{w}}" for c, w in zip(cells, widths, strict=True)) + " |"
