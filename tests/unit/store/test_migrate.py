"""Ordered migrations, the schema version and the refusal of newer files (spec/03 §17)."""

from __future__ import annotations

import re
import sqlite3
from dataclasses import replace
from importlib.resources import files

import pytest

from thinkwell.core.errors import ConfigurationError, SchemaTooNewError, StoreError
from thinkwell.store.migrate import (
    Migration,
    load_migrations,
    migrate_sqlite,
    split_statements,
    sqlite_schema_version,
)
from thinkwell.store.sqlite import SqliteStore

NEXT = Migration(version=2, name="next", sql="CREATE TABLE extra (id TEXT);")


@pytest.fixture
def database():
    connection = sqlite3.connect(":memory:", isolation_level=None)
    yield connection
    connection.close()


def described(connection):
    """What a database is made of. Columns come from the pragma: ALTER TABLE leaves its own text."""
    rows = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY 1, 2")
    parts = [tuple(row) for row in rows]
    tables = {name: sql for kind, name, _, sql in parts if kind == "table"}
    return (
        [part if part[0] != "table" else part[:3] for part in parts],
        {table: _columns(connection, table) for table in tables},
        {table: re.findall(r"CHECK \(.+\)", sql) for table, sql in tables.items()},
    )


def _columns(connection, table):
    return [tuple(row) for row in connection.execute(f"PRAGMA table_xinfo({table})")]


class TestMigrations:
    def test_the_schema_is_the_sum_of_the_migrations(self, database):
        migrate_sqlite(database, "migrated")
        whole = sqlite3.connect(":memory:")
        whole.executescript(files("thinkwell.store").joinpath("schema.sql").read_text())
        assert described(database) == described(whole)
        whole.close()

    def test_they_are_numbered_from_one_without_gaps(self):
        versions = [migration.version for migration in load_migrations()]
        assert versions == list(range(1, len(versions) + 1))

    def test_an_empty_database_has_version_0_and_reaches_the_newest(self, database):
        assert sqlite_schema_version(database) == 0
        assert migrate_sqlite(database, "db") == load_migrations()[-1].version

    def test_an_up_to_date_database_gets_no_statement_that_changes_it(self, database):
        migrate_sqlite(database, "db")
        seen: list[str] = []
        database.set_trace_callback(seen.append)
        migrate_sqlite(database, "db")
        assert all(statement.startswith("SELECT") for statement in seen)

    def test_only_what_is_missing_runs(self, database):
        migrate_sqlite(database, "db")
        known = [*load_migrations(), replace(NEXT, version=len(load_migrations()) + 1)]
        assert migrate_sqlite(database, "db", known) == len(known)
        rows = database.execute("SELECT name FROM schema_version ORDER BY version").fetchall()
        assert [row[0] for row in rows][-1] == "next"

    def test_a_failing_migration_leaves_the_database_as_it_was(self, database):
        broken = replace(NEXT, sql="CREATE TABLE extra (id TEXT); CREATE TABLE extra (id TEXT);")
        first = Migration(version=1, name="first", sql=load_migrations()[0].sql)
        with pytest.raises(sqlite3.OperationalError):
            migrate_sqlite(database, "db", [first, broken])
        assert described(database) == ([], {}, {})
        assert not database.in_transaction


class TestSplittingAScript:
    def test_semicolons_in_literals_comments_and_triggers_do_not_split(self):
        script = (
            "-- one; two\nCREATE TABLE a (b TEXT DEFAULT ';');\n"
            "CREATE TRIGGER t AFTER INSERT ON a BEGIN DELETE FROM a; SELECT 1; END;\n"
        )
        assert len(list(split_statements(script))) == 2

    def test_an_unfinished_statement_raises(self):
        with pytest.raises(ConfigurationError, match="CREATE TABLE b"):
            list(split_statements("CREATE TABLE a (id TEXT); CREATE TABLE b ("))


class TestANewerFile:
    @pytest.fixture
    async def path(self, tmp_path):
        path = tmp_path / "newer.db"
        store = SqliteStore(path)
        await store.open()
        await store.close()
        connection = sqlite3.connect(path)
        connection.execute("INSERT INTO schema_version VALUES (999, 'future')")
        connection.commit()
        connection.close()
        return path

    async def test_it_is_refused_with_both_versions_in_the_text(self, path):
        with pytest.raises(SchemaTooNewError, match=r"version 999.*up to \d+ only"):
            await SqliteStore(path).open()

    async def test_it_is_not_touched_and_not_left_locked(self, path):
        before = path.read_bytes()
        for _ in range(2):
            with pytest.raises(SchemaTooNewError):
                await SqliteStore(path).open()
        assert path.read_bytes() == before

    async def test_a_file_that_is_no_database_is_refused(self, tmp_path):
        path = tmp_path / "notes.txt"
        path.write_text("these are not the rows you are looking for" * 100)
        with pytest.raises(StoreError, match=r"notes\.txt"):
            await SqliteStore(path).open()
