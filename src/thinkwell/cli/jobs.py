"""`thinkwell jobs`: the jobs of a database, read beside the process that serves it."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from thinkwell.cli.asking import ask, is_served
from thinkwell.cli.operating import camel_case, find_database, opened
from thinkwell.cli.tables import Printer
from thinkwell.journal.jobs import Job


def list_jobs(store: str, *, as_json: bool, **filters: Any) -> None:
    """`thinkwell jobs list`."""
    with opened(store) as database:
        rows = database.fetch_all("list_jobs", filters)
    printer = Printer()
    if as_json:
        printer.json([camel_case(row) for row in rows])
    elif rows:
        printer.jobs(rows, served=is_served(find_database(store)))
    else:
        printer.note("There are no such jobs.")


def show_job(store: str, job: str, agent: str | None, *, as_json: bool) -> None:
    """`thinkwell jobs show`."""
    found = _find(store, job, agent)
    printer = Printer()
    if as_json:
        printer.json(camel_case(msgspec.structs.asdict(found)))
    else:
        printer.job(found, served=is_served(find_database(store)))


def cancel_job(store: str, job: str, agent: str | None) -> None:
    """`thinkwell jobs cancel`."""
    found = _find(store, job, agent)
    if not _ask(store, "cancel_job", found)["cancelled"]:
        raise click.ClickException(f"The job {job} has ended: {found.status}.")
    click.echo(f"The job {job} of {found.agent_id} is cancelled.")


def retry_job(store: str, job: str, agent: str | None) -> None:
    """`thinkwell jobs retry`."""
    found = _find(store, job, agent)
    if not _ask(store, "retry_job", found)["waits"]:
        raise click.ClickException(
            f"The job {job} is {found.status}. What failed or was cancelled can be tried again."
        )
    click.echo(f"{found.agent_id} tries the job {job} again.")


def _ask(store: str, do: str, job: Job) -> dict[str, Any]:
    return ask(find_database(store), {"do": do, "agent": job.agent_id, "job": job.id})


def _find(store: str, job: str, agent: str | None) -> Job:
    with opened(store) as database:
        rows = database.fetch_all("jobs_with_id", {"id": job, "agent": agent})
    if not rows:
        raise click.ClickException(f"There is no job {job}. `thinkwell jobs list` shows them.")
    if len(rows) > 1:
        agents = ", ".join(row["agent"] for row in rows)
        raise click.ClickException(
            f"Several agents have a job {job}: {agents}. Add --agent with one of them."
        )
    return Job.from_row(rows[0])
