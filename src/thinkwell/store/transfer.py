"""Rows as JSON lines: what an export writes, and how an import reads it back.

The first line says what follows, each other one is a row, and the last one counts them, so that a
file that was cut is noticed:

    {"thinkwell": "agent", "format": 1, "schema": 17, "about": "assistant/ann", "at": 1.7e9}
    {"table": "messages", "row": {"id": "m1", ...}}
    {"end": 2, "rows": {"messages": 1, ...}}

Bytes are `{"$bytes": "<base64>"}`. An import stages the rows in a database of the version they come
from and lets the migrations bring them up to date, like any file of an older release.
"""

from __future__ import annotations

import base64
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from thinkwell.core import json
from thinkwell.core.errors import StoreError
from thinkwell.store.migrate import load_migrations, migrate_sqlite
from thinkwell.store.read_only import ReadOnlySqlite
from thinkwell.store.staged_check import check_staged
from thinkwell.store.tables import columns_of_tables, tables_of_agents

FORMAT = 1
AGENT, PRINCIPAL = "agent", "principal"
TAKEN = frozenset({"agents", "blobs", *tables_of_agents()})
"""The tables that an export of an agent has rows of."""


class Writer:
    """Makes the lines of an export."""

    def __init__(self, kind: str, about: str, *, schema: int, now: float) -> None:
        self._counts: Counter[str] = Counter()
        self.head = _line(
            {"thinkwell": kind, "format": FORMAT, "schema": schema, "about": about, "at": now}
        )

    def row(self, table: str, row: Mapping[str, Any]) -> str:
        """The line of a row."""
        self._counts[table] += 1
        return _line({"table": table, "row": {name: _plain(row[name]) for name in row}})

    @property
    def end(self) -> str:
        """The last line."""
        return _line({"end": self._counts.total(), "rows": dict(self._counts)})


def agent_rows(database: ReadOnlySqlite, agent_id: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every row of an agent, with its table; nothing if there is no such agent."""
    named = {"agent": agent_id}
    for row in database.rows("agent_row", {"id": agent_id}):
        yield "agents", row
    for row in database.rows("blobs_of_agent", named):
        yield "blobs", row
    for table in tables_of_agents():
        for row in database.rows(f"export_{table}", named):
            yield table, row


class Staged:
    """An agent that was read from an export, in the schema of today. Close it after use."""

    def __init__(self, about: str, database: sqlite3.Connection) -> None:
        self.about = about
        """The agent's id where it comes from."""
        self._database = database
        database.row_factory = sqlite3.Row

    def rows(self, table: str) -> Iterator[dict[str, Any]]:
        """The rows of a table, in the order they were made."""
        for row in self._database.execute(f"SELECT * FROM {table} ORDER BY rowid"):  # noqa: S608
            yield dict(row)

    def close(self) -> None:
        """It is not needed any more."""
        self._database.close()


def stage(lines: Iterable[str | bytes]) -> Staged:
    """Read an export of an agent. Raises `StoreError` for whatever is not understood."""
    numbered = enumerate(lines, 1)
    about, schema = _read_head(next(numbered, (1, b""))[1])
    # A nameless file that goes with the connection: an export may be larger than the memory.
    database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
    try:
        migrations = load_migrations()
        migrate_sqlite(database, "the export", migrations[:schema])
        known = _columns_in(database)
        for table in known:  # what the migrations themselves have written is not of this agent
            if table in TAKEN:
                database.execute(f"DELETE FROM {table}")  # noqa: S608
        _load_rows(database, known, numbered, about)
        migrate_sqlite(database, "the export", migrations)
        check_staged(database, sorted(TAKEN))
    except BaseException:
        database.close()
        raise
    return Staged(about, database)


def stage_file(source: Path) -> Staged:
    """The same from a file."""
    try:
        with source.open("rb") as lines:
            return stage(lines)
    except OSError as error:
        raise StoreError(f"Cannot read {source}: {error.strerror}.") from error


def _read_head(line: str | bytes) -> tuple[str, int]:
    head = _object(line, 1)
    newest = load_migrations()[-1].version
    if head.get("thinkwell") != AGENT:
        raise StoreError(
            f"This is no export of an agent: its first line speaks of {head.get('thinkwell')!r}. "
            "`thinkwell agents export CLASS/NAME` makes one."
        )
    if head.get("format") != FORMAT:
        raise StoreError(
            f"The export has the format {head.get('format')!r}, and this Thinkwell reads {FORMAT}."
        )
    schema, about = head.get("schema"), head.get("about")
    if not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
        raise StoreError(
            f"The first line of the export names the schema version {schema!r}, which never was: "
            "the file is damaged. Nothing was changed. Export the agent again."
        )
    if schema > newest:
        raise StoreError(
            f"The export has schema version {schema!r}, but this Thinkwell knows versions up to "
            f"{newest} only. Nothing was changed. Install a newer Thinkwell."
        )
    if not isinstance(about, str) or "/" not in about:
        raise StoreError(f"The first line of the export names no agent: {about!r}.")
    return about, schema


def _load_rows(
    database: sqlite3.Connection,
    known: Mapping[str, frozenset[str]],
    lines: Iterator[tuple[int, str | bytes]],
    about: str,
) -> None:
    counts: Counter[str] = Counter()
    for number, line in lines:
        said = _object(line, number)
        if "end" in said:
            if said.get("rows") != dict(counts) or next(lines, None) is not None:
                raise StoreError(f"Line {number} of the export does not count the rows before it.")
            return
        table, row = said.get("table"), said.get("row")
        if not isinstance(table, str) or table not in TAKEN or table not in known:
            raise StoreError(f"Line {number} of the export has a row of {table!r:.60}: unknown.")
        if not isinstance(row, dict):
            raise StoreError(f"Line {number} of the export has a row of {table!r}: unknown.")
        values = {name: _stored(value) for name, value in cast("dict[str, Any]", row).items()}
        if strange := sorted(values.keys() - known[table]):
            raise StoreError(f"Line {number} of the export has a column {strange[0]!r}: unknown.")
        if values.get("id" if table == "agents" else "agent", about) != about:
            raise StoreError(f"Line {number} of the export is about another agent.")
        counts[table] += 1
        # Both were looked up in the schema, so neither can be anything but a name.
        names, marks = ", ".join(values), ", ".join(f":{name}" for name in values)
        try:
            database.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", values)  # noqa: S608
        except (sqlite3.Error, OverflowError) as error:
            raise StoreError(f"Line {number} of the export cannot be read: {error}") from error
    raise StoreError("The export ends before its last line: a part of it is missing.")


def _columns_in(database: sqlite3.Connection) -> dict[str, frozenset[str]]:
    names = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    return {
        name: frozenset(row[1] for row in database.execute(f"PRAGMA table_info({name})"))
        for (name,) in names
        if name in columns_of_tables()
    }


def _object(line: str | bytes, number: int) -> dict[str, Any]:
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        raise StoreError(f"Line {number} of the export is no JSON object.")
    return cast("dict[str, Any]", said)


def _line(value: Mapping[str, Any]) -> str:
    return f"{json.dumps(value)}\n"


def _plain(value: Any) -> Any:
    return {"$bytes": base64.b64encode(value).decode()} if isinstance(value, bytes) else value


def _stored(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    packed = cast("dict[str, Any]", value).get("$bytes")
    if not isinstance(packed, str):
        raise StoreError(f"A value of the export is neither text nor a number: {value!r:.60}.")
    try:
        return base64.b64decode(packed, validate=True)
    except ValueError as error:
        raise StoreError(f"A value of the export is no base64: {packed!r:.60}.") from error
