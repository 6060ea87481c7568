"""What the bus tells of agents, connections and the process (spec/04 §17)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tests.wire.client import browser
from tests.wire.serving import serving
from thinkwell import App, Think, rpc
from thinkwell.core.events import Event
from thinkwell.host.client import AgentAddress
from thinkwell.host.host import Host
from thinkwell.store.sqlite import SqliteStore
from thinkwell.testing import ScriptedModel, pause


class Desk(Think):
    model: Any = ScriptedModel([])

    @rpc
    async def echo(self, value: Any) -> Any:
        return value


def listening(bus: Any) -> list[Event]:
    events: list[Event] = []
    bus.subscribe(events.append)
    return events


def types(events: list[Event]) -> list[str]:
    return [event.type for event in events]


async def until(events: list[Event], kind: str) -> Event:
    while kind not in types(events):
        await asyncio.sleep(0.001)
    return next(event for event in events if event.type == kind)


async def test_a_client_that_comes_calls_changes_the_state_and_goes(tmp_path: Path):
    app = App(agents=[Desk], store=f"sqlite:///{tmp_path / 'a.db'}")
    events = listening(app.events)
    async with serving(app) as url, browser(url) as tabs:
        tab = await tabs.tab("/agents/desk/ann", "tab-1")
        await until(events, "connect")
        await tab.send(type="rpc", id="1", method="echo", args=[1])
        await until(events, "rpc")
        await tab.send(type="cf_agent_state", state={"open": True})
        await until(events, "state:update")
        await tab.close()
        await until(events, "disconnect")
    told = {event.type: event.to_dict() for event in events}
    assert told["connect"] == {"type": "connect", "agent": "desk/ann", "connection_id": "tab-1"}
    assert told["disconnect"]["connection_id"] == "tab-1"
    assert (told["rpc"]["method"], told["rpc"]["streaming"]) == ("echo", False)
    assert told["state:update"]["agent"] == "desk/ann"


async def test_a_stop_and_a_clear_are_told_with_their_agent(tmp_path: Path):
    gate = pause()
    Desk.model = ScriptedModel([[gate, "late"]])
    async with App(agents=[Desk], store=f"sqlite:///{tmp_path / 'a.db'}") as app:
        events = listening(app.events)
        desk = app.agent(Desk, "ann")
        asked = await desk.submit("wait")
        await until(events, "chat:turn:start")
        await desk.cancel_chat(asked.request_id)
        stopped: Any = await until(events, "message:cancel")
        assert (stopped.agent, stopped.request_id) == ("desk/ann", asked.request_id)
        await until(events, "chat:turn:finish")
        await desk.clear_messages()
        assert (await until(events, "message:clear")).agent == "desk/ann"


async def test_a_life_of_the_process_and_of_an_agent(tmp_path: Path):
    """It begins, wakes an agent, lets it sleep, deletes it, and drains."""
    lives: list[Any] = []
    for _ in range(2):
        host = Host([Desk], SqliteStore(tmp_path / "a.db"), idle_timeout=0.0, drain_timeout=0.0)
        events = listening(host.bus)
        await host.start()
        lives.append(await until(events, "host:boot"))
        address = AgentAddress("desk", "ann")
        await host.agent(address)
        assert (await until(events, "agent:activated")).agent == "desk/ann"
        await host.put_to_sleep()
        assert (await until(events, "agent:passivated")).agent == "desk/ann"
        assert await host.delete(address)
        assert (await until(events, "destroy")).agent == "desk/ann"
        await host.drain(0.0)
        assert "host:drain" in types(events)
        await host.stop()
    assert [(life.clean, life.agents_woken) for life in lives] == [(True, 0), (True, 0)]
    assert lives[0].boot_id < lives[1].boot_id


async def test_a_life_that_was_not_asked_to_stop_is_no_clean_one(tmp_path: Path):
    store = SqliteStore(tmp_path / "a.db")
    host = Host([Desk], store, drain_timeout=0.0)
    await host.start()
    async with store.transaction() as tx:
        await tx.execute("mark_stopped", {"id": 1, "stopped_at": None})
    host.plan_the_end = _forget  # as a kill does
    await host.stop()
    again = Host([Desk], SqliteStore(tmp_path / "a.db"), drain_timeout=0.0)
    events = listening(again.bus)
    await again.start()
    life: Any = await until(events, "host:boot")
    await again.stop()
    assert not life.clean


async def _forget() -> None:
    """Nothing is written down."""
