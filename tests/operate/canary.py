"""A conversation of two people, and a search for what one of them left in a database file."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import aiohttp

from tests.wire.serving import serving
from thinkwell import App, Principal, Think, ToolContext, tool
from thinkwell.testing import ScriptedModel, call

CANARY = "canary-7f3a"
"""Stands in everything that Ann says, is answered, stores or decides."""
OTHER = "magpie-11c9"
"""Stands in what Bob does."""


class Desk(Think):
    """Repeats what it is told, with a tool call in between."""

    model: Any = ScriptedModel([])

    def get_model(self) -> Any:
        return self.model

    @tool
    async def note(self, text: str, ctx: ToolContext) -> str:
        """Write something down."""
        await self.jobs.enqueue("remind", {"about": text}, delay=3600)
        return f"noted {text}"

    async def remind(self, payload: Any) -> None:
        """Nothing yet."""

    def get_system_prompt(self) -> str:
        return f"You work for {self.name}. " + "Be brief. " * 80


def echo_script(words: list[str]) -> ScriptedModel:
    """For each word a tool call and an answer with it, long enough to be packed and to spill."""
    steps: list[Any] = []
    for word in words:
        steps.append([call("note", {"text": f"{word} " * 40})])
        steps.append(f"You said {word}. " * 60)
    return ScriptedModel(steps)


def who(request: Any, _route: Any) -> Principal | None:
    name = request.headers.get("x-user")
    return None if name is None else Principal(id=name, claims={"mail": f"{name}@example.com"})


def app_on(path: Path, words: list[str]) -> App:
    """An app whose agents answer with these words, one after another."""
    cls = type("Desk", (Desk,), {"model": echo_script(words)}, name="desk")
    return App(agents=[cls], store=f"sqlite:///{path}", auth=who)


async def ask(url: str, agent: str, user: str, text: str) -> dict[str, Any]:
    """One turn, for a person."""
    async with (
        aiohttp.ClientSession() as http,
        http.post(
            f"{url}/agents/{agent}/run", json={"input": text}, headers={"x-user": user}
        ) as got,
    ):
        assert got.status == 200, await got.text()
        return await got.json()


async def fill(path: Path, *, rounds: int = 4) -> App:
    """Ann and Bob talk to one agent, and each to one of their own. The app has ended again."""
    order = [CANARY, OTHER] * rounds + [CANARY] * rounds + [OTHER]
    app = app_on(path, order)
    async with serving(app) as url:
        for _ in range(rounds):
            await ask(url, "desk/team", f"ann-{CANARY}", f"{CANARY} asks " * 50)
            await ask(url, "desk/team", "bob", f"{OTHER} asks " * 50)
        for _ in range(rounds):
            await ask(url, "desk/own", f"ann-{CANARY}", f"{CANARY} asks " * 50)
        await ask(url, "desk/bob", "bob", OTHER)
        agent = app.agent("desk", "own")
        await agent.set_state({"secret": CANARY})
        await agent.storage.set("secret", CANARY)
    with closing(sqlite3.connect(path)) as file:  # what takes a person to make
        file.execute(
            "INSERT INTO decisions (agent, message_id, tool_call_id, tool_name, action, approved, "
            "reason, principal, by_client, decided_at) "
            "VALUES ('desk/bob', 'm', 'c', 'note', 'approve', 1, ?, ?, 1, 0)",
            (f"because {CANARY}", json.dumps({"id": f"ann-{CANARY}"})),
        )
        file.execute(
            "INSERT INTO approvers (agent, message_id, tool_call_id, ids) "
            "VALUES ('desk/bob', 'm', 'c', ?)",
            (json.dumps([f"ann-{CANARY}", "bob"]),),
        )
        file.execute(
            "INSERT INTO approvals (agent, message_id, tool_call_id, approval_id, tool_name, "
            "input, input_hash, schema_hash, asker, asked_at) "
            "VALUES ('desk/bob', 'm', 'c', 'a', 'note', ?, '', '', ?, 0)",
            (f'"{CANARY}"', json.dumps({"id": f"ann-{CANARY}"})),
        )
        ann = f"ann-{CANARY}"
        for rule, principal, maker, by_client in (
            ("r1", ann, "bob", 1),
            ("r2", "bob", ann, 1),
            ("r3", "bob", ann, 0),
        ):
            file.execute(
                "INSERT INTO approval_rules (agent, id, tool_name, principal, arguments, "
                "schema_hash, made_by, by_client, made_at) "
                "VALUES ('desk/bob', ?, 'note', ?, '{}', '', ?, ?, 0)",
                (rule, principal, json.dumps({"id": maker}), by_client),
            )
        file.execute(
            "INSERT INTO message_versions (agent, session, id, version, replaced_at, content) "
            "SELECT agent, session, id, version, 9e9, content FROM messages"
        )
        file.commit()
    return app


def found(path: Path, word: str) -> set[str]:
    """Where a word is: in the raw bytes of the files, and in what rows hold when inflated."""
    places = {
        beside.name
        for beside in (path, Path(f"{path}-wal"), Path(f"{path}-shm"), Path(f"{path}.sock"))
        if beside.is_file() and word.encode() in beside.read_bytes()
    }
    return places | {table for table, value in _values(path) if word.encode() in value}


def _values(path: Path) -> Iterator[tuple[str, bytes]]:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as file:
        names = file.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
        for (table,) in names:
            for row in file.execute(f"SELECT * FROM {table}"):
                for value in row:
                    if isinstance(value, str):
                        yield table, value.encode()
                    elif isinstance(value, bytes):
                        yield (
                            table,
                            zlib.decompress(value[1:], -15) if value[:1] == b"\1" else value,
                        )
