"""Erasing a person leaves nothing of them in the files, and everything of the others
(DESIGN §5, spec/04 §1.2).
"""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from importlib.resources import files
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.cli.commands import COMMAND, ROOT, environment
from tests.operate.canary import CANARY, OTHER, app_on, ask, fill, found
from tests.wire.serving import serving
from thinkwell.host.erasure import Erasure, digest_of
from thinkwell.store import deleting
from thinkwell.store.sqlite import SqliteStore
from thinkwell.store.tables import (
    ACTIVATION,
    DERIVED,
    ERASURE,
    PROCESS,
    SHARED,
    columns_of_tables,
    tables_of_agents,
)
from thinkwell.store.transfer import TAKEN

ANN = f"ann-{CANARY}"


def command(path: Path, *words: str) -> str:
    done = subprocess.run(
        [*COMMAND, *words, "--store", str(path)],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def rows(path: Path, sql: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as file:
        return file.execute(sql).fetchall()


async def in_thread(path: Path, *words: str) -> str:
    return await asyncio.to_thread(command, path, *words)


class TestEveryTable:
    """A migration that adds a table has to say whose rows it holds."""

    def test_the_tables_are_those_of_the_schema(self):
        schema = files("thinkwell.store").joinpath("schema.sql").read_text()
        assert set(columns_of_tables()) == set(re.findall(r"CREATE (?:\w+ )?TABLE (\w+)", schema))

    def test_an_erasure_knows_what_becomes_of_each(self):
        assert set(ERASURE) == set(columns_of_tables())

    def test_an_export_takes_each_or_says_why_not(self):
        assert set(columns_of_tables()) == TAKEN | PROCESS | ACTIVATION | DERIVED
        assert SHARED <= TAKEN

    def test_a_deletion_reaches_every_table_with_rows_of_agents(self):
        reached = {name.removeprefix("remove_") for name in deleting.REMOVALS}
        owned = {*tables_of_agents(), *ACTIVATION}
        # The live journal has no index by agent, and uses of blobs go with the blobs themselves.
        assert reached | {"journal", "blob_uses"} == owned

    def test_every_table_that_names_a_principal_is_searched_for_them(self):
        query = files("thinkwell.store").joinpath("queries/erase.sql").read_text()
        persons = {"principal", "asker", "made_by"}
        naming = {t for t, columns in columns_of_tables().items() if persons & set(columns)}
        (searched,) = re.findall(r"-- name: principal_ids\n(.*?);", query, re.S)
        (agents,) = re.findall(r"-- name: agents_of_principal\n(.*?);", query, re.S)
        assert [t for t in naming if t not in searched or t not in agents] == []


async def test_at_rest_nothing_of_a_person_is_left_and_all_of_the_others(tmp_path: Path):
    path = tmp_path / "a.db"
    await fill(path)
    before = found(path, CANARY)
    assert {"messages", "turns", "tool_calls", "packed_journals", "jobs", "agents"} <= before
    assert {"decisions", "approvers", "storage", "message_versions"} <= before
    of_bob = rows(path, f"SELECT content FROM messages WHERE content LIKE '%{OTHER}%' ORDER BY seq")
    said = await in_thread(path, "principals", "erase", ANN, "--yes")
    assert "What others wrote about them" in said
    assert found(path, CANARY) == set()
    assert found(path, f"ann-{CANARY}") == set()
    kept = rows(path, f"SELECT content FROM messages WHERE content LIKE '%{OTHER}%' ORDER BY seq")
    assert kept == of_bob
    assert rows(path, "SELECT id FROM agents ORDER BY id") == [("desk/bob",), ("desk/team",)]
    assert rows(path, "SELECT ids FROM approvers") == [('["bob"]',)]
    # A client's rule holds only while its maker may decide, so it goes with them.
    assert rows(path, "SELECT id, principal, made_by FROM approval_rules") == [("r3", "bob", None)]
    assert rows(path, "PRAGMA integrity_check") == [("ok",)]
    # Again is no harm.
    assert "Nothing is stored" in await in_thread(path, "principals", "erase", ANN, "--yes")


def change(path: Path, sql: str) -> None:
    with closing(sqlite3.connect(path)) as file:
        assert file.execute(sql).rowcount == 1
        file.commit()


FIRST_OF_OWN = "seq = (SELECT MIN(seq) FROM {0} WHERE agent = 'desk/own')"
NOT_ANNS = [
    ("turns", "NULL"),
    ("turns", """'{"id": "bob"}'"""),
    ("jobs", "NULL"),
    ("jobs", """'{"id": "bob"}'"""),
]


@pytest.mark.parametrize(("table", "principal"), NOT_ANNS)
async def test_an_agent_with_one_turn_or_job_that_is_not_theirs_is_kept_with_it(
    tmp_path: Path, table: str, principal: str
):
    path = tmp_path / "a.db"
    await fill(path, rounds=2)
    first = FIRST_OF_OWN.format(table)
    change(path, f"UPDATE {table} SET principal = {principal} WHERE {first}")
    kept = rows(path, f"SELECT id FROM {table} WHERE {first}")
    said = json.loads(await in_thread(path, "principals", "erase", ANN, "--yes", "--json"))
    assert "desk/own" in said["erasedIn"]
    assert rows(path, f"SELECT id FROM {table} WHERE agent = 'desk/own'") == kept
    assert ("desk/own",) in rows(path, "SELECT id FROM agents")


async def test_a_task_of_the_class_keeps_no_agent(tmp_path: Path):
    path = tmp_path / "a.db"
    await fill(path, rounds=2)
    first = FIRST_OF_OWN.format("jobs")
    change(path, f"UPDATE jobs SET principal = NULL, kind = 'task' WHERE {first}")
    await in_thread(path, "principals", "erase", ANN, "--yes")
    assert ("desk/own",) not in rows(path, "SELECT id FROM agents")


async def test_somebody_who_comes_while_other_agents_are_erased_keeps_theirs(tmp_path: Path):
    path = tmp_path / "a.db"
    await fill(path, rounds=2)
    store, deleted = SqliteStore(path), list[str]()
    await store.open()

    async def commit(work: Any) -> Any:
        async with store.transaction() as tx:
            return await work(tx)

    @asynccontextmanager
    async def asleep(agent_id: str, _principal: str) -> AsyncGenerator[bool]:
        if agent_id == "desk/bob":  # the first of three
            first = FIRST_OF_OWN.format("turns")
            change(path, f'UPDATE turns SET principal = \'{{"id": "bob"}}\' WHERE {first}')
        yield True

    async def delete(agent_id: str) -> None:
        deleted.append(agent_id)

    erasure = Erasure(store, commit, asleep=asleep, delete=delete, forget_blobs=lambda _: None)
    assert await erasure.run(digest_of(ANN))
    await store.close()
    assert deleted == []
    assert len(rows(path, "SELECT id FROM turns WHERE agent = 'desk/own'")) == 1


async def test_the_conversation_of_the_others_goes_on(tmp_path: Path):
    path = tmp_path / "a.db"
    await fill(path, rounds=2)
    await in_thread(path, "principals", "erase", ANN, "--yes")
    app = app_on(path, ["later"])
    async with serving(app) as url:
        await ask(url, "desk/team", "bob", "and now?")
        messages = await app.agent("desk", "team").get_messages()
        assert len(messages) == 2 * 2 + 2
        row = rows(path, "SELECT depth, cum_bytes FROM messages WHERE agent = 'desk/team'")
        assert [depth for depth, _ in row] == [1, 2, 3, 4, 5, 6]


async def test_beside_a_server_it_is_the_same_and_who_is_connected_comes_back(tmp_path: Path):
    path = tmp_path / "a.db"
    await fill(path, rounds=2)
    app = app_on(path, ["later"])
    async with serving(app) as url, aiohttp.ClientSession() as http:
        socket = await http.ws_connect(f"{url}/agents/desk/team", headers={"x-user": "bob"})
        await socket.receive()
        assert found(path, CANARY)
        await in_thread(path, "principals", "erase", ANN, "--yes")
        while (frame := await socket.receive()).type is aiohttp.WSMsgType.TEXT:
            pass
        assert frame.data == 1012
        assert found(path, CANARY) == set()
        assert OTHER.encode() in path.read_bytes()
        answer = await ask(url, "desk/team", "bob", "and now?")
        assert "later" in json.dumps(answer)
        assert not await app.delete("desk", "own")  # it went whole


async def test_an_export_of_a_person_has_what_they_said_and_nothing_of_the_others(tmp_path: Path):
    path = tmp_path / "a.db"
    await fill(path, rounds=2)
    lines = [
        json.loads(line)
        for line in (await in_thread(path, "principals", "export", ANN)).splitlines()
    ]
    assert (lines[0]["thinkwell"], lines[0]["format"], lines[0]["about"]) == ("principal", 1, ANN)
    assert lines[-1]["end"] == len(lines) - 2
    tables = {line["table"] for line in lines[1:-1]}
    assert {"turns", "messages", "tool_calls", "packed_journals", "jobs", "decisions"} <= tables
    shared = [line for line in lines[1:-1] if line["row"].get("agent") == "desk/team"]
    asked = [line["row"]["content"] for line in shared if line["table"] == "messages"]
    assert len(asked) == 4
    assert all(CANARY in content and OTHER not in content for content in asked)


async def test_an_unknown_person_is_told(tmp_path: Path):
    path = tmp_path / "a.db"
    await fill(path, rounds=1)
    with pytest.raises(AssertionError, match="Nothing is stored of a principal eve"):
        await in_thread(path, "principals", "export", "eve")


async def test_nobody_can_have_anothers_messages_erased_by_naming_them(tmp_path: Path):
    """What a client says of the past is at most an id, and not even that counts here."""
    path = tmp_path / "a.db"
    await fill(path, rounds=1)
    (question,) = rows(
        path,
        "SELECT id FROM messages WHERE role = 'user' AND agent = 'desk/team' "
        f"AND content LIKE '%{OTHER}%'",
    )
    with closing(sqlite3.connect(path)) as file:
        file.execute(
            "UPDATE turns SET message_ids = ? WHERE principal LIKE ?",
            (json.dumps([question[0]]), f"%{ANN}%"),
        )
        file.commit()
    await in_thread(path, "principals", "erase", ANN, "--yes")
    assert rows(path, "SELECT id FROM messages WHERE role = 'user' AND agent = 'desk/team'") == [
        question
    ]


def test_the_page_about_operations_says_what_becomes_of_each_table():
    page = (ROOT / "docs" / "operations.md").read_text()
    for table, what in ERASURE.items():
        assert f"| `{table}` | {what} |" in page
