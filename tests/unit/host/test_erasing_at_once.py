"""Several people are erased from one agent at the same time (DESIGN §5)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.turns.support import loosely, running
from thinkwell import Principal, Think
from thinkwell.core.errors import TurnNotFoundError
from thinkwell.host import host as host_module
from thinkwell.host.client import AgentAddress
from thinkwell.messages.message import text_of
from thinkwell.testing import ScriptedModel, pause

ADDRESS = AgentAddress("shared", "x")


class Shared(Think):
    """Several people ask it."""

    model: Any = None


async def test_an_agent_that_is_held_for_one_erasure_is_busy_for_the_next():
    async with running(Shared, "one") as stage:
        host = loosely(stage.host)
        async with host._asleep(ADDRESS.id, "ann") as first:
            async with host._asleep(ADDRESS.id, "bob") as second:
                assert (first, second) == (True, False)
            waiting = asyncio.ensure_future(stage.host.agent(ADDRESS))
        assert (await waiting).agent_id == ADDRESS.id
        assert host._held == {}


async def test_a_turn_that_waits_in_a_paused_agent_holds_no_erasure_up():
    async with running(Shared, "to ann") as stage:
        ann = await stage.connect("ann", principal=Principal(id="ann"))
        await ann.ask("ann asks", "q-ann")
        await ann.until_end("q-ann")
        await stage.host.operators.pause(ADDRESS.id, "maintenance")
        bob = await stage.connect("bob", principal=Principal(id="bob"))
        await bob.ask("bob asks", "q-bob")
        await stage.host.erase("ann")
        agent = loosely((await stage.host.agent(ADDRESS)).agent)
        with pytest.raises(TurnNotFoundError):
            await agent.get_turn("q-ann")
        assert (await agent.get_turn("q-bob")).status == "accepted"


async def test_an_erasure_of_a_busy_agent_waits_for_one_turn_and_not_for_the_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    gate = pause()
    Shared.model = ScriptedModel(["to ann", [gate, "to bob"], "to bob again"])
    monkeypatch.setattr(host_module, "LONGEST_REST", 0.01)
    async with running(Shared) as stage:
        ann = await stage.connect("ann", principal=Principal(id="ann"))
        await ann.ask("ann asks", "q-ann")
        await ann.until_end("q-ann")
        bob = await stage.connect("bob", principal=Principal(id="bob"))
        await bob.ask("bob asks", "q-bob")
        await gate.reached()
        await bob.ask("bob asks again", "q-again")
        erasing = asyncio.ensure_future(stage.host.erase("ann"))
        while not (told := [r for r in caplog.records if "an erasure waits" in r.getMessage()]):
            await asyncio.sleep(0)
        assert loosely(told[0]).agent == ADDRESS.id
        monkeypatch.setattr(host_module, "LONGEST_REST", 60.0)
        line = loosely(stage.agent)._turns.line
        while "erasing" not in line.held_by:  # the next try
            await asyncio.sleep(0)
        gate.open()
        await erasing
        agent = loosely((await stage.host.agent(ADDRESS)).agent)
        assert (await agent._turns.until_over("q-again")).status == "completed"
        assert [text_of(m) for m in await agent.get_messages()] == [
            *("bob asks", "to bob"),
            *("bob asks again", "to bob again"),
        ]
    Shared.model = None


async def test_two_people_are_erased_at_once_and_the_third_goes_on():
    async with running(Shared, "to ann", "to bob", "to cat", "later") as stage:
        for name in ("ann", "bob", "cat"):
            client = await stage.connect(name, principal=Principal(id=name))
            await client.ask(f"{name} asks", f"q-{name}")
            await client.until_end(f"q-{name}")
        await asyncio.gather(stage.host.erase("ann"), stage.host.erase("bob"))
        agent = loosely((await stage.host.agent(ADDRESS)).agent)
        assert [text_of(m) for m in await agent.get_messages()] == ["cat asks", "to cat"]
