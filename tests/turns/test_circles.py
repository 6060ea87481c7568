"""Agents that wait for one another in a circle: told at once, by name (spec/02 §3.3)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from thinkwell import App, Think, tool
from thinkwell.core.errors import NestedTurnError
from thinkwell.testing import ScriptedModel, call

LIMIT = 20
"""Seconds after which a circle that nobody noticed fails the test instead of hanging it."""


class Caller(Think, name="caller"):
    """Asks another agent from inside its turn, in one of the ways there are."""

    raised: Any = None
    way = "run"

    @tool
    async def ask(self, cls: str, name: str) -> str:
        """Ask another agent and wait."""
        try:
            return await self.wait_for(self.scopes.kit.agents(cls, name))
        except NestedTurnError as error:
            type(self).raised = error
            raise

    async def wait_for(self, other: Any) -> str:
        if self.way == "stream":
            return str([chunk async for chunk in other.stream("go")][-1]["type"])
        if self.way == "chat":
            return (await other.chat("go")).content
        return (await other.run("go")).text


def asks(cls: str, name: str = "m") -> list[Any]:
    return [call("ask", {"cls": cls, "name": name})]


def callers(way: str, *second_turn_of_alice: Any) -> tuple[type[Caller], type[Caller]]:
    class Alice(Caller, name="alice"):
        model = ScriptedModel([asks("bob"), *second_turn_of_alice, "alice is done"])

    class Bob(Caller, name="bob"):
        model = ScriptedModel([asks("alice"), "bob is done"])

    Alice.way = Bob.way = way
    return Alice, Bob


@pytest.mark.parametrize("way", ["run", "stream", "chat"])
async def test_a_circle_of_two_is_refused_and_its_links_are_named(way: str):
    alice, bob = callers(way)
    async with App(agents=[alice, bob], store="sqlite://:memory:") as app, asyncio.timeout(LIMIT):
        result = await app.agent(alice, "m").run("go")
    assert result.text == "alice is done"
    assert "alice/m waits for bob/m waits for alice/m" in str(bob.raised)
    assert f"{way}()" in str(bob.raised)
    assert "submit(" in str(bob.raised)
    assert alice.raised is None


async def test_a_circle_of_three_is_refused_by_the_last():
    class A(Caller, name="a"):
        model = ScriptedModel([asks("b"), "done"])

    class B(Caller, name="b"):
        model = ScriptedModel([asks("c"), "done"])

    class C(Caller, name="c"):
        model = ScriptedModel([asks("a"), "done"])

    async with App(agents=[A, B, C], store="sqlite://:memory:") as app, asyncio.timeout(LIMIT):
        assert (await app.agent(A, "m").run("go")).text == "done"
    assert "a/m waits for b/m waits for c/m waits for a/m" in str(C.raised)


async def test_another_agent_of_the_same_class_is_no_circle():
    class Alice(Caller, name="alice"):
        model = ScriptedModel([asks("alice", "n"), "the other", "the first"])

    async with App(agents=[Alice], store="sqlite://:memory:") as app, asyncio.timeout(LIMIT):
        assert (await app.agent(Alice, "m").run("go")).text == "the first"
    assert Alice.raised is None


async def test_what_was_only_submitted_may_wait_for_the_one_that_submitted_it():
    class Alice(Caller, name="alice"):
        model = ScriptedModel([asks("bob"), "handed on", "the answer"])

        async def wait_for(self, other: Any) -> str:
            return (await other.submit("go")).status

    class Bob(Caller, name="bob"):
        model = ScriptedModel([asks("alice"), "done"])

    async with App(agents=[Alice, Bob], store="sqlite://:memory:") as app:
        async with asyncio.timeout(LIMIT):
            assert (await app.agent(Alice, "m").run("go")).text == "handed on"
            await app.agent(Bob, "m").wait_until_stable()
            said = await app.agent(Alice, "m").get_messages()
    assert [message["role"] for message in said] == ["user", "assistant"] * 2
    assert Bob.raised is None
