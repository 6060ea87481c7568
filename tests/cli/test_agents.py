"""`thinkwell agents` on a file that nobody serves; beside a server it is in test_operating.py."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import COMMAND, environment, terminal
from thinkwell import App, Think
from thinkwell.store.read_only import ReadOnlySqlite
from thinkwell.testing import ScriptedModel, error


class Clerk(Think):
    initial_state = {"basket": ["tea"]}

    def get_model(self) -> Any:
        return ScriptedModel([[error(RuntimeError("no line"))] if self.name == "eve" else "Hello."])


@pytest.fixture
async def store(tmp_path: Path) -> Path:
    """A file with three agents, left by an app that has ended."""
    file = tmp_path / "clerks.db"
    async with App(agents=[Clerk], store=f"sqlite:///{file}") as app:
        for name in ("alice", "bob", "eve"):
            agent = app.agent(Clerk, name)
            await agent.run("hi")
            await agent.storage.set("seen", True)
    return file


def command(store: Path, *arguments: str, typed: str = "") -> tuple[int, str, str]:
    done = subprocess.run(
        [*COMMAND, "agents", *arguments, "--store", str(store)],
        env=environment(COLUMNS="80"),
        input=typed,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def listed(store: Path) -> list[str]:
    return sorted(row["id"] for row in json.loads(command(store, "list", "--json")[1]))


def rows_of(store: Path, agent: str) -> list[Any]:
    with ReadOnlySqlite(store) as database:
        return database.fetch_all("rows_of_agent", {"agent": agent})


class TestShow:
    async def test_says_what_is_stored_and_what_happened_last(self, store: Path):
        code, said, _ = command(store, "show", "clerk/eve")
        assert code == 0
        lines = [line.split() for line in said.splitlines()]
        assert ["messages", "1"] in [line[:2] for line in lines]
        assert ["turns", "1", "error"] in lines
        assert ["stored", "values", "1"] in lines
        assert ["state", '{"basket":["tea"]}'] in lines
        assert "no line" in said

    async def test_programs_get_json(self, store: Path):
        about = json.loads(command(store, "show", "clerk/alice", "--json")[1])
        assert (about["id"], about["class"], about["name"]) == ("clerk/alice", "clerk", "alice")
        assert (about["messages"], about["turns"], about["jobs"]) == (2, {"completed": 1}, {})
        assert (about["state"], len(about["lastTurns"])) == ({"basket": ["tea"]}, 1)

    @pytest.mark.parametrize(("agent", "hint"), [("clerk/x", ""), ("clerk", "as CLASS/NAME")])
    async def test_one_that_is_not_there(self, store: Path, agent: str, hint: str):
        code, _, said = command(store, "show", agent)
        assert (code, f"There is no agent {agent}." in said, hint in said) == (1, True, True)


class TestDelete:
    async def test_nothing_is_left_and_the_others_stay(self, store: Path):
        code, said, _ = command(store, "delete", "clerk/bob", "--yes")
        assert code == 0
        assert "its features were not told" in said
        assert rows_of(store, "clerk/bob") == []
        assert listed(store) == ["clerk/alice", "clerk/eve"]
        code, _, said = command(store, "delete", "clerk/bob", "--yes")
        assert (code, "There is no agent clerk/bob." in said) == (1, True)

    async def test_programs_get_json(self, store: Path):
        said = command(store, "delete", "clerk/bob", "--yes", "--json")[1]
        told = {"agent": "clerk/bob", "deleted": True, "featuresTold": False}
        assert json.loads(said) == told

    async def test_it_asks_first(self, store: Path):
        code, _, said = command(store, "delete", "clerk/bob", typed="n\n")
        assert code == 1
        assert "Delete clerk/bob with 2 messages and all else it has stored?" in said
        assert listed(store) == ["clerk/alice", "clerk/bob", "clerk/eve"]
        assert command(store, "delete", "clerk/bob", typed="y\n")[0] == 0
        assert listed(store) == ["clerk/alice", "clerk/eve"]

    async def test_in_a_terminal(self, store: Path):
        async with terminal("agents", "delete", "clerk/eve", "--store", str(store)) as shown:
            await shown.shows(r"Delete clerk/eve .*\[y/N\]")
            shown.type("y\n")
            await shown.shows("is deleted")
        assert listed(store) == ["clerk/alice", "clerk/bob"]
