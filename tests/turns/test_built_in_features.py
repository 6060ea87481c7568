"""What every agent has is built as features are: one can be left out, others have the same means.

DESIGN §3: ours have no back door.
"""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from tests.turns.support import running
from thinkwell import App, Think
from thinkwell.core.errors import AgentDefinitionError, TurnActiveError
from thinkwell.features import Feature, Suggestions, Without
from thinkwell.hooks.seats import features_of
from thinkwell.host.client import AgentAddress
from thinkwell.testing import pause
from thinkwell.wire.http import HttpRequest

BUILT_IN = {"branches", "http_chat", "http_run", "telemetry", "turn_details"}


class Plain(Think):
    pass


class SocketOnly(Think):
    features = [Without("http_chat", "http_run", "turn_details")]


class Undo(Feature):
    """Takes the last message back."""

    name = "undo"

    async def last(self) -> None:
        async def change(tx: Any) -> None:
            head = await self.kit.session.get_head(reader=tx)
            assert head is not None
            await self.kit.session.pin(tx, head.parent_id)

        await self.kit.rearrange(change, "undo.last")


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


def test_our_features_take_nothing_but_the_kit():
    """No turn, no store, no agent class is handed to them by any other way."""
    for feature in features_of(Think):
        module = inspect.getmodule(type(feature))
        assert module is not None
        source = inspect.getsource(module)
        for way in ("thinkwell.turn.turns", "thinkwell.turn.run", "thinkwell.agent", "_turns"):
            assert way not in source, (feature.name, way)
