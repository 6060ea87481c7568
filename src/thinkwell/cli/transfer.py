"""`thinkwell agents export|import` and `thinkwell principals export|erase`.

An export reads the database beside its server, as of one commit. Whatever writes goes through the
process that serves the database, if there is one; otherwise it is done here, under the same lock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click

from thinkwell.cli.agents import no_agent
from thinkwell.cli.asking import ask
from thinkwell.cli.operating import find_database, opened
from thinkwell.cli.tables import Printer
from thinkwell.core import json
from thinkwell.core.clock import SystemClock
from thinkwell.core.errors import ThinkwellError
from thinkwell.host.deletions import delete_unserved
from thinkwell.host.erasure import asked_alone, erase_unserved
from thinkwell.host.imports import import_agent
from thinkwell.journal.reading import packed_journal
from thinkwell.store.base import commit_alone
from thinkwell.store.read_only import ReadOnlySqlite
from thinkwell.store.sqlite import SqliteStore
from thinkwell.store.sqlite_lock import lock_holder
from thinkwell.store.transfer import AGENT, PRINCIPAL, Writer, agent_rows, stage_file

T = TypeVar("T")

_PARTS = {
    "turns": "whole_turns_of_principal",
    "messages": "messages_of_principal",
    "tool_calls": "calls_of_principal",
    "packed_journals": "journals_of_principal",
    "decisions": "decisions_of_principal",
    "jobs": "jobs_of_principal",
    "approvers": "approvals_of_principal",
    "approvals": "questions_of_principal",
    "approval_rules": "rules_of_principal",
    "context_blocks": "blocks_of_principal",
}
"""What is a person's in an agent that others use too."""
UNKNOWN = (
    "What others wrote about them is theirs and stays, and so do backups, logs and whatever your "
    "tools have stored elsewhere."
)


def export_agent(store: str, agent: str) -> None:
    """`thinkwell agents export`."""
    with opened(store) as database, database.snapshot():
        rows = agent_rows(database, agent)
        if (first := next(rows, None)) is None or first[0] != "agents":
            raise click.ClickException(no_agent(agent))
        writer = _writer(AGENT, agent, database)
        click.echo(writer.head, nl=False)
        click.echo(writer.row(*first), nl=False)
        for table, row in rows:
            click.echo(writer.row(table, row), nl=False)
        click.echo(writer.end, nl=False)


def bring_in(store: str, source: Path, agent: str | None, *, as_json: bool) -> None:
    """`thinkwell agents import`."""
    path = find_database(store)
    if agent is not None and not all(agent.partition("/")):
        raise click.ClickException(f"--as {agent} is no agent. Write it as CLASS/NAME.")
    if path.exists() and lock_holder(path) is not None:
        request = {"do": "import", "file": str(source.absolute()), "agent": agent}
        answer = ask(path, request, None)
        name, rows = str(answer["agent"]), int(answer["rows"])
    else:
        name, rows = _here(path, lambda opened_store: _import_here(opened_store, source, agent))
    if as_json:
        Printer().json({"agent": name, "rows": rows})
    else:
        click.echo(f"The agent {name} is here with {rows:,} rows.")


async def _import_here(store: SqliteStore, source: Path, agent: str | None) -> tuple[str, int]:
    commit = partial(commit_alone, store)
    staged = stage_file(source)
    try:
        name = agent or staged.about
        now = SystemClock().now()
        remove = partial(delete_unserved, store, now=now)
        return name, await import_agent(commit, staged, name, now=now, remove=remove)
    finally:
        staged.close()


def export_principal(store: str, principal: str) -> None:
    """`thinkwell principals export`."""
    with opened(store) as database, database.snapshot():
        agents = _agents_of(database, principal)
        shared = list(database.rows("shared_blocks_of_principal", {"principal": principal}))
        if not agents and not shared:
            raise click.ClickException(_nothing(principal))
        writer = _writer(PRINCIPAL, principal, database)
        click.echo(writer.head, nl=False)
        for agent, alone in agents.items():
            for table, row in _rows_of(database, agent, principal, alone=alone):
                click.echo(writer.row(table, _readable(table, row)), nl=False)
        for row in shared:
            click.echo(writer.row("context_blocks", row), nl=False)
        click.echo(writer.end, nl=False)


def _rows_of(
    database: ReadOnlySqlite, agent: str, principal: str, *, alone: bool
) -> Iterator[tuple[str, dict[str, Any]]]:
    if alone:
        yield from agent_rows(database, agent)
        return
    for table, query in _PARTS.items():
        for row in database.rows(query, {"agent": agent, "principal": principal}):
            yield table, row


def _readable(table: str, row: dict[str, Any]) -> dict[str, Any]:
    """A packed journal as what it says, for people."""
    if table != "packed_journals":
        return row
    journal = packed_journal(row)
    events = [{"kind": event.kind, "body": json.loads(event.body)} for event in journal.events]
    facts = {name: row[name] for name in ("agent", "turn", "settled_at")}
    return {**facts, "chunks": [json.loads(body) for body in journal.bodies], "events": events}


def erase_principal(store: str, principal: str, *, ask_first: bool, as_json: bool) -> None:
    """`thinkwell principals erase`."""
    path = find_database(store)
    with opened(store) as database:
        agents = _agents_of(database, principal)
    if agents and ask_first:
        click.echo(_plan(agents), err=True)
        click.confirm(f"Erase {principal} for good?", abort=True, err=True)
    # Also when nothing is found: an erasure that was cut may still have to rewrite the file.
    if lock_holder(path) is not None:
        ask(path, {"do": "erase", "principal": principal}, None)
    else:
        _here(path, lambda store: erase_unserved(store, principal, now=SystemClock().now()))
    whole = [agent for agent, alone in agents.items() if alone]
    if as_json:
        parts = [agent for agent, alone in agents.items() if not alone]
        Printer().json({"principal": principal, "deletedAgents": whole, "erasedIn": parts})
        return
    if not agents:
        click.echo(f"Nothing is stored of {principal}; the file was rewritten.")
        return
    click.echo(f"{principal} is erased from {len(agents)} agents, {len(whole)} of them whole.")
    click.echo(UNKNOWN)


def _plan(agents: dict[str, bool]) -> str:
    lines = [
        f"  {agent}: {'deleted whole' if alone else 'their turns, others use it too'}"
        for agent, alone in agents.items()
    ]
    return "\n".join(lines)


def _agents_of(database: ReadOnlySqlite, principal: str) -> dict[str, bool]:
    rows = database.fetch_all("agents_of_principal", {"principal": principal})
    asked = [(row["agent"], asked_alone(row["agent"], principal)) for row in rows]
    return {
        agent: bool(database.fetch_all("agent_of_one", alone)[0]["alone"]) for agent, alone in asked
    }


def _nothing(principal: str) -> str:
    return f"Nothing is stored of a principal {principal}. Ids are those your `auth` gives."


def _writer(kind: str, about: str, database: ReadOnlySqlite) -> Writer:
    return Writer(kind, about, schema=database.version, now=SystemClock().now())


def _here(path: Path, work: Callable[[SqliteStore], Awaitable[T]]) -> T:
    async def run() -> T:
        store = SqliteStore(path)
        await store.open()  # takes the lock: nobody begins to serve the file meanwhile
        try:
            return await work(store)
        finally:
            await store.close()

    try:
        return asyncio.run(run())
    except ThinkwellError as error:
        raise click.ClickException(str(error)) from error
