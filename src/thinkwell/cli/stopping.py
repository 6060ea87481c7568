"""`thinkwell stop --turn|--agent|--all` and `thinkwell agents pause|resume`.

Both work on a database that is served, through the process that serves it, and on one at rest: then
they write the rows themselves, and the next server finds them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from thinkwell.cli.asking import ask
from thinkwell.cli.operating import find_database, opened
from thinkwell.cli.tables import Printer
from thinkwell.core.clock import SystemClock
from thinkwell.core.errors import ThinkwellError
from thinkwell.host.commands import STOPPED_BY_HAND
from thinkwell.journal import operating as rows
from thinkwell.store.base import Transaction
from thinkwell.store.sqlite import SqliteStore
from thinkwell.store.sqlite_lock import lock_holder

T = TypeVar("T")


def stop_turns(store: str, turn: str | None, agent: str | None) -> None:
    """`thinkwell stop` with --turn, --agent or --all."""
    path = find_database(store)
    _check_agent(store, agent)
    which = rows.Which(agent=agent, turn=turn)
    if lock_holder(path) is not None:
        request = {"do": "stop_turns", "agent": agent, "turn": turn}
        count = int(ask(path, request)["turns"])
        when = "now"
    else:
        count = len(_write(path, lambda tx: rows.stop_turns(tx, which, STOPPED_BY_HAND)))
        when = "when the next server starts"
    if count == 0:
        raise click.ClickException(_nothing(turn, agent))
    click.echo(f"{count} {'turn stops' if count == 1 else 'turns stop'} {when}.")


def _nothing(turn: str | None, agent: str | None) -> str:
    if turn is not None:
        return f"The turn {turn} does not run and does not wait."
    return f"No turn {'of ' + agent + ' ' if agent else ''}runs or waits."


def pause_agent(store: str, agent: str, reason: str | None, *, as_json: bool) -> None:
    """`thinkwell agents pause`."""
    path = find_database(store)
    _check_agent(store, agent)
    why = reason or rows.PAUSED
    if lock_holder(path) is not None:
        done = bool(ask(path, {"do": "pause", "agent": agent, "reason": why})["paused"])
    else:
        now = SystemClock().now()
        done = _write(path, lambda tx: rows.pause_agent(tx, agent, why, now=now))
    if not done:
        raise click.ClickException(f"There is no agent {agent}.")
    if as_json:
        Printer().json({"agent": agent, "paused": True, "reason": why})
        return
    click.echo(
        f"{agent} is paused: it accepts turns and jobs, and begins none until it is resumed."
    )


def resume_agent(store: str, agent: str, *, as_json: bool) -> None:
    """`thinkwell agents resume`."""
    path = find_database(store)
    _check_agent(store, agent)
    if lock_holder(path) is not None:
        done = bool(ask(path, {"do": "resume", "agent": agent})["resumed"])
    else:
        done = _write(path, lambda tx: rows.resume_agent(tx, agent))
    if not done:
        raise click.ClickException(f"{agent} is not paused.")
    if as_json:
        Printer().json({"agent": agent, "paused": False})
        return
    click.echo(f"{agent} goes on.")


def _check_agent(store: str, agent: str | None) -> None:
    """Refuse a name that is not in the database: a slip must not look like success."""
    if agent is None:
        return
    with opened(store) as database:
        found = database.fetch_all("agent_facts", {"agent": agent})
    if not found:
        how = "" if "/" in agent else " Write it as CLASS/NAME."
        raise click.ClickException(
            f"There is no agent {agent}.{how} `thinkwell agents list` shows them."
        )


def _write(path: Path, work: Callable[[Transaction], Awaitable[T]]) -> T:
    async def write() -> T:
        store: Any = SqliteStore(path)
        await store.open()  # takes the lock: nobody begins to serve the file meanwhile
        try:
            async with store.transaction() as tx:
                return await work(tx)
        finally:
            await store.close()

    try:
        return asyncio.run(write())
    except ThinkwellError as error:
        raise click.ClickException(str(error)) from error
