"""The plot of RESULTS.md: bars on a logarithmic scale, written as SVG by hand.

Colours are in the middle between black and white, so that it can be read on a light and on a dark
page.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape

from benchmarks.end_to_end import Costs
from benchmarks.report import duration
from benchmarks.spread import Spread

WIDTH, LABELS, RIGHT = 760, 150, 90
BAR, GAP, PANEL_HEAD, PANEL_GAP = 22, 8, 34, 26
INK, GRID, OURS, THEIRS = "#7d8590", "#7d859055", "#2f81f7", "#a371a8"
PANELS = (
    ("CPU per delta, burst", "burst_delta"),
    ("CPU per delta, one each ms", "paced_delta"),
    ("CPU per turn", "turn"),
    ("CPU of 50 conversations x 200 deltas", "crowd"),
)


def draw(costs: Mapping[str, Costs]) -> str:
    """One panel per figure, one bar per server."""
    parts: list[str] = []
    top = 8
    for title, field in PANELS:
        spreads: dict[str, Spread | None] = {n: getattr(each, field) for n, each in costs.items()}
        values = {name: each.median for name, each in spreads.items() if each is not None}
        parts.append(_panel(title, values, top))
        top += PANEL_HEAD + len(values) * (BAR + GAP) + PANEL_GAP
    style = f'font-family="system-ui, sans-serif" font-size="13" fill="{INK}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top}" width="{WIDTH}" '
        f'height="{top}" role="img" aria-label="CPU by server, logarithmic scale" {style}>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _panel(title: str, values: Mapping[str, float], top: int) -> str:
    low = 10 ** math.floor(math.log10(min(values.values())))
    high = 10 ** math.ceil(math.log10(max(values.values()) * 1.001))
    span = math.log10(high / low)
    room = WIDTH - LABELS - RIGHT
    bottom = top + PANEL_HEAD + len(values) * (BAR + GAP)
    head = f"{escape(title)} (logarithmic)"
    lines = [f'<text x="{LABELS}" y="{top + 14}" font-weight="600">{head}</text>']
    for power in range(round(span) + 1):
        x = LABELS + room * power / span
        lines.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top + PANEL_HEAD - 8}" y2="{bottom}" '
            f'stroke="{GRID}"/>'
            f'<text x="{x:.1f}" y="{bottom + 14}" text-anchor="middle" font-size="11">'
            f"{_tick(low * 10**power)}</text>"
        )
    for index, (name, value) in enumerate(values.items()):
        y = top + PANEL_HEAD + index * (BAR + GAP)
        length = max(2.0, room * math.log10(value / low) / span)
        colour = OURS if name.startswith("thinkwell") else THEIRS
        lines.append(
            f'<text x="{LABELS - 8}" y="{y + 16}" text-anchor="end">{escape(name)}</text>'
            f'<rect x="{LABELS}" y="{y}" width="{length:.1f}" height="{BAR}" rx="3" '
            f'fill="{colour}"/>'
            f'<text x="{LABELS + length + 6:.1f}" y="{y + 16}">{duration(value)}</text>'
        )
    return "\n".join(lines)


def _tick(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * scale >= 0.999:
            return f"{round(seconds * scale)} {unit}"
    return f"{seconds * 1e6:g} µs"
