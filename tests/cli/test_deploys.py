"""`thinkwell doctor --deploy`: what new code would not understand of a database, while the old code
serves it; and `thinkwell tools`, for calls whose outcome nobody knows (spec/04 §23.82).
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sqlite3
import subprocess
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.cli.commands import COMMAND, environment
from tests.crash.client import client_of
from tests.crash.deploys import AGENT, Deployed, write_app
from tests.crash.evidence import query, settled
from tests.crash.process import World, until

pytestmark = pytest.mark.timeout(180)

OLD = '''
import asyncio
from dataclasses import dataclass

from thinkwell import Agent, App, Think, tool
from thinkwell.testing import ScriptedModel, call


@dataclass
class Counted:
    count: int = 0


def ask(name):
    return ScriptedModel([[call(name, {"amount": 5}, id=f"call-{name}")]])


class Payer(Think[Counted]):
    """Waits for a person."""

    initial_state = Counted()
    model = ask("pay")

    @tool(needs_approval=True)
    async def pay(self, amount: int) -> str:
        """Pay."""
        return "paid"

    async def remind(self, payload) -> None:
        """A job."""


class Slow(Think):
    """Is in the middle of a call."""

    model = ask("work")

    @tool(effect="idempotent")
    async def work(self, amount: int) -> str:
        """Work."""
        await asyncio.Event().wait()
        return "done"


class Leaver(Agent):
    """Goes."""

    async def later(self, payload) -> None:
        """A job."""


app = App(agents=[Payer, Slow, Leaver])


async def main(store):
    app.store = store
    async with app:
        await app.agent(Payer, "p").run("Pay.")
        await app.agent(Payer, "p").set_count(7)
        await app.agent(Payer, "p").jobs.enqueue("remind", {}, delay=9999)
        await app.agent(Leaver, "l").jobs.enqueue("later", {}, delay=9999)
        await app.agent(Slow, "s").submit("Work.", submission_id="r1")
        print("ready", flush=True)
        await asyncio.Event().wait()
'''
OLD = OLD.replace(
    """    async def remind(""",
    """    async def set_count(self, count: int) -> None:
        await self.set_state(Counted(count))

    async def remind(""",
)
NEW = (
    OLD.replace("count: int = 0", 'count: str = "0"', 1)
    .replace("Counted(count)", "Counted(str(count))")
    .replace("async def pay(self, amount: int)", "async def pay(self, amount: str)")
    .replace("async def remind(", "async def nag(")
    .replace("async def work(", "async def labour(")
    .replace("agents=[Payer, Slow, Leaver]", "agents=[Payer, Slow]")
)


def doctor(world: World, path: Path | str, *more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, "doctor", "--deploy", str(path), "--store", str(world.store), *more],
        env=environment(COLUMNS="200"),
        cwd=world.folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def dump_of(world: World) -> str:
    with closing(sqlite3.connect(f"file:{world.store}?mode=ro", uri=True)) as link:
        return hashlib.sha256("\n".join(link.iterdump()).encode()).hexdigest()


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    world = World(tmp_path)
    yield world
    await world.end()


@pytest.fixture
async def served(world: World) -> AsyncIterator[World]:
    """A database that the old code serves, with all kinds of unfinished work."""
    (world.folder / "old_app.py").write_text(OLD)
    (world.folder / "new_app.py").write_text(NEW)
    program = f"import asyncio, old_app; asyncio.run(old_app.main('sqlite:///{world.store}'))"
    process = await asyncio.create_subprocess_exec(
        *(COMMAND[0], "-c", program),
        cwd=world.folder,
        env=environment(),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        assert b"ready" in await process.stdout.readline()
        claimed = "SELECT 1 FROM tool_calls WHERE tool_name = 'work'"
        await until(lambda: query(world, claimed), "the slow tool is at work")
        yield world
    finally:
        process.kill()
        await process.wait()


async def test_code_that_understands_everything_is_let_pass(served: World):
    before = dump_of(served)
    done = doctor(served, served.folder / "old_app.py")
    assert (done.returncode, done.stderr) == (0, "")
    assert "understands everything that is stored" in done.stdout
    assert json.loads(doctor(served, "old_app:app", "--json").stdout)["findings"] == []
    assert dump_of(served) == before


async def test_everything_that_new_code_would_not_understand_is_listed(served: World):
    before = dump_of(served)
    done = doctor(served, served.folder / "new_app.py", "--json")
    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout)["findings"]
    assert all(each["certain"] for each in found)
    told = {(each["kind"], each["agent"]): each["text"] for each in found}
    assert set(told) == {
        ("agents", "leaver"),
        ("job", "leaver/l"),
        ("turn", "slow/s"),
        ("call", "payer/p"),
        ("job", "payer/p"),
        ("state", "payer/p"),
    }
    assert "1 agent would not be served" in told["agents", "leaver"]
    assert "no tool 'work' any more" in told["turn", "slow/s"]
    assert "waits for a person, and the input schema of 'pay'" in told["call", "payer/p"]
    assert "no public method 'remind'" in told["job", "payer/p"]
    assert "count" in told["state", "payer/p"]
    assert dump_of(served) == before
    shown = doctor(served, served.folder / "new_app.py").stdout
    assert "would not understand:" in shown
    assert "slow/s r1: Slow has no tool 'work' any more" in shown


async def test_tools_that_only_running_code_brings_are_a_note(served: World):
    text = NEW.replace("    async def nag(", "    async def remind(").replace(
        "async def pay(self, amount: str)", "async def pay(self, amount: int)"
    )
    text = text.replace('count: str = "0"', "count: int = 0").replace("Counted(str(count))", "None")
    text = text.replace("class Leaver(Agent)", "class Leaver(Agent)").replace(
        "agents=[Payer, Slow]", "agents=[Payer, Slow, Leaver]"
    )
    more = '    def get_tools(self):\n        raise RuntimeError\n\n    @tool(effect="idempotent")'
    text = text.replace('    @tool(effect="idempotent")', more)
    (served.folder / "dynamic_app.py").write_text(text)
    done = doctor(served, "dynamic_app.py", "--json")
    (found,) = json.loads(done.stdout)["findings"]
    assert (done.returncode, found["kind"], found["certain"]) == (0, "turn", False)


def tools(world: World, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, "tools", *arguments, "--store", str(world.store)],
        env=environment(COLUMNS="200"),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


async def cut_off(world: World) -> Deployed:
    """A served database with a call whose outcome nobody knows."""
    app = write_app(world, "old", options='effect="once"')
    server = Deployed(world, app, "c8")
    await server.start()
    async with client_of(server, AGENT) as client:
        await client.ask("Pay five.", request="r1")
        await server.crashed()
    server = Deployed(world, app)
    await server.start()
    await settled(world, "r1")
    return server


async def ask_again(world: World, server: Deployed, request: str) -> dict[str, Any]:
    async with client_of(server, AGENT) as client:
        history = [json.loads(r["content"]) for r in query(world, "SELECT content FROM messages")]
        await client.ask("Pay five.", request=request, history=history)
    return await settled(world, request)


async def test_an_operator_finds_open_outcomes_and_says_what_came_of_them(world: World):
    server = await cut_off(world)
    (row,) = json.loads(tools(world, "list", "--json").stdout)
    assert (row["agent"], row["callId"], row["toolName"]) == (AGENT, "c1", "pay")
    assert (row["input"], row["effect"]) == ({"amount": 5}, "once")
    shown = tools(world, "list").stdout
    assert "pay" in shown
    assert "thinkwell tools resolve" in shown
    told = subprocess.run(
        [*COMMAND, "turns", "show", "r1", "--store", str(world.store)],
        env=environment(COLUMNS="200"),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    ).stdout
    assert "unknown. It was not run again" in " ".join(told.split())
    both = tools(world, "resolve", "c1", "--not-done", "--output", "1")
    assert "Say what came of it" in both.stderr
    assert "No call c9 has" in tools(world, "resolve", "c9", "--not-done").stderr
    done = tools(world, "resolve", row["idempotencyKey"], "--not-done")
    assert "the same call may run again" in done.stdout, done.stderr
    assert tools(world, "list").stdout.startswith("There is no call")
    assert server.alive
