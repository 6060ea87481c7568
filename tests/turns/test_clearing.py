"""A clear erases: no row and no byte of the files keeps what was said (spec/01 §8.3; DESIGN §5)."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.turns.support import Stage, running
from thinkwell import Think, tool
from thinkwell.messages.message import user_message
from thinkwell.store.sqlite import SqliteStore
from thinkwell.testing import call, error, pause, text
from thinkwell.turn.ask.clear import next_generation

SECRET = "Xanthippe-4711"
LONG = f"{SECRET} " * 2_000
"""Long enough for overflow pages, which are freed as they are."""
CLIENT_TOOL = {"name": "locate", "description": f"Where {SECRET} is", "parameters": {}}


class Secretive(Think):
    time_limits = {"grace": 0.0}

    @tool
    async def look_up(self, name: str) -> str:
        """Looks something up."""
        return f"file of {name}"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "thinkwell.db"


async def talk(stage: Stage[Any]) -> None:
    """A conversation whose every corner holds the secret, told by one tab."""
    client = await stage.connect()
    await client.request(
        "q1",
        messages=[user_message("u1", f"Who is {LONG}?")],
        clientTools=[CLIENT_TOOL],
        note=SECRET,
    )
    await client.until_end("q1")
    await stage.agent.submit(f"And {SECRET}?", metadata={"of": SECRET}, idempotency_key="key-2")
    await client.until(lambda f: f.get("done") is True and f["id"] != "q1")


SCRIPT = (
    [text(f"I look for {SECRET}. "), call("look_up", {"name": LONG})],
    [text(LONG, "done")],
    [error(ValueError(f"no {SECRET}"))],
)


async def rows(path: Path, table: str) -> list[dict[str, Any]]:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection, connection:
        connection.row_factory = sqlite3.Row
        found = [dict(row) for row in connection.execute(f"SELECT * FROM {table}")]
    connection.close()
    return found


def holders(path: Path) -> list[str]:
    """The files of the store that hold the secret."""
    files = (path.with_name(path.name + end) for end in ("", "-wal", "-shm"))
    return [file.name for file in files if file.exists() and SECRET.encode() in file.read_bytes()]


async def erased(path: Path) -> None:
    """Until no file holds it any more: the log is emptied in the background."""
    while holders(path):
        await asyncio.sleep(0.01)


class TestErasing:
    async def test_no_file_holds_what_was_said(self, path):
        async with running(Secretive, *SCRIPT, store=SqliteStore(path)) as stage:
            await talk(stage)
            assert holders(path)
            await stage.agent.clear_messages()
            await erased(path)
        assert holders(path) == []

    async def test_a_clear_over_the_socket_erases_as_well(self, path):
        async with running(Secretive, *SCRIPT, store=SqliteStore(path)) as stage:
            await talk(stage)
            client = await stage.connect("other")
            await client.send(type="cf_agent_chat_clear")
            await erased(path)

    async def test_who_decided_what_is_erased(self, path):
        class Careful(Think):
            @tool(needs_approval=True)
            async def pay(self, to: str) -> str:
                """Pays."""
                return "paid"

        asking = [call("pay", {"to": SECRET}, id="c1")]
        async with running(Careful, asking, "done", store=SqliteStore(path)) as stage:
            await stage.agent.run("Pay")
            await stage.agent.respond_to_approval("c1", approved=False, reason=SECRET)
            await stage.agent.clear_messages()
            assert await rows(path, "decisions") == []
            await erased(path)

    async def test_turns_keep_their_ids_status_and_usage(self, path):
        async with running(Secretive, *SCRIPT, store=SqliteStore(path)) as stage:
            await talk(stage)
            before = await rows(path, "turns")
            await stage.agent.clear_messages()
            after = await rows(path, "turns")
            kept = ("id", "status", "usage", "steps", "created_at", "settled_at", "idempotency_key")
            assert [[row[key] for key in kept] for row in after] == [
                [row[key] for key in kept] for row in before
            ]
            assert await rows(path, "tool_calls") == []
            assert [row for row in after if "inputDigest" in (row["options"] or "")] == []
            again = await stage.agent.submit(f"And {SECRET}?", idempotency_key="key-2")
            assert (again.accepted, again.request_id) == (False, before[1]["id"])
            await erased(path)


class TestATurnThatRunsMeanwhile:
    async def test_what_it_still_says_is_not_stored(self, path):
        gate = pause()
        steps = [
            [text(f"{SECRET} "), gate, f"more {SECRET}", call("look_up", {"name": SECRET})],
            "x",
        ]
        async with running(Secretive, *steps, store=SqliteStore(path)) as stage:
            client = await stage.connect()
            await client.ask(f"Tell me of {SECRET}")
            await gate.reached()
            await stage.agent.clear_messages()
            gate.open()
            await client.until_end()
            await erased(path)
            assert [row["status"] for row in await rows(path, "turns")] == ["skipped"]
        assert holders(path) == []

    async def test_one_that_waits_is_erased_too(self, path):
        gate = pause()
        async with running(Secretive, [gate, "x"], "y", store=SqliteStore(path)) as stage:
            client = await stage.connect()
            await client.ask("first", "q1")
            await gate.reached()
            await client.ask(f"then {SECRET}", "q2")
            await stage.agent.clear_messages()
            await client.until_end("q2")
            await erased(path)

    async def test_one_that_is_accepted_while_the_clear_commits_is_erased(self, path):
        store = SqliteStore(path)
        async with running(Secretive, "y", store=store, suspends=True) as stage:
            client = await stage.connect()
            clearing = asyncio.ensure_future(stage.agent.clear_messages())
            await client.ask(f"across {SECRET}", "q1")
            await clearing
            await client.until_end("q1")
            (turn,) = await rows(path, "turns")
            assert turn["status"] == "completed" or turn["input"] is None

    async def test_a_late_outcome_of_its_tool_is_not_stored(self, path):
        class Slow(Think):
            time_limits = {"grace": 0.0}
            begun = asyncio.Event()
            go_on = asyncio.Event()

            @tool
            async def look_up(self, name: str) -> str:
                """Looks something up and cannot be stopped."""
                self.begun.set()
                while not self.go_on.is_set():
                    try:
                        await self.go_on.wait()
                    except asyncio.CancelledError:
                        self.go_on.set()
                return f"file of {name}"

        async with running(
            Slow, [call("look_up", {"name": SECRET})], "x", store=SqliteStore(path)
        ) as st:
            client = await st.connect()
            await client.ask(f"Tell me of {SECRET}")
            await st.agent.begun.wait()
            await st.agent.clear_messages()
            await client.until_end()
            await erased(path)
            assert await rows(path, "tool_calls") == []
        assert holders(path) == []

    async def test_a_reset_keeps_what_was_said(self, path):
        async with running(Secretive, *SCRIPT, store=SqliteStore(path)) as stage:
            await talk(stage)
            await stage.agent.reset_turn_state()
            assert [row["input"] is None for row in await rows(path, "turns")] == [False, False]
            assert len(await rows(path, "tool_calls")) == 1


async def test_a_turn_that_finds_nothing_to_answer_because_of_a_clear_is_skipped_and_no_failure(
    caplog: pytest.LogCaptureFixture,
):
    """The clear has committed, and nobody has stopped the turn yet."""

    class Slow(Think):
        errors: ClassVar[list[Any]] = []

        async def get_system_prompt(self) -> str:
            agent: Any = self
            turns = agent._turns
            parts = turns.parts
            forget = await parts.offers.forget(parts.owner.agent_id, parts.limits.hook)
            await next_generation(parts, turns.running.log, forget=forget)
            return ""

        def on_chat_error(self, error: Any, ctx: Any) -> None:
            self.errors.append(error)

    async with running(Slow, "never asked") as stage:
        result = await stage.agent.run("hi")
        assert (result.status, result.stop_reason) == ("skipped", "cleared")
        assert stage.fields("chat:request:failed") == []
    assert Slow.errors == []
    assert not [r for r in caplog.records if r.levelno >= logging.ERROR]
