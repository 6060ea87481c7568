"""Scopes in a turn: live context, gating, clashes (spec/02 §12.5-12.8; AC60, AC75-AC78)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.turns.support import part_of, running
from thinkwell import Think, tool
from thinkwell.core.errors import DisabledToolError, ToolDefinitionError
from thinkwell.hooks.answers import Substitute
from thinkwell.messages.message import text_of
from thinkwell.testing import call
from thinkwell.tools.scope import Scope
from thinkwell.tools.tool import Tool, as_tool


class Shop(Think):
    system_prompt = "Sell."

    @tool
    async def own(self) -> str:
        """The agent's own."""
        return "own"


async def buy(item: str = "tea") -> str:
    """Buys something."""
    return f"bought {item}"


def broken() -> bool:
    """A switch that fails."""
    raise RuntimeError("switch")


def names(request: Any) -> list[str]:
    return sorted(spec.name for spec in request.tools)


class TestTools:
    async def test_12_5_tools_of_a_scope_are_offered_run_and_known_by_their_scope(self):
        seen: list[Any] = []
        async with running(Shop, [call("buy")], "ok") as stage:
            cart = Scope("cart", tools=[buy])
            stage.agent.scopes.register(cart)
            stage.agent.add_hook("before_turn", lambda ctx: seen.append("buy" in ctx.tools))
            stage.agent.add_hook("before_tool_call", lambda ctx: seen.append(ctx.scope is cart))
            await stage.agent.run("hi")
            assert (names(stage.model.requests[0]), seen) == (["buy", "own"], [True, True])
            assert part_of(await stage.answer())["output"] == "bought tea"

    async def test_9_4_the_capability_block_names_what_scopes_offer(self):
        async with running(Shop, "a", "b") as stage:
            dispose = stage.agent.scopes.register(Scope("cart", tools=[buy]))
            await stage.agent.run("hi")
            dispose()
            await stage.agent.run("hi")
            with_scope, without = (request.system for request in stage.model.requests)
            assert ("buy" in with_scope, "buy" in without) == (True, False)

    async def test_ac60_the_capability_block_is_silent_about_what_is_not_offered(self):
        async with running(Shop, "ok") as stage:
            stage.agent.scopes.register(Scope("cart", tools=[buy]))
            stage.agent.scopes.register(Scope("off", tools=[hidden_tool()], enabled=broken))
            stage.agent.add_hook("before_turn", lambda _: {"active_tools": ["own"]})
            await stage.agent.run("hi")
            (request,) = stage.model.requests
            assert names(request) == ["own"]
            assert "buy" not in request.system
            assert "hidden" not in request.system

    @pytest.mark.parametrize("switch", [broken, lambda: False])
    async def test_ac75_a_scope_that_is_off_offers_nothing_and_its_tools_are_disabled(
        self, switch: Any
    ):
        problems: list[Any] = []
        async with running(Shop, [call("buy")], "ok") as stage:
            scope = Scope("cart", tools=[buy], context="In the cart: tea.", enabled=switch)
            stage.agent.scopes.register(scope)
            stage.agent.add_hook("on_tool_error", lambda ctx: problems.append(ctx.error))
            assert (await stage.agent.run("hi")).text == "ok"
            assert names(stage.model.requests[0]) == ["own"]
            assert "tea" not in str(stage.model.requests[0])
            assert [type(problem) for problem in problems] == [DisabledToolError]

    @pytest.mark.parametrize("where", ["class", "scope", "get_tools"])
    async def test_12_6_a_tool_that_is_off_is_not_offered_and_calling_it_is_an_error(
        self, where: str
    ):
        outcomes: list[str] = []

        class Off(Shop):
            def get_tools(self) -> Any:
                return {"hidden": hidden_tool()} if where == "get_tools" else {}

            if where == "class":

                @tool(enabled=lambda: False)
                async def hidden(self) -> str:
                    """Is off."""
                    return "never"

        async with running(Off, [call("hidden")], "ok") as stage:
            if where == "scope":
                stage.agent.scopes.register(Scope("s", tools=[hidden_tool()]))
            stage.agent.add_hook("after_tool_call", lambda ctx: outcomes.append(ctx.outcome))
            await stage.agent.run("hi")
            assert (names(stage.model.requests[0]), outcomes) == (["own"], ["disabled"])
            assert "hidden" not in stage.model.requests[0].system

    async def test_5_8_7_a_policy_may_answer_for_a_tool_that_is_off(self):
        async with running(Shop, [call("buy")], "ok") as stage:
            stage.agent.scopes.register(Scope("cart", tools=[buy], enabled=lambda: False))
            stage.agent.add_hook("before_tool_call", lambda _: Substitute("later"))
            await stage.agent.run("hi")
            assert part_of(await stage.answer())["output"] == "later"

    async def test_12_6_switches_are_asked_before_every_step_and_at_every_call(self):
        on = [False]
        async with running(Shop, [call("own")], [call("buy")], "ok") as stage:
            stage.agent.scopes.register(Scope("cart", tools=[buy], enabled=lambda: on[0]))
            stage.agent.add_hook("on_step_finish", lambda _: on.__setitem__(0, True))
            stage.agent.add_hook("before_tool_call", lambda c: turn_off(on, c.tool_name))
            await stage.agent.run("hi")
            assert [names(r) for r in stage.model.requests[:2]] == [["own"], ["buy", "own"]]
            assert part_of(await stage.answer(), "call-2")["state"] == "output-error"

    async def test_12_6_a_tool_of_a_scope_that_is_gone_is_unknown(self):
        async with running(Shop, [call("buy")], "ok") as stage:
            agent = stage.agent
            dispose = agent.scopes.register(Scope("cart", tools=[buy]))
            agent.add_hook("on_chunk", lambda c: c.chunk["type"] == "start" and dispose())
            outcomes: list[str] = []
            agent.add_hook("after_tool_call", lambda ctx: outcomes.append(ctx.outcome))
            await agent.run("hi")
            assert outcomes == ["unknown"]


def hidden_tool() -> Tool:
    """A tool that is off."""

    async def hidden() -> str:
        """Is off."""
        return "never"

    return replace(as_tool(hidden), enabled=lambda: False)


def turn_off(on: list[bool], name: str) -> None:
    if name == "buy":
        on[0] = False


class TestContext:
    async def test_12_7_the_context_of_a_step_is_live_and_comes_last_in_the_prompt(self):
        count = iter(range(10))
        async with running(Shop, [call("own")], "ok") as stage:
            scope = Scope("cart", label="Cart", context=lambda: f"{next(count)} items")
            stage.agent.scopes.register(scope)
            await stage.agent.run("hi")
            first, second = (request.system for request in stage.model.requests)
            assert first.endswith("## Cart\n0 items")
            assert second.endswith("## Cart\n1 items")

    async def test_ac76_a_section_for_the_user_is_sent_and_never_stored(self):
        async with running(Shop, "ok", "more") as stage:
            scope = Scope("page", context={"url": "/tea"}, injection="user")
            stage.agent.scopes.register(scope)
            await stage.agent.run("hi")
            await stage.agent.run("again")
            for request in stage.model.requests:
                assert str(request.messages).count("/tea") == 1
            assert "/tea" in str(stage.model.requests[1].messages[-1])
            assert "/tea" not in str(await stage.messages())

    @pytest.mark.parametrize("content", [None, object(), broken])
    async def test_12_7_a_context_that_cannot_be_told_is_left_out(self, content: Any):
        async with running(Shop, "ok") as stage:
            stage.agent.scopes.register(Scope("cart", context=content))
            assert (await stage.agent.run("hi")).status == "completed"
            assert "## cart" not in stage.model.requests[0].system


class TestClashes:
    async def test_ac77_a_clash_with_the_agents_own_tool_changes_nothing(self):
        heard: list[Any] = []
        async with running(Shop, "ok") as stage:
            agent = stage.agent
            agent.add_hook("on_scope_register", heard.append)
            own = as_tool(named("own"))
            with pytest.raises(ToolDefinitionError, match="own"):
                agent.scopes.register(Scope("cart", tools=[buy, own]))
            await agent.run("hi")
            assert (agent.scopes.get_snapshot(), heard) == ((), [])
            assert names(stage.model.requests[0]) == ["own"]

    async def test_8_5_a_tool_of_get_tools_and_one_of_a_scope_with_one_name_fail_the_turn(self):
        class Given(Shop):
            def get_tools(self) -> Any:
                return {"buy": buy}

        async with running(Given) as stage:
            stage.agent.scopes.register(Scope("cart", tools=[buy]))
            result = await stage.agent.run("hi")
            assert result.status == "error"
            assert "'cart'" in (result.error or "")
            assert "get_tools()" in (result.error or "")

    async def test_8_5_ac88_a_client_tool_with_the_name_of_a_scopes_is_dropped_and_told(self):
        async with running(Shop, [call("buy")], "ok") as stage:
            stage.agent.scopes.register(Scope("cart", tools=[buy]))
            client = await stage.connect()
            await client.ask("hi", clientTools=[{"name": "buy"}, {"name": "own"}])
            await client.until_end()
            assert {f["name"] for f in stage.fields("tools:shadowed")} == {"buy", "own"}
            assert part_of(await stage.answer())["output"] == "bought tea"

    async def test_8_5_before_turn_may_override_a_tool_of_a_scope(self):
        async with running(Shop, [call("buy")], "ok") as stage:
            stage.agent.scopes.register(Scope("cart", tools=[buy]))
            override = as_tool(named("buy", "mine"))
            stage.agent.add_hook("before_turn", lambda _: {"tools": {"buy": override}})
            await stage.agent.run("hi")
            assert part_of(await stage.answer())["output"] == "mine"

    async def test_ac78_an_old_disposer_leaves_a_newer_scope_alone(self):
        async with running(Shop, "ok") as stage:
            scopes = stage.agent.scopes
            dispose = scopes.register(Scope("cart"))
            dispose()
            scopes.register(Scope("cart", tools=[buy]))
            dispose()
            await stage.agent.run("hi")
            assert names(stage.model.requests[0]) == ["buy", "own"]
            assert text_of(await stage.answer()) == "ok"


def named(name: str, result: str = "") -> Any:
    """A function with that name."""

    async def function() -> str:
        """Gives its result."""
        return result

    function.__name__ = name
    return function
