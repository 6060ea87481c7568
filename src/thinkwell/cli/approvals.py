"""`thinkwell approvals`: calls that wait for somebody, and the rules that always allow some."""

from __future__ import annotations

from typing import Any

import click

from thinkwell.cli.asking import ask
from thinkwell.cli.operating import camel_case, find_database, opened
from thinkwell.cli.tables import Printer
from thinkwell.core import json


def list_approvals(store: str, *, as_json: bool, **filters: Any) -> None:
    """`thinkwell approvals list`."""
    with opened(store) as database:
        rows = database.fetch_all("list_approvals", filters)
    printer = Printer()
    if as_json:
        printer.json([_readable(row) for row in rows])
    elif rows:
        printer.approvals(rows)
    else:
        printer.note("Nothing waits for an approval.")


def decide(store: str, approval: str, agent: str | None, *, approved: bool, **said: Any) -> None:
    """`thinkwell approvals allow` and `deny`."""
    row = _one(store, "approvals_with_id", {"id": approval, "agent": agent}, "question")
    answer = ask(
        find_database(store),
        {"do": "decide", "agent": row["agent"], "approval": row["approval_id"], **said}
        | {"approved": approved},
    )
    if not answer["decided"]:
        raise click.ClickException(f"The question {approval} waits no more.")
    done = "allowed" if approved else "denied"
    click.echo(f"{row['agent']}: the call of {row['tool_name']} is {done}.")
    if answer.get("rule"):
        click.echo(f"From now on the same call is always allowed: rule {answer['rule']}.")


def list_rules(store: str, *, as_json: bool, **filters: Any) -> None:
    """`thinkwell approvals rules`."""
    with opened(store) as database:
        rows = database.fetch_all("list_rules", filters)
    printer = Printer()
    if as_json:
        printer.json([_readable(row) for row in rows])
    elif rows:
        printer.rules(rows)
    else:
        printer.note("There are no rules.")


def revoke_rule(store: str, rule: str, agent: str | None) -> None:
    """`thinkwell approvals revoke`."""
    row = _one(store, "rules_with_id", {"id": rule, "agent": agent}, "rule")
    asked = {"do": "revoke_rule", "agent": row["agent"], "rule": rule}
    if not ask(find_database(store), asked)["revoked"]:
        raise click.ClickException(f"The rule {rule} was revoked before.")
    click.echo(f"{row['agent']} asks again about calls of {row['tool_name']}.")


def _readable(row: dict[str, Any]) -> dict[str, Any]:
    """A row as programs read it: what is stored as JSON text is data."""
    texts = ("input", "asker", "approvers", "arguments", "made_by")
    return camel_case(
        {
            name: json.loads(value) if name in texts and value is not None else value
            for name, value in row.items()
        }
    )


def _one(store: str, query: str, params: dict[str, Any], what: str) -> dict[str, Any]:
    with opened(store) as database:
        rows = database.fetch_all(query, params)
    if not rows:
        shown = "list" if what == "question" else "rules"
        raise click.ClickException(
            f"There is no open {what} {params['id']}. `thinkwell approvals {shown}` shows them."
        )
    if len(rows) > 1:
        agents = ", ".join(sorted({row["agent"] for row in rows}))
        if what == "rule":
            raise click.ClickException(
                f"Several agents have a rule {params['id']} ({agents}). Add --agent."
            )
        raise click.ClickException(
            f"Several questions are about {params['id']} ({agents}). Give the id of the question, "
            "or add --agent."
        )
    return rows[0]
