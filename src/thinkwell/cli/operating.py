"""The commands for whoever runs a server: `turns`, `stop`, `backup`, `doctor`.

They read the database beside the process that serves it, over a read-only connection, and act
through that process (`asking.py`): a second one may not write. `--json` gives programs what people
get as tables.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from thinkwell.cli.asking import ask, ask_to_stop, is_served
from thinkwell.cli.journals import events_as_data, turn_journal, turn_requests, turn_story
from thinkwell.cli.loading import load_price
from thinkwell.cli.since import begin_of
from thinkwell.cli.story_view import show_story
from thinkwell.cli.tables import Printer, size
from thinkwell.core import json
from thinkwell.core.errors import StoreLockedError, ThinkwellError
from thinkwell.journal.budget import DEATHS
from thinkwell.journal.starts import start_reason
from thinkwell.journal.turns import TurnRecord
from thinkwell.store.open import database_file
from thinkwell.store.read_only import ReadOnlySqlite
from thinkwell.store.sqlite_compact import compact_file
from thinkwell.store.sqlite_lock import lock_holder
from thinkwell.turn.travel.story import TurnStory, story_as_data

NO_FILE = "That store keeps nothing on disk, so there is nothing to look at."


def find_database(store: str) -> Path:
    """The file that a store's URL, or a plain path, names."""
    try:
        file = database_file(store) if "://" in store else Path(store)
    except ThinkwellError as error:
        raise click.ClickException(str(error)) from error
    if file is None:
        raise click.ClickException(NO_FILE)
    return file


def opened(store: str, *, current: bool = True) -> ReadOnlySqlite:
    """The database for reading; `current` if its schema has to be the one of this program."""
    try:
        database = ReadOnlySqlite(find_database(store))
        if current:
            database.require_current()
    except ThinkwellError as error:
        raise click.ClickException(str(error)) from error
    return database


def list_turns(store: str, *, as_json: bool, since: str | None, **filters: Any) -> None:
    """`thinkwell turns list`."""
    after = begin_of(since)
    with opened(store) as database:
        filters = {**filters, "parked": int(filters["parked"]), "deaths": DEATHS, "after": after}
        rows = [_with_start(row) for row in database.fetch_all("list_turns", filters)]
    printer = Printer()
    if as_json:
        printer.json([_public(row) for row in rows])
    elif rows:
        printer.turns(rows)
    else:
        printer.note("No turn is parked." if filters["parked"] else "There are no such turns.")


def show_turn(
    store: str,
    turn: str,
    agent: str | None,
    *,
    as_json: bool,
    requests: bool = False,
    step: int | None = None,
    diff: bool = False,
    price: str | None = None,
) -> None:
    """`thinkwell turns show`."""
    with opened(store) as database:
        row = find_turn_row(database, turn, agent)
        if row["settled_at"] is None:
            of_start = {"agent": row["agent"], "deaths": DEATHS}
            found = database.fetch_all("parked_start", of_start)
            row = _with_start({**row, "start_deaths": found[0]["deaths"] if found else None})
        calls = database.fetch_all("calls_with_turn", {"agent": row["agent"], "turn": row["id"]})
        record = TurnRecord.from_row(row)
        printer = Printer()
        if requests:
            printer.json(_requests(database, record))
            return
        journal = turn_journal(database, record)
        story = turn_story(database, record, load_price(price))
    _check_step(story, step)
    if as_json:
        incident = json.loads(json.dumps(record.incident))
        about = {"input": record.input, "messageId": record.message_id, "incident": incident}
        about["code"] = None if record.code is None else json.loads(record.code)
        printer.json(
            {
                **_public(row),
                **about,
                **({} if story is None else story_as_data(story, step)),
                "calls": [camel_case(call) for call in calls],
                "events": events_as_data(journal),
            }
        )
        return
    if step is None:
        printer.turn(record, [] if story else calls)
    if story is not None:
        show_story(story, step=step, diff=diff)


def _check_step(story: TurnStory | None, step: int | None) -> None:
    numbers = [] if story is None else [each.number for each in story.steps]
    if step is not None and step not in numbers:
        known = ", ".join(map(str, numbers)) or "none"
        raise click.ClickException(f"The turn has no step {step}. Its steps: {known}.")


def _requests(database: ReadOnlySqlite, record: TurnRecord) -> list[dict[str, Any]]:
    try:
        return turn_requests(database, record)
    except ThinkwellError as error:
        raise click.ClickException(str(error)) from error


def retry_turn(store: str, turn: str, agent: str | None) -> None:
    """`thinkwell turns retry`."""
    row = _find(store, turn, agent)
    answer = ask(find_database(store), {"do": "retry", "agent": row["agent"], "turn": row["id"]})
    click.echo(f"{row['agent']} answers it again: turn {answer['turn']}")


def cancel_turn(store: str, turn: str, agent: str | None) -> None:
    """`thinkwell turns cancel`."""
    row = _find(store, turn, agent)
    answer = ask(find_database(store), {"do": "cancel", "agent": row["agent"], "turn": row["id"]})
    if not answer["stopped"]:
        raise click.ClickException(f"The turn {turn} does not run and does not wait.")
    click.echo(f"The turn {turn} of {row['agent']} stops.")


def stop_server(store: str, *, timeout: float) -> None:
    """`thinkwell stop`."""
    database = find_database(store)
    pid, ended = ask_to_stop(database, timeout)
    if not ended:
        raise click.ClickException(
            f"Process {pid} was asked to stop and has not ended after {timeout:g} s."
        )
    click.echo(f"Process {pid} has stopped. What it had not finished goes on at the next start.")


def back_up(store: str, target: Path, *, force: bool) -> None:
    """`thinkwell backup`."""
    _refuse_own_file(find_database(store), target)
    if target.exists() and not force:
        raise click.ClickException(f"{target} exists. Add --force to replace it.")
    with opened(store, current=False) as database:
        try:
            written = database.copy_to(target)
        except ThinkwellError as error:
            raise click.ClickException(str(error)) from error
    click.echo(f"Copied {database.path} to {target} ({size(written)}).")


def _refuse_own_file(database: Path, target: Path) -> None:
    """A copy must not replace the database, nor one of the files that belong to it."""
    for end in ("", "-wal", "-shm", ".lock", ".sock"):
        own = database.with_name(f"{database.name}{end}")
        same = target.resolve() == own.resolve()
        if same or (target.exists() and own.exists() and target.samefile(own)):
            raise click.ClickException(
                f"{target} belongs to the database {database} itself. Copy it to another file."
            )


def compact(store: str) -> None:
    """`thinkwell doctor --compact`."""
    path = find_database(store)
    try:
        before, after = compact_file(path)
    except StoreLockedError as error:
        # The error speaks to whoever serves, and offers another file: that is no help here.
        raise click.ClickException(
            f"{path} is in use, and a file can be rewritten only while nobody serves it. Stop the "
            f"server first: `thinkwell stop --store {store}`."
        ) from error
    except ThinkwellError as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"Rewrote {path}: {size(before)} before, {size(after)} now.", err=True)


def examine(store: str, *, as_json: bool) -> bool:
    """`thinkwell doctor`. Whether all is well."""
    path = find_database(store)
    with opened(store, current=False) as database:
        damages = database.quick_check()
        version = _version_of(database)
        outdated = version != database.newest_version
        work = (
            {} if damages or outdated else database.fetch_all("count_work", {"deaths": DEATHS})[0]
        )
        if work:
            work["jobs"] = database.fetch_all("count_jobs", {})[0]
        report: dict[str, Any] = {
            "database": str(path),
            "bytes": path.stat().st_size,
            "logBytes": _size_of(path.with_name(f"{path.name}-wal")),
            "schemaVersion": version,
            "newestVersion": database.newest_version,
            "damages": damages,
            "process": lock_holder(path),
            "reachable": is_served(path),
            **work,
        }
    printer = Printer()
    if as_json:
        printer.json(report)
    else:
        printer.report(report)
    return not damages and version is not None and version <= database.newest_version


def _version_of(database: ReadOnlySqlite) -> int | None:
    try:
        return database.version
    except ThinkwellError:  # the page that says it is damaged: the examination tells of that
        return None


def _find(store: str, turn: str, agent: str | None) -> dict[str, Any]:
    with opened(store) as database:
        return find_turn_row(database, turn, agent)


def find_turn_row(database: ReadOnlySqlite, turn: str, agent: str | None) -> dict[str, Any]:
    """The row of a turn, if there is exactly one. Says what to write otherwise."""
    rows = database.fetch_all("turns_with_id", {"id": turn, "agent": agent})
    if not rows:
        raise click.ClickException(f"There is no turn {turn}. `thinkwell turns list` shows them.")
    if len(rows) > 1:
        agents = ", ".join(row["agent"] for row in rows)
        raise click.ClickException(
            f"Several agents have a turn {turn}: {agents}. Add --agent with one of them."
        )
    return rows[0]


def _size_of(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def _with_start(row: dict[str, Any]) -> dict[str, Any]:
    """A turn that waits because its agent's start kills the process is parked, and says so."""
    deaths = row.pop("start_deaths")
    return (
        row if deaths is None else {**row, "stop_reason": "parked", "error": start_reason(deaths)}
    )


def camel_case(row: dict[str, Any]) -> dict[str, Any]:
    """Columns in the spelling of the wire, as everything that programs read."""
    return {re.sub(r"_([a-z])", lambda m: m[1].upper(), name): row[name] for name in row}


def _public(row: dict[str, Any]) -> dict[str, Any]:
    names = ("agent", "id", "trigger", "status", "attempt", "error")
    times = {"createdAt": "created_at", "startedAt": "started_at", "settledAt": "settled_at"}
    about = {name: row[name] for name in names}
    about["stopReason"] = row["stop_reason"]
    return {**about, **{name: row[column] for name, column in times.items()}}
