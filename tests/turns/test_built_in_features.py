"""What every agent has is built as features are: one can be left out, others have the same means.

DESIGN §3: ours have no back door.
"""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest

from tests.turns.support import running
from thinkwell import App, Think, create_agent
from thinkwell.core.errors import AgentDefinitionError, FeatureError, SessionError, TurnActiveError
from thinkwell.features import (
    AddMessages,
    Change,
    DeleteBranch,
    DeleteMessages,
    Feature,
    Kit,
    SetActiveLeaf,
    Suggestions,
    Unwoken,
    Without,
)
from thinkwell.hooks.contexts import ScopeContext
from thinkwell.hooks.seats import features_of
from thinkwell.host.client import AgentAddress
from thinkwell.messages.message import user_message
from thinkwell.testing import ScriptedModel, pause
from thinkwell.tools.scope import Scope
from thinkwell.wire.http import HttpRequest

BUILT_IN = {
    "approvals",
    "fibers",
    "schedules",
    "branches",
    "budgets",
    "costs",
    "http_chat",
    "http_run",
    "scopes",
    "telemetry",
    "turn_details",
}


class Plain(Think):
    pass


class SocketOnly(Think):
    features = [Without("http_chat", "http_run", "turn_details")]


class Undo(Feature):
    """Takes the last message back."""

    name = "undo"

    async def last(self) -> None:
        head = await self.kit.session.get_head()
        assert head is not None
        await self.kit.rearrange(SetActiveLeaf(head.parent_id), call="undo.last")

    async def rearrange(self, *changes: Change) -> None:
        await self.kit.rearrange(*changes, call="undo.rearrange")


class Undoing(Think):
    features = [Undo()]
    undo: Undo


def test_every_chat_agent_has_them_without_listing_them():
    assert {feature.name for feature in features_of(Plain)} == BUILT_IN
    assert {feature.name for feature in features_of(Undoing)} == {*BUILT_IN, "undo"}


async def test_one_that_is_left_out_serves_nothing():
    async with running(SocketOnly) as stage:
        address = AgentAddress(stage.agent.agent_class, stage.agent.name)
        for path in ("run", "chat"):
            request = HttpRequest(method="POST", path=path)
            assert (await stage.host.client().handle_request(address, request)).status == 404
        assert not hasattr(stage.agent, "turn_details")
        assert await stage.agent.branches.below() == []


def test_leaving_out_what_is_not_there_names_what_is():
    with pytest.raises(AgentDefinitionError, match=r"'http_chats'.*http_chat"):
        type("Wrong", (Think,), {"features": [Without("http_chats")]})


def test_the_page_is_told_what_features_say_of_a_class():
    class Greeter(Feature):
        name = "greeter"

        def page(self, cls: type) -> dict[str, Any]:
            return {"greeting": f"I am {cls.__name__}."}

    class Told(Think):
        features = [Greeter(), Suggestions({"A tour": "What can you do?"})]

    edge = App(agents=[Told, Plain])._make_edge(None)  # pyright: ignore[reportPrivateUsage, reportArgumentType]
    assert edge.page.settings["suggestions"] == {"told": {"A tour": "What can you do?"}}
    assert edge.page.settings["greeting"] == {"told": "I am Told."}


class Early(Feature):
    """Can be told something before the start, and says what it heard once the agent is awake."""

    name = "early"

    def on_made(self, unwoken: Unwoken) -> None:
        self.said: list[str] = []
        self.known = sorted(unwoken.own_tools)
        self.heard = unwoken.hears

    async def on_boot(self, kit: Kit) -> None:
        if self.heard("on_scope_register"):
            kit.fire("on_scope_register", ScopeContext(scope=Scope("s"), agent=kit.agent))


async def test_a_namespace_can_be_used_before_the_start_and_keeps_what_it_was_given():
    def look() -> str:
        """Look."""
        return ""

    heard = asyncio.Event()
    agent: Any = create_agent(model=ScriptedModel(["ok"]), tools=[look], features=[Early()])
    agent.early.said.append("before")
    agent.add_hook("on_scope_register", lambda _: heard.set())
    async with agent:
        await heard.wait()
        assert (agent.early.said, agent.early.known) == (["before"], ["look"])


class Counting(Feature):
    """Fails the first start, and counts its hook's calls."""

    name = "counting"

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.starts: list[int] = []

    def hooks(self) -> dict[str, Any]:
        return {"before_turn": lambda _: self.seen.append("turn")}

    async def on_boot(self, kit: Kit) -> None:
        self.starts.append(1)
        if len(self.starts) == 1:
            raise RuntimeError("not yet")


async def test_an_agent_that_starts_at_the_second_try_has_its_hooks_once():
    counting = Counting()
    agent: Any = create_agent(model=ScriptedModel(["ok"]), features=[counting])
    with pytest.raises(FeatureError, match="not yet"):
        await agent.chat("hi")
    try:
        await agent.chat("hi")
        assert counting.seen == ["turn"]  # the lists are shared: a copy does not copy them
    finally:
        await agent.close()


class TestRearranging:
    async def test_every_client_shows_the_new_path(self):
        async with running(Undoing, "one", "two") as stage:
            client = await stage.connect()
            first = (await stage.agent.run("a")).message or {}
            await stage.agent.run("b")
            await stage.agent.undo.last()
            assert [m["role"] for m in client.transcript()] == ["user", "assistant", "user"]
            assert client.transcript()[1]["id"] == first["id"]

    async def test_it_waits_for_no_turn_but_is_refused_while_one_runs(self):
        async with running(Undoing, "one", [pause()]) as stage:
            await stage.agent.run("a")
            client = await stage.connect()
            await client.ask("b")
            with pytest.raises(TurnActiveError, match=r"undo\.last"):
                await stage.agent.undo.last()
            await stage.agent.cancel_chat()

    @pytest.mark.parametrize(
        ("change", "left"),
        [
            (SetActiveLeaf("m1"), ["m1"]),
            (SetActiveLeaf("m1", newest_below=True), ["m1", "m2", "m3"]),
            (SetActiveLeaf(None), ["m1", "m2", "m3"]),
            (AddMessages([user_message("m4", "four")]), ["m1", "m2", "m3", "m4"]),
            (AddMessages([user_message("m4", "four")], "m1"), ["m1", "m4"]),
            (DeleteMessages(["m2"]), ["m1", "m3"]),
            (DeleteBranch("m2"), ["m1"]),
        ],
    )
    async def test_says_what_it_changes_as_data(self, change: Change, left: list[str]):
        """DESIGN §8.9: no code of a feature runs inside a transaction."""
        async with running(Undoing) as stage:
            await stage.agent.add_messages([user_message(f"m{n}", str(n)) for n in (1, 2, 3)])
            await stage.agent.undo.rearrange(change)
            assert [message["id"] for message in await stage.messages()] == left

    @pytest.mark.parametrize(
        "wrong", [SetActiveLeaf("nobody"), SetActiveLeaf("nobody", newest_below=True)]
    )
    async def test_changes_all_of_it_or_nothing(self, wrong: Change):
        async with running(Undoing) as stage:
            await stage.agent.add_messages([user_message("m1", "one")])
            with pytest.raises(SessionError, match="nobody"):
                await stage.agent.undo.rearrange(DeleteBranch("m1"), wrong)
            assert [message["id"] for message in await stage.messages()] == ["m1"]


def test_our_features_take_nothing_but_the_kit():
    """No turn, no store, no agent class is handed to them by any other way."""
    for feature in features_of(Think):
        module = inspect.getmodule(type(feature))
        assert module is not None
        source = inspect.getsource(module)
        for way in ("thinkwell.turn.turns", "thinkwell.turn.run", "thinkwell.agent", "_turns"):
            assert way not in source, (feature.name, way)
