"""The stored file of every release opens, with all that is in it (STYLE §4.20, spec/03 §17).

`tests/fixtures/stores/make.py` wrote these files, each with the code of its release. The process
that wrote them was killed in the middle of an answer, with another question waiting.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.stores.agents import Keeper, Waiting
from tests.turns.support import Client, Stage, folded, part_of, running
from tests.turns.test_rpc import result
from thinkwell.core.ids import new_id
from thinkwell.journal.reading import read_packed_journal
from thinkwell.messages.message import UIMessage, text_of
from thinkwell.store.sqlite import SqliteStore

FILES = sorted(Path(__file__).parents[1].glob("fixtures/stores/*.db"))
SETTLED = ("completed", "error", "aborted", "skipped")


@pytest.fixture(params=FILES, ids=lambda path: path.stem)
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of a stored file: opening one changes it."""
    return Path(shutil.copy(request.param, tmp_path / request.param.name))


def contents(old: Path, agent: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The messages and the turns of an agent, as its release stored them."""
    known = json.loads(
        next(path for path in FILES if path.name == old.name).with_suffix(".json").read_text()
    )
    mine = [[row for row in known[kind] if row["agent"] == agent] for kind in ("messages", "turns")]
    return mine[0], mine[1]


@asynccontextmanager
async def opened(old: Path) -> AsyncIterator[Stage[Keeper]]:
    """The agent that was killed, awake again, with nothing left to do."""
    async with running(
        Keeper, " heard the rest.", "Then nothing.", store=SqliteStore(old)
    ) as stage:
        await stage.agent.wait_until_stable()
        yield stage


async def below(client: Client, parent: str | None) -> list[UIMessage]:
    return await result(client, "getBranches", parent, id=new_id())


async def test_every_message_is_read_as_it_was_stored(old: Path):
    messages, _ = contents(old, "keeper/x")
    async with opened(old) as stage:
        client = await stage.connect()
        for stored in messages:
            siblings = await below(client, stored["parent_id"])
            assert stored["content"] in siblings


async def test_the_transcript_shows_the_active_path(old: Path):
    async with opened(old) as stage:
        texts = [text_of(message) for message in await stage.messages()]
    assert "A first answer." not in texts
    assert {"A second answer.", "It is gone.", "You are in Paris.", "Half an"} <= set(texts)


async def test_every_settled_turn_has_the_end_it_had(old: Path):
    _, turns = contents(old, "keeper/x")
    async with opened(old) as stage:
        for turn in turns:
            info = await stage.agent.get_turn(turn["id"])
            if turn["status"] in SETTLED:
                assert (info.status, info.stop_reason) == (turn["status"], turn["stop_reason"])


async def test_the_turn_that_was_cut_goes_on_and_the_one_that_waited_follows(old: Path):
    async with opened(old) as stage:
        cut, waited = await stage.agent.get_turn("q9"), await stage.agent.get_turn("q10")
        answers = [message for message in await stage.messages() if message["role"] == "assistant"]
        runs = stage.agent.tool_runs
    assert (cut.status, cut.attempt, waited.status, waited.attempt) == (
        "completed",
        2,
        "completed",
        1,
    )
    assert text_of(answers[-2]) == "Paying.Nobody has heard the rest."
    assert text_of(answers[-1]) == "Then nothing."
    assert part_of(answers[-2], "pay-1")["output"] == "paid 5"
    assert runs == []


async def test_the_stream_of_a_settled_turn_makes_the_message_it_made(old: Path):
    messages, _ = contents(old, "keeper/x")
    store = SqliteStore(old)  # no host: it would drop streams that are past their retention
    await store.open()
    try:
        stored = await read_packed_journal(store, "keeper/x", "q3")
    finally:
        await store.close()
    assert stored is not None
    message = folded([json.loads(body) for body in stored.bodies])
    assert message in [stored["content"] for stored in messages]


async def test_the_state_of_the_agent_is_there(old: Path):
    async with opened(old) as stage:
        assert stage.agent.state == {"visits": 2}


async def test_calls_that_were_left_open_can_be_answered(old: Path):
    async with running(Waiting, "Both done.", store=SqliteStore(old)) as stage:
        assert await stage.agent.has_pending_interaction()
        await stage.agent.respond_to_approval("ask-2", approved=True)
        await stage.agent.add_tool_result("ask-1", output="Paris")
        await stage.agent.wait_until_stable()
        answer = await stage.answer()
    assert part_of(answer, "ask-1")["output"] == "Paris"
    assert part_of(answer, "ask-2")["output"] == "deleted x"
