"""The table: what was measured, beside the peer and beside the target."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version

from benchmarks.measure import TurnCosts

MICRO = 1e6
MILLI = 1e3


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One line of the table."""

    what: str
    ours: str
    peer: str = ""
    value: float
    """The number the target speaks about: a ratio, or a cost in the unit of the target."""
    limit: float | None = None
    unit: str = "x"

    def cells(self) -> tuple[str, ...]:
        """The line as text."""
        value = f"{self.value:.3g} {self.unit}"
        if self.limit is None:
            return (self.what, self.ours, self.peer, value, "", "")
        verdict = "yes" if self.value <= self.limit else "**no**"
        return (self.what, self.ours, self.peer, value, f"<= {self.limit:g} {self.unit}", verdict)


def turn_rows(ours: TurnCosts, peer: TurnCosts) -> list[Row]:
    """Turns beside the peer's."""
    rows = [
        ("delta, burst", ours.burst_delta, peer.burst_delta, 0.08),
        ("delta, one each ms", ours.paced_delta, peer.paced_delta, 0.35),
        ("turn with 2 deltas", ours.small_turn, peer.small_turn, 0.25),
        ("turn with a tool call", ours.tool_turn, peer.tool_turn, 0.25),
    ]
    return [
        Row(what=what, ours=duration(a), peer=duration(b), value=a / b, limit=limit)
        for what, a, b, limit in rows
    ]


def hook_rows(costs: dict[int, float]) -> list[Row]:
    """A delta with registered hooks, beside one without."""
    return [
        Row(
            what=f"delta with {count} on_chunk hooks",
            ours=duration(cost),
            value=cost / costs[0],
            limit=2.0 if count else None,
            unit="x of none",
        )
        for count, cost in costs.items()
    ]


def history_rows(costs: dict[int, float]) -> list[Row]:
    """Turns on top of a history, beside the one on top of 100 messages."""
    return [
        Row(
            what=f"turn after {count:,} messages",
            ours=duration(cost),
            value=cost / costs[100],
            limit=1.2 if count == 10_000 else None,
            unit="x of 100",
        )
        for count, cost in costs.items()
    ]


def socket_row(cost: float) -> Row:
    """A delta from the provider's socket to the client's."""
    return Row(
        what="delta over a WebSocket, burst",
        ours=duration(cost),
        value=cost * MICRO,
        limit=30,
        unit="µs",
    )


def import_rows(seconds: dict[str, float]) -> list[Row]:
    """Wall time of imports."""
    peer = duration(seconds["peer"])
    whole, names = seconds["import"], seconds["agent"]
    return [
        Row(
            what="import of the package (wall)",
            ours=duration(whole),
            peer=peer,
            value=whole * MILLI,
            limit=150,
            unit="ms",
        ),
        Row(
            what="import of App, Think, tool (wall)",
            ours=duration(names),
            value=names * MILLI,
            unit="ms",
        ),
    ]


def duration(seconds: float) -> str:
    """A cost in the unit one would say."""
    if seconds < 1e-3:
        return f"{seconds * MICRO:.1f} µs"
    return f"{seconds * MILLI:.2f} ms"


def table(rows: Sequence[Row]) -> str:
    """The rows as a Markdown table with aligned columns."""
    head = ("CPU of the subject process per", "thinkwell", "pydantic-ai", "value", "target", "met")
    lines = [head, *(row.cells() for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    texts = [_line(line, widths) for line in lines]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([texts[0], rule, *texts[1:]])


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "| " + " | ".join(f"{c:<{w}}" for c, w in zip(cells, widths, strict=True)) + " |"


def document(rows: Sequence[Row]) -> str:
    """The whole results page."""
    return RESULTS.format(
        python=platform.python_version(),
        peer=version("pydantic-ai-slim"),
        system=f"{platform.system()} {platform.machine()}",
        table=table(rows),
    )


RESULTS = """# Results

Written by `make bench`. Python {python}, pydantic-ai {peer}, {system}.

{table}

Both subjects talk to the same mock provider, which is another process on the same machine, and run
on uvloop. pydantic-ai stores nothing; Thinkwell runs two `on_chunk` hooks and commits turn, journal
and messages to a SQLite file. Medians of interleaved rounds. A delta's cost is that of a turn with
2,000 deltas minus that of a turn with two, divided by the difference.
"""
