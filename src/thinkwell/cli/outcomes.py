"""`thinkwell tools`: calls whose outcome nobody knows, and what an operator can say about them."""

from __future__ import annotations

from typing import Any

import click

from thinkwell.cli.asking import ask
from thinkwell.cli.operating import camel_case, find_database, opened
from thinkwell.cli.tables import Printer
from thinkwell.core import json

NO_LIMIT = -1


def list_outcomes(store: str, *, as_json: bool, agent: str | None, limit: int) -> None:
    """`thinkwell tools list`."""
    with opened(store) as database:
        rows = database.fetch_all("unknown_outcomes", {"agent": agent, "limit": limit})
    rows = [{**row, "input": json.loads(row["input"])} for row in rows]
    printer = Printer()
    if as_json:
        printer.json([camel_case(row) for row in rows])
    elif rows:
        printer.outcomes(rows)
    else:
        printer.note("There is no call with an unknown outcome.")


def resolve_outcome(
    store: str, call: str, agent: str | None, *, output: str | None, not_done: bool
) -> None:
    """`thinkwell tools resolve`."""
    if (output is None) != not_done:
        raise click.ClickException(
            "Say what came of it: --output '{\"id\": 7}' if it took effect, else --not-done."
        )
    said: dict[str, Any] = {"notDone": True} if output is None else {"output": _read(output)}
    with opened(store) as database:
        found = database.fetch_all("unknown_outcomes", {"agent": agent, "limit": NO_LIMIT})
    agents = sorted(
        {row["agent"] for row in found if call in (row["call_id"], row["idempotency_key"])}
    )
    if not agents:
        raise click.ClickException(
            f"No call {call} has an unknown outcome. `thinkwell tools list` shows them."
        )
    if len(agents) > 1:
        raise click.ClickException(
            f"Several agents have a call {call}: {', '.join(agents)}. Add --agent with one of them."
        )
    request = {"do": "resolve", "agent": agents[0], "call": call, **said}
    if not ask(find_database(store), request)["resolved"]:
        raise click.ClickException(f"The outcome of {call} is known by now.")
    then = "may run again" if not_done else "gets that result when it is made again"
    click.echo(f"{agents[0]} knows what came of {call}: the same call {then}.")


def _read(output: str) -> Any:
    try:
        return json.loads(output)
    except ValueError as error:
        raise click.ClickException(
            f"--output {output!r} is no JSON ({error}). A text is written '\"like this\"'."
        ) from None
