"""`thinkwell agents`: which there are, what is stored of one, and how to be rid of it.

Reading needs nobody. A delete goes through the process that serves the database, if there is one:
it ends what the agent does and tells its features. Where nobody serves, the rows are removed here;
the features' own code is not at hand then, and the command says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from thinkwell.cli.asking import ask
from thinkwell.cli.operating import camel_case, find_database, opened
from thinkwell.cli.tables import Printer
from thinkwell.core import json
from thinkwell.core.clock import SystemClock
from thinkwell.core.errors import ThinkwellError
from thinkwell.host.deletions import delete_unserved
from thinkwell.journal.budget import DEATHS
from thinkwell.store.read_only import ReadOnlySqlite
from thinkwell.store.sqlite import SqliteStore
from thinkwell.store.sqlite_lock import lock_holder

LAST_TURNS = 5
"""How many `show` lists."""


def list_agents(store: str, *, as_json: bool, **filters: Any) -> None:
    """`thinkwell agents list`."""
    with opened(store) as database:
        rows = database.fetch_all("agents_overview", {**filters, "deaths": DEATHS})
        known = [row["class"] for row in database.fetch_all("agent_classes", {})]
    printer, wanted = Printer(), filters["class"]
    if as_json:
        printer.json([camel_case(row) for row in rows])
    elif rows:
        printer.agents(rows)
    elif wanted is None:
        printer.note("There are no agents yet.")
    else:
        printer.note(
            f"There are no agents of a class {wanted!r} in this database. "
            f"Classes: {', '.join(known) or 'none'}."
        )


def show_agent(store: str, agent: str, *, as_json: bool) -> None:
    """`thinkwell agents show`."""
    with opened(store) as database:
        about = _facts(database, agent)
        turns = {
            row["state"]: row["turns"]
            for row in database.fetch_all("agent_turn_counts", {"agent": agent})
        }
        jobs = {
            row["state"]: row["jobs"]
            for row in database.fetch_all("agent_job_counts", {"agent": agent})
        }
        asked = {"agent": agent, "status": None, "parked": 0, "deaths": DEATHS, "after": 0.0}
        last = database.fetch_all("list_turns", {**asked, "limit": LAST_TURNS})
    printer = Printer()
    if as_json:
        ids = [row["id"] for row in last]
        printer.json({**camel_case(about), "turns": turns, "jobs": jobs, "lastTurns": ids})
        return
    printer.agent(about, turns, jobs)
    if last:
        printer.note("")
        printer.turns(last)


def _facts(database: ReadOnlySqlite, agent: str) -> dict[str, Any]:
    rows = database.fetch_all("agent_facts", {"agent": agent})
    if not rows:
        raise click.ClickException(no_agent(agent))
    state = rows[0]["state"]
    return {**rows[0], "state": None if state is None else json.loads(state)}


def no_agent(agent: str) -> str:
    """That there is none, and how to find one."""
    how = "" if "/" in agent else " Write it as CLASS/NAME."
    return f"There is no agent {agent}.{how} `thinkwell agents list` shows them."


def delete_agent(store: str, agent: str, *, ask_first: bool, as_json: bool) -> None:
    """`thinkwell agents delete`."""
    path = find_database(store)
    with opened(store) as database:
        found = database.fetch_all("agent_facts", {"agent": agent})
    served = lock_holder(path) is not None
    if ask_first and found:  # else there is nothing, or only rows that have lost their agent
        click.confirm(_question(agent, found[0], served=served), abort=True, err=True)
    if served:
        # However long it takes: one that has stored much is removed piece by piece.
        deleted = bool(ask(path, {"do": "delete", "agent": agent}, None)["deleted"])
    else:
        deleted = _delete_here(path, agent)
    if not deleted:
        raise click.ClickException(no_agent(agent))
    if as_json:
        Printer().json({"agent": agent, "deleted": True, "featuresTold": served})
        return
    click.echo(f"The agent {agent} is deleted with all it had stored.")
    if not served:
        click.echo("Nobody serves this database, so its features were not told (`on_delete`).")


def _question(agent: str, about: Mapping[str, Any], *, served: bool) -> str:
    untold = "" if served else "Nobody serves this database, so its features are not told. "
    return f"{untold}Delete {agent} with {about['messages']:,} messages and all else it has stored?"


def _delete_here(path: Path, agent: str) -> bool:
    async def delete() -> bool:
        store = SqliteStore(path)
        await store.open()  # takes the lock: nobody begins to serve the file meanwhile
        try:
            return await delete_unserved(store, agent, now=SystemClock().now())
        finally:
            await store.close()

    try:
        return asyncio.run(delete())
    except ThinkwellError as error:
        raise click.ClickException(str(error)) from error
