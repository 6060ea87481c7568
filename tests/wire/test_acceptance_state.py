"""State that every tab sees: spec/01 cases 8-9 and §4."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.wire.client import kinds
from tests.wire.room import room
from thinkwell import Agent, Connection


class Board(Agent):
    initial_state = {"n": 0}


class Strict(Board, name="board"):
    def validate_state_change(self, state: Any, source: Connection | str) -> None:
        if state == {"n": -1}:
            raise ValueError("too small, and this text is nobody's business")


async def test_case_8_the_others_see_it_and_its_sender_hears_nothing():
    async with room(cls=Board) as r:
        sender, other = await r.tabs()
        await sender.set_state({"n": 1})
        await other.expect("state", state={"n": 1})
        await sender.nothing_more()
        await other.nothing_more()


async def test_case_9_a_refused_state_is_told_to_its_sender_only():
    async with room(cls=Strict) as r:
        sender, other = await r.tabs()
        await sender.set_state({"n": -1})
        refused = {"type": "cf_agent_state_error", "error": "State update rejected"}
        assert await sender.hear() == refused
        await other.nothing_more()
        assert (await r.tab()).greeting[1]["state"] == {"n": 0}


async def test_4_1_a_state_of_the_server_goes_to_everybody_and_is_validated_too():
    async with room(cls=Strict) as r:
        first, second = await r.tabs()
        await r.agent.set_state({"n": 2})
        for tab in (first, second):
            await tab.expect("state", state={"n": 2})
        with pytest.raises(ValueError, match="too small"):
            await r.agent.set_state({"n": -1})
        for tab in (first, second):
            await tab.nothing_more()


async def test_4_1_the_hook_is_told_after_the_others_and_may_fail():
    told: asyncio.Queue[Any] = asyncio.Queue()

    class Telling(Board, name="board"):
        async def on_state_changed(self, state: Any, source: Connection | str) -> None:
            told.put_nowait((state, source if isinstance(source, str) else source.id))
            raise RuntimeError("changes nothing")

    async with room(cls=Telling) as r:
        sender, other = await r.tabs()
        await sender.set_state({"n": 1})
        await other.expect("state", state={"n": 1})
        async with asyncio.timeout(30):
            assert await told.get() == ({"n": 1}, "R")
        await r.agent.set_state({"n": 2})
        async with asyncio.timeout(30):
            assert await told.get() == ({"n": 2}, "server")
        await sender.expect("state", state={"n": 2})
        await sender.nothing_more()


@pytest.mark.parametrize("value", [None, 0, "", False, [], {}])
async def test_4_3_falsy_values_are_states(value: Any):
    async with room(cls=Board) as r:
        sender, other = await r.tabs()
        await sender.set_state(value)
        await other.expect("state", state=value)
        later = await r.tab()
        assert kinds(later.greeting) == ["identity", "state", "mcp_servers"]
        assert later.greeting[1]["state"] == value
        assert later.greeting[0]["stateFollows"] is True


async def test_4_3_the_whole_value_is_replaced():
    async with room(cls=Board) as r:
        sender, other = await r.tabs()
        await sender.set_state({"a": 1})
        await sender.set_state({"b": 2})
        await other.expect("state", state={"a": 1})
        await other.expect("state", state={"b": 2})


async def test_4_4_the_initial_state_is_sent_exactly_once_to_each_that_connects():
    async with room(cls=Board) as r:
        first = await r.tab()
        second = await r.tab()
        for tab in (first, second):
            assert kinds(tab.greeting).count("state") == 1
            await tab.nothing_more()


async def test_a_state_outlives_the_server(tmp_path: Path):
    store = tmp_path / "x.db"
    async with room(cls=Board, store=store) as r:
        sender, other = await r.tabs()
        await sender.set_state({"n": 7})
        await other.expect("state")
    async with room(cls=Board, store=store) as r:
        assert (await r.tab()).greeting[1]["state"] == {"n": 7}


async def test_4_5_a_broken_state_gives_way_to_the_initial_one(tmp_path: Path):
    store = tmp_path / "x.db"
    async with room(cls=Board, store=store) as r:
        sender, other = await r.tabs()
        await sender.set_state({"n": 7})
        await other.expect("state")
    with closing(sqlite3.connect(store)) as link, link:
        assert link.execute("UPDATE agents SET state = '{broken'").rowcount == 1
    async with room(cls=Board, store=store) as r:
        assert (await r.tab()).greeting[1]["state"] == {"n": 0}
