"""`thinkwell costs`: what turns have cost, by agent, principal, day or model."""

from __future__ import annotations

import re
from typing import Any

import click

from thinkwell.cli.operating import opened
from thinkwell.cli.tables import Printer
from thinkwell.core import json
from thinkwell.core.clock import SystemClock
from thinkwell.journal.costs import FOR_EVER, cost_line

_UNITS = {"m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
_SPAN = re.compile(r"(\d+)([mhdw])")


def show_costs(store: str, *, by: str, since: str, agent: str | None, as_json: bool) -> None:
    """`thinkwell costs`."""
    begins = SystemClock().now() - _seconds(since)
    asked: dict[str, Any] = {"by": by, "agent": agent, "since": begins, "until": FOR_EVER}
    with opened(store) as database:
        lines = [cost_line(row) for row in database.fetch_all("costs_by", asked)]
    printer = Printer()
    if as_json:
        printer.json([json.loads(json.dumps(line)) for line in lines])
    elif lines:
        printer.costs(by, lines)
    else:
        printer.note(f"No turn that ended in the last {since} has used a model.")


def _seconds(span: str) -> float:
    found = _SPAN.fullmatch(span)
    if found is None:
        raise click.ClickException(
            f"--since {span} is no time. Write a number and m, h, d or w, such as 24h or 7d."
        )
    return int(found[1]) * _UNITS[found[2]]
