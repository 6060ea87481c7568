"""An agent whose rows are broken serves what can be served, and says what it goes without (spec/04
§18, §23.78).
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.turns.support import running
from thinkwell import Think
from thinkwell.core.errors import StoreError
from thinkwell.messages.message import text_of
from thinkwell.store.sqlite import SqliteStore
from thinkwell.turn.turns import Turns


class Clerk(Think):
    initial_state = {"count": 0}


@pytest.fixture
async def file(tmp_path: Path) -> Path:
    """A conversation of one turn, and a state that was changed."""
    path = tmp_path / "x.db"
    async with running(Clerk, "one", store=SqliteStore(path)) as stage:
        await stage.agent.set_state({"count": 7})
        await stage.agent.run("hi")
    return path


def change(file: Path, sql: str) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(sql)


def damaged(*_: Any, **__: Any) -> Any:
    raise StoreError("database disk image is malformed")


def steps(agent: Think) -> list[str]:
    return [each.step for each in agent.get_on_start_degradations()]


async def test_78_a_failing_transcript_read_and_lost_work_are_listed_and_the_agent_serves(
    file: Path, monkeypatch: pytest.MonkeyPatch
):
    with monkeypatch.context() as patch:
        patch.setattr(Turns, "recover", damaged)
        async with running(Clerk, "two", store=SqliteStore(file)) as stage:
            patch.setattr("thinkwell.turn.turns.encoded_transcript", damaged)
            client = await stage.connect()
            assert client.transcript() == []
            patch.undo()
            told = stage.fields("chat:onstart:degraded")
            assert [each["step"] for each in told] == ["transcript-hydration"]
            assert steps(stage.agent) == ["durable-work-recovery", "transcript-hydration"]
            assert (await stage.agent.run("still there?")).text == "two"
            history = [text_of(m) for m in await stage.messages()]
            assert history == ["hi", "one", "still there?", "two"]
    async with running(Clerk, store=SqliteStore(file)) as stage:
        client = await stage.connect()
        assert steps(stage.agent) == []
        assert len(client.transcript()) == 4


async def test_a_broken_state_gives_way_to_the_initial_one_and_is_not_overwritten(file: Path):
    change(file, "UPDATE agents SET state = '{\"count\": 7'")
    async with running(Clerk, store=SqliteStore(file)) as stage:
        assert (stage.agent.state, steps(stage.agent)) == ({"count": 0}, ["state"])
    change(file, "UPDATE agents SET state = state || '}'")  # somebody mends it
    async with running(Clerk, store=SqliteStore(file)) as stage:
        assert (stage.agent.state, steps(stage.agent)) == ({"count": 7}, [])


async def test_a_turn_that_cannot_be_read_is_listed(file: Path):
    change(file, "UPDATE turns SET status = 'running', settled_at = NULL, body = '{\"half'")
    async with running(Clerk, "two", store=SqliteStore(file)) as stage:
        assert steps(stage.agent) == ["durable-work-recovery"]
        assert (await stage.agent.run("again")).text == "two"
