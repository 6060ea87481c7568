"""The list of conversations reads one page of an index (DESIGN §9)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pytest

from thinkwell.store.migrate import load_migrations, migrate_sqlite
from thinkwell.store.queries import statements

VERSION = next(m.version for m in load_migrations() if m.name == "conversations")


@pytest.fixture
def database() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    yield connection
    connection.close()


def listed(
    database: sqlite3.Connection, limit: int = 10, offset: int = 0
) -> list[tuple[str, float]]:
    params = {"class": "a", "limit": limit, "offset": offset}
    rows = database.execute(statements("sqlite")["conversations"], params).fetchall()
    return [(name, updated_at) for name, updated_at, _ in rows]


def talk(database: sqlite3.Connection, agent: str, at: float) -> None:
    class_name, _, name = agent.partition("/")
    database.execute(
        "INSERT OR IGNORE INTO agents (id, class, name, epoch, created_at) VALUES (?, ?, ?, 1, 0)",
        (agent, class_name, name),
    )
    database.execute(
        "INSERT INTO turns (agent, id, trigger, status, generation, created_at)"
        " VALUES (?, ?, 'rpc', 'completed', 0, ?)",
        (agent, f"{agent}-{at}", at),
    )


def test_files_of_older_releases_get_their_list_with_the_migration(database: sqlite3.Connection):
    known = load_migrations()
    migrate_sqlite(database, "memory", known[: VERSION - 1])
    for agent, at in (("a/x", 1.0), ("a/y", 2.0), ("b/z", 9.0), ("a/x", 3.0)):
        talk(database, agent, at)
    migrate_sqlite(database, "memory", known)
    assert listed(database) == [("x", 3.0), ("y", 2.0)]
    assert listed(database, limit=1, offset=1) == [("y", 2.0)]


def test_one_page_costs_the_same_for_ten_agents_and_ten_thousand(database: sqlite3.Connection):
    migrate_sqlite(database, "memory")
    costs: list[int] = []
    for first, last in ((0, 10), (10, 10_000)):
        for number in range(first, last):
            talk(database, f"a/{number:06}", float(number))
            touched = {"agent": f"a/{number:06}", "class": "a", "updated_at": float(number)}
            database.execute(statements("sqlite")["touch_conversation"], touched)
        costs.append(steps_of(database))
    assert costs[1] < 2 * costs[0]


def steps_of(database: sqlite3.Connection) -> int:
    """How many hundred instructions of SQLite's machine one page of the list takes."""
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    database.set_progress_handler(count, 100)
    assert len(listed(database, limit=10)) == 10
    database.set_progress_handler(None, 0)
    return steps
