"""The tables: what was measured, beside the peers and beside the targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.end_to_end import CROWD_AGENTS, Costs, Outcome
from benchmarks.load import AGENTS, IDLE_AGENTS, RATES, TABS, Memory, Stream
from benchmarks.measure import TurnCosts
from benchmarks.provider import CROWD_DELTAS

MICRO = 1e6
MILLI = 1e3
MEGABYTE = 1e6
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


def end_to_end_rows(costs: Costs) -> list[Row]:
    """Ours, one client, from the provider's socket to the client's."""
    figures = [
        ("delta, burst", costs.burst_delta, MICRO, 30, "µs"),
        ("delta, one each ms", costs.paced_delta, MICRO, 180, "µs"),
        ("turn with 2 deltas", costs.turn, MILLI, 2, "ms"),
        (f"{CROWD_AGENTS} agents x {CROWD_DELTAS} deltas", costs.crowd, 1.0, 0.4, "s"),
        ("first delta (wall), median", costs.first_delta, MILLI, 3, "ms"),
        ("first delta (wall), p99", costs.first_delta_p99, MILLI, None, "ms"),
    ]
    return [
        Row(what=what, shown=duration(cost), value=cost * scale, limit=limit, unit=unit)
        for what, cost, scale, limit, unit in figures
    ]


def tabs_row(one: float, three: float) -> Row:
    """A turn with many deltas, watched by three tabs instead of one."""
    shown = f"{three / one:.2f} x ({duration(one)} -> {duration(three)} a turn)"
    return Row(what=f"{TABS} tabs instead of one", shown=shown, value=three / one, limit=1.5)


def stream_rows(seen: Stream) -> list[Row]:
    """Many agents that stream at once."""
    what = f"{seen.agents:,} agents, {seen.rate:.1f} deltas/s each for {seen.window:.0f} s"
    waited = f"; waited {seen.waited:.0%} for a core" if seen.waited >= BUSY else ""
    lag = f"{duration(seen.p99)} (median {duration(seen.p50)}{waited})"
    rest = f"{seen.cpu:.0%} (provider {seen.provider:.0%}, client {seen.client:.0%})"
    full = seen.agents == AGENTS
    lowest, highest = RATES
    steady = lowest <= seen.rate <= highest
    problem = "" if steady else f"{seen.rate:.1f} instead of 10 deltas/s an agent arrived"
    return [
        Row(
            what=f"{what}: lag, p99",
            shown=lag,
            value=seen.p99 * MILLI,
            limit=50 if full else None,
            unit="ms",
        ),
        Row(
            what=f"{what}: share of a core",
            shown=rest,
            value=seen.cpu * 100,
            limit=85 if full else None,
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


def turn_rows(ours: TurnCosts, library: TurnCosts | None) -> list[Row]:
    """Turns in process, without sockets to clients; beside a library that stores nothing."""
    figures = [
        ("delta, burst", "burst_delta", 0.08),
        ("delta, one each ms", "paced_delta", 0.35),
        ("turn with 2 deltas", "small_turn", 0.25),
        ("turn with a tool call", "tool_turn", 0.25),
    ]
    rows: list[Row] = []
    for what, field, limit in figures:
        own: float = getattr(ours, field)
        if library is None:
            rows.append(Row(what=what, shown=duration(own), value=own))
            continue
        other: float = getattr(library, field)
        shown = f"{duration(own)} (pydantic-ai {duration(other)}: {own / other:.3g} x)"
        rows.append(Row(what=what, shown=shown, value=own / other, limit=limit))
    return rows


def hook_rows(costs: Mapping[int, float]) -> list[Row]:
    """A delta with registered hooks, beside one without."""
    return [
        Row(
            what=f"delta with {count} on_chunk hooks",
            shown=f"{duration(cost)} ({cost / costs[0]:.2f} x of none)",
            value=cost / costs[0],
            limit=2.0 if count else None,
        )
        for count, cost in costs.items()
    ]


def history_rows(costs: Mapping[int, float]) -> list[Row]:
    """Turns on top of a history, beside the one on top of 100 messages."""
    return [
        Row(
            what=f"turn after {count:,} messages",
            shown=f"{duration(cost)} ({cost / costs[100]:.2f} x of 100)",
            value=cost / costs[100],
            limit=1.2 if count == 10_000 else None,
        )
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
    """One server's line."""
    if isinstance(outcome, str):
        return (name, f"not measured: {one_line(outcome)}", "", "", "", "")
    return (
        name,
        duration(outcome.burst_delta),
        duration(outcome.paced_delta),
        duration(outcome.turn),
        duration(outcome.crowd),
        duration(outcome.first_delta),
    )


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table with aligned columns."""
    lines = [head, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    texts = [_line(line, widths) for line in lines]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([texts[0], rule, *texts[1:]])


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "| " + " | ".join(f"{c:<{w}}" for c, w in zip(cells, widths, strict=True)) + " |"
