"""`thinkwell schedules`: what comes again and what waits, read beside who serves it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from thinkwell.cli.asking import ask
from thinkwell.cli.operating import camel_case, find_database, opened
from thinkwell.cli.tables import Printer
from thinkwell.core import json
from thinkwell.features.jobs.telling import callback_of
from thinkwell.journal.jobs import Job


def list_schedules(store: str, *, as_json: bool, **filters: Any) -> None:
    """`thinkwell schedules list`."""
    rows = [_shown(row) for row in _rows(store, **filters)]
    printer = Printer()
    if as_json:
        printer.json([camel_case(row) for row in rows])
    elif rows:
        printer.schedules(rows)
    else:
        printer.note("Nothing is scheduled.")


def run_schedule(store: str, name: str, agent: str | None) -> None:
    """`thinkwell schedules run`."""
    jobs = [Job.from_row(row) for row in _rows(store, agent=agent, limit=-1)]
    found = [job for job in jobs if name in (callback_of(job), job.id)]
    if not found:
        known = ", ".join(sorted({callback_of(job) for job in jobs})) or "none"
        raise click.ClickException(f"Nothing is scheduled as {name!r}. There are: {known}.")
    # A run that was asked for here has the same name until it ends, and is nothing to run again.
    found = [job for job in found if job.recurs is not None] or found
    if len(found) > 1:
        raise click.ClickException(_several(name, found))
    job = found[0]
    asked = {"do": "run_schedule", "agent": job.agent_id, "job": job.id}
    run = ask(find_database(store), asked)["run"]
    click.echo(f"{job.agent_id} runs {callback_of(job)} now: job {run}.")


def _several(name: str, found: Sequence[Job]) -> str:
    agents = sorted({job.agent_id for job in found})
    if len(agents) > 1:
        return f"Several agents have {name!r}: {', '.join(agents)}. Add --agent with one of them."
    ids = ", ".join(job.id for job in found)
    return f"{agents[0]} has {name!r} several times. Give the id of one: {ids}."


def _rows(store: str, *, agent: str | None, limit: int) -> list[dict[str, Any]]:
    with opened(store) as database:
        return database.fetch_all("list_schedules", {"agent": agent, "limit": limit})


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    job = Job.from_row(row)
    return {
        "agent": job.agent_id,
        "id": job.id,
        "task": callback_of(job),
        "kind": job.kind,
        "schedule": _times(job),
        "status": job.status,
        "next_run": job.due_at,
        "last_run": job.started_at,
        "outcome": job.outcome,
        "error": job.error,
    }


def _times(job: Job) -> str:
    recurs = job.recurs or {}
    if "schedule" in recurs:
        return str(recurs["schedule"])
    if "cron" in recurs:
        return f"{recurs['cron']} ({recurs.get('tz')})"
    if "every" in recurs:
        return f"every {recurs['every']:g} s"
    return "once" if job.recurs is None else json.dumps(job.recurs)
