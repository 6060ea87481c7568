"""Whether rows that came from a file could have been written by Thinkwell.

SQLite takes any value in any column, and some columns are read for all agents at once: one row that
nobody can read would be in everybody's way. So whatever is imported is looked at first.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from typing import Final

from thinkwell.core.errors import StoreError

_TYPES: Final[Mapping[str, tuple[str, ...]]] = {
    "TEXT": ("text",),
    "BIGINT": ("integer",),
    "INTEGER": ("integer",),
    "DOUBLE PRECISION": ("real", "integer"),
    "BLOB": ("blob",),
}
"""What a column may hold, by how it is declared."""
_PEOPLE: Final = (
    ("turns", "principal"),
    ("jobs", "principal"),
    ("decisions", "principal"),
    ("approvals", "asker"),
    ("approval_rules", "made_by"),
)
"""Columns that hold a principal as JSON."""
_JSON: Final[Mapping[tuple[str, str], str]] = {
    ("approvers", "ids"): "array",
    ("approval_rules", "arguments"): "object",
    ("turns", "incident"): "object",
    ("jobs", "recurs"): "object",
    ("approvals", "input"): "",
    ("jobs", "payload"): "",
    ("jobs", "stash"): "",
}
"""Other columns that are read for all agents at once, and the kind of JSON they hold."""


def check_staged(database: sqlite3.Connection, tables: Iterable[str]) -> None:
    """Raise `StoreError` for the first column that holds what it cannot."""
    for table in tables:
        declared = {row[1]: row[2] for row in database.execute(f"PRAGMA table_info({table})")}
        for column, kind in declared.items():
            types = ", ".join(f"'{each}'" for each in (*_TYPES[kind], "null"))
            _refuse(database, table, column, f"typeof({column}) NOT IN ({types})")
            for wrong in _wrong_json(table, column):
                _refuse(database, table, column, wrong)


def _wrong_json(table: str, column: str) -> Iterable[str]:
    """What is wrong with a value, as conditions that are tried in this order."""
    place = (table, column)
    if place not in _PEOPLE and place not in _JSON:
        return
    yield f"NOT json_valid({column})"
    if place in _PEOPLE:
        yield f"COALESCE(json_type({column}, '$.id'), '') <> 'text'"
    elif _JSON[place]:
        yield f"json_type({column}) <> '{_JSON[place]}'"


def _refuse(database: sqlite3.Connection, table: str, column: str, wrong: str) -> None:
    found = database.execute(
        f"SELECT substr(CAST({column} AS TEXT), 1, 40) FROM {table} "  # noqa: S608 - names of the schema
        f"WHERE {column} IS NOT NULL AND {wrong} LIMIT 1"
    ).fetchone()
    if found is not None:
        raise StoreError(
            f"The export has {found[0]!r} as {column} in a row of {table}, which cannot be read: "
            "the file was damaged or changed. Nothing was changed here. Export the agent again."
        )
