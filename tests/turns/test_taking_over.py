"""A start that finds many interrupted turns does not starve live users (spec/04 §1.3, §5, P1)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from thinkwell import Think
from thinkwell.core.events import Event
from thinkwell.host.client import AgentAddress
from thinkwell.host.host import Host
from thinkwell.store.sqlite import SqliteStore
from thinkwell.testing import Gate, ScriptedModel, pause
from thinkwell.turn.line.take_over import AT_ONCE

MANY = 40


class Crowd(Think, name="crowd"):
    """Stands at a gate while it prepares its prompt."""

    model = ScriptedModel([])
    gate: Gate | None = None
    preparing = 0
    most = 0

    async def before_turn(self, ctx: Any) -> None:
        if Crowd.gate is not None and not self.name.startswith("live"):
            Crowd.preparing += 1
            Crowd.most = max(Crowd.most, Crowd.preparing)
            await Crowd.gate.pass_through(ctx.abort_signal)
            Crowd.preparing -= 1


async def left_behind(file: Path) -> None:
    """A process that accepted many questions, began none, and died."""
    host = Host([Crowd], SqliteStore(file), drain_timeout=0.0)
    await host.start()
    for number in range(MANY):
        activation = await host.agent(AgentAddress("crowd", f"a{number}"))
        agent: Any = activation.agent
        agent._turns.line.held_by.add("draining")
        await agent.submit("hi", submission_id="r1")
    await host.stop()


async def agent_of(host: Host, name: str) -> Any:
    return (await host.agent(AgentAddress("crowd", name))).agent


async def test_found_turns_begin_a_few_at_a_time_and_live_ones_do_not_wait_for_them(
    tmp_path: Path,
):
    file = tmp_path / "x.db"
    Crowd.model, Crowd.gate = ScriptedModel(["ok"] * 3 * MANY), None
    await left_behind(file)
    Crowd.gate = pause()
    Crowd.preparing = Crowd.most = 0
    host, events = Host([Crowd], SqliteStore(file), drain_timeout=0.0), list[Event]()
    host.bus.subscribe(events.append)
    await host.start()
    try:
        while Crowd.preparing < AT_ONCE:
            await asyncio.sleep(0)
        live = await agent_of(host, "live")
        assert (await live.run("and me?")).text == "ok"  # while all of those stand at the gate
        # Somebody asks an agent whose turn has no place yet: both are answered, in order.
        waits = await waiting_agent(host)
        asked = await waits.submit("are you there?", submission_id="r2")
        while Crowd.preparing <= AT_ONCE:
            await asyncio.sleep(0)
        assert Crowd.most == AT_ONCE + 1
        Crowd.gate.open()
        for number in range(MANY):
            agent = await agent_of(host, f"a{number}")
            await agent.wait_until_stable()
            assert (await agent.get_turn("r1")).status == "completed"
        assert (await waits.get_turn(asked.request_id)).status == "completed"
        assert Crowd.most == AT_ONCE + 1
    finally:
        Crowd.gate = None
        await host.stop()


async def waiting_agent(host: Host) -> Any:
    """One whose turn was found and has not begun."""
    for number in range(MANY):
        agent = await agent_of(host, f"a{number}")
        if (await agent.get_turn("r1")).attempt == 0:
            return agent
    raise AssertionError("all have begun")
