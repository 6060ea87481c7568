"""`agent.events`: what happens in one agent, for its own code and for whoever made it (spec/04 §17;
M-127).
"""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from thinkwell import App, Think, create_agent, tool
from thinkwell.core.clock import SystemClock
from thinkwell.events import Event, HookFailed
from thinkwell.host.client import AgentAddress
from thinkwell.host.host import Host
from thinkwell.store.sqlite import SqliteStore
from thinkwell.testing import ScriptedModel, call


class Clerk(Think):
    model = ScriptedModel(["ok"] * 9)
    heard: ClassVar[list[Event]] = []

    async def on_start(self) -> None:
        self.events.subscribe(self.heard.append, "chat:turn:finish", "hook:*")

    def on_step_finish(self, ctx: Any) -> None:
        if self.name == "ann":
            raise ValueError("no")


class Ahead(SystemClock):
    """A clock the test moves on."""

    seconds = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.seconds


async def test_an_agent_hears_its_own_events_only_and_once_however_often_it_wakes():
    Clerk.heard.clear()
    clock = Ahead()
    host = Host([Clerk], SqliteStore(":memory:"), clock=clock)
    await host.start()
    for name in ("ann", "ann", "bob"):
        await host.client().call(AgentAddress("clerk", name), "run", ("hi",), {})
        for _ in range(2):  # what was busy is judged from then on
            clock.seconds += 3_600
            await host.put_to_sleep()
    await host.stop()
    told = [(event.type, event.agent) for event in Clerk.heard]
    assert told.count(("hook:error", "clerk/ann")) == 2
    assert told.count(("chat:turn:finish", "clerk/ann")) == 2
    assert told.count(("chat:turn:finish", "clerk/bob")) == 1
    assert len(told) == 5


async def test_m127_the_app_hears_all_agents_or_one():
    app, everybody, ann = App(agents=[Clerk], store="sqlite://:memory:"), list[Any](), list[Any]()
    app.events.subscribe(everybody.append, "chat:turn:*")
    app.events.subscribe(ann.append, HookFailed, agent="clerk/ann")
    async with app:
        for name in ("ann", "bob"):
            await app.agent(Clerk, name).run("hi")
    assert [event.agent for event in everybody] == ["clerk/ann"] * 2 + ["clerk/bob"] * 2
    assert [(event.hook, event.event, str(event.error)) for event in ann] == [
        ("Clerk.on_step_finish", "on_step_finish", "no")
    ]


async def test_the_app_refuses_to_wait_for_agents_it_does_not_serve():
    app = App(agents=[Clerk], store="sqlite://:memory:")
    for agent in ("Clerk/default", "nope/x", "clerk"):
        with pytest.raises(ValueError, match="agent="):
            app.events.subscribe(print, agent=agent)
    app.events.subscribe(print, agent="clerk/not there yet")


async def test_an_inline_agent_is_heard_from_before_its_start():
    heard: list[Event] = []

    @tool
    def fails() -> str:
        """Fails."""
        raise OSError("closed")

    agent = create_agent(model=ScriptedModel([[call("fails")], "ok"]), tools=[fails])
    agent.events.subscribe(heard.append, "tool:error")
    async with agent:
        await agent.run("hi")
    (event,) = heard
    assert event.to_dict()["error"] == "OSError: closed"


async def test_a_stub_says_where_its_events_are_heard():
    app = App(agents=[Clerk], store="sqlite://:memory:")
    stub: Any = app.agent(Clerk, "ann")
    with pytest.raises(AttributeError, match=r"app\.events\.subscribe"):
        stub.events.subscribe(print)
