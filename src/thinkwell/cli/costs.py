"""`thinkwell costs` and `thinkwell budgets`: what turns have cost, and how budgets stand."""

from __future__ import annotations

from typing import Any

from thinkwell.cli.operating import camel_case, opened
from thinkwell.cli.since import begin_of
from thinkwell.cli.tables import Printer
from thinkwell.core import json
from thinkwell.journal.costs import FOR_EVER, cost_line


def show_costs(store: str, *, by: str, since: str, agent: str | None, as_json: bool) -> None:
    """`thinkwell costs`."""
    begins = begin_of(since)
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


def show_budgets(store: str, *, agent: str | None, limit: int, as_json: bool) -> None:
    """`thinkwell budgets`."""
    with opened(store) as database:
        rows = database.fetch_all("list_spending", {"agent": agent, "limit": limit})
    printer = Printer()
    if as_json:
        printer.json([camel_case(dict(row)) for row in rows])
    elif rows:
        printer.budgets(rows)
    else:
        printer.note("No budget has been used.")
