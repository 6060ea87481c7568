"""The schema, brought up to date in order.

Owned here: the list of migrations, which of them a database still needs, and running them on
SQLite. `migrations/NNNN_name.sql` are forward only and hold nothing that cannot run in a
transaction; `schema.sql` is their sum, for readers. Invariant: a database is at one version, all
of it or none; a database from a newer Thinkwell is refused before anything in it is touched.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from thinkwell.core.errors import ConfigurationError, SchemaTooNewError

_FILE = re.compile(r"(\d{4})_(\w+)\.sql")


@dataclass(frozen=True, kw_only=True, slots=True)
class Migration:
    """One step from a schema version to the next."""

    version: int
    """The version the database has afterwards."""
    name: str
    """What it brought."""
    sql: str
    """Its statements."""


@cache
def load_migrations() -> Sequence[Migration]:
    """Every migration of the package, oldest first. A gap in the numbers raises."""
    migrations: list[Migration] = []
    for entry in files("thinkwell.store").joinpath("migrations").iterdir():
        if match := _FILE.fullmatch(entry.name):
            text = entry.read_text(encoding="utf-8")
            migrations.append(Migration(version=int(match[1]), name=match[2], sql=text))
    migrations.sort(key=lambda migration: migration.version)
    if [migration.version for migration in migrations] != list(range(1, len(migrations) + 1)):
        raise ConfigurationError(
            "Migrations must be numbered 0001, 0002, … without gaps or doubles."
        )
    return tuple(migrations)


def pending(migrations: Sequence[Migration], version: int, database: str) -> Sequence[Migration]:
    """What a database at `version` still needs. Raises `SchemaTooNewError` if it is ahead of us."""
    newest = migrations[-1].version if migrations else 0
    if version > newest:
        raise SchemaTooNewError(
            f"{database} has schema version {version}, but this Thinkwell knows versions up to "
            f"{newest} only. Nothing was changed. Install a newer Thinkwell or open another file."
        )
    return [migration for migration in migrations if migration.version > version]


def split_statements(script: str) -> Iterator[str]:
    """The statements of an SQL script, one by one, so that they can share a transaction."""
    buffer = ""
    for piece in re.split(r"(?<=;)", script):
        buffer += piece
        if sqlite3.complete_statement(buffer):
            yield buffer.strip()
            buffer = ""
    if re.sub(r"--[^\n]*", "", buffer).strip():
        raise ConfigurationError(f"An SQL script ends inside a statement: {buffer.strip()[:80]!r}")


def sqlite_schema_version(connection: sqlite3.Connection) -> int:
    """The schema version of a SQLite database; 0 for an empty one."""
    known = connection.execute(
        "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'schema_version'"
    ).fetchone()
    if known is None:
        return 0
    return int(
        connection.execute("SELECT COALESCE(MAX(version), 0) FROM schema_version").fetchone()[0]
    )


def migrate_sqlite(
    connection: sqlite3.Connection,
    database: str,
    migrations: Sequence[Migration] | None = None,
) -> int:
    """Run what is missing in one transaction and return the version reached.

    The connection must be in autocommit mode (`isolation_level=None`).
    """
    known = load_migrations() if migrations is None else migrations
    if not pending(known, sqlite_schema_version(connection), database):
        return sqlite_schema_version(connection)
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Read again: another process may have migrated while this one waited for the write lock.
        for migration in pending(known, sqlite_schema_version(connection), database):
            _apply(connection, migration)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return sqlite_schema_version(connection)


def _apply(connection: sqlite3.Connection, migration: Migration) -> None:
    for statement in split_statements(migration.sql):
        connection.execute(statement)
    connection.execute(
        "INSERT INTO schema_version (version, name) VALUES (?, ?)",
        (migration.version, migration.name),
    )
