"""What tool hooks and steps are told about calls and reasoning as the references have it
(M-012, M-015, M-128; spec/02 §5.8.1, §5.10, §5.11).
"""

from __future__ import annotations

from typing import Any

from tests.turns.support import part_of, running
from thinkwell import Scope, Think, ToolError, tool
from thinkwell.models.base import ReasoningDelta, ReasoningEnd, ReasoningStart
from thinkwell.testing import call, text
from thinkwell.tools import client_tool


class Clerk(Think):
    seen: list[tuple[Any, ...]]

    async def on_start(self) -> None:
        self.seen = []

    def get_tools(self) -> Any:
        return {"ask": client_tool("ask", "Ask the user.")}

    @tool
    async def look(self) -> str:
        """Look around."""
        return "fog"

    @tool(needs_approval=True)
    async def paint(self) -> str:
        """Paint the house."""
        return "red"

    def before_tool_call(self, ctx: Any) -> None:
        self.seen.append(("before", ctx.tool_name, ctx.type, ctx.dynamic))

    def after_tool_call(self, ctx: Any) -> None:
        self.seen.append(("after", ctx.tool_name, ctx.type, ctx.dynamic))


async def plus(a: int) -> int:
    """Add one."""
    return a + 1


class TestDynamic:
    async def test_m128_a_tool_of_the_agents_code_is_not(self):
        async with running(Clerk, [call("look")], "ok") as stage:
            await stage.agent.run("hi")
            assert stage.agent.seen == [
                ("before", "look", "tool-call", False),
                ("after", "look", "tool-call", False),
            ]

    async def test_m128_a_tool_that_a_scope_brought_is(self):
        async with running(Clerk, [call("plus", {"a": 1})], "ok") as stage:
            stage.agent.scopes.register(Scope("page", tools=[plus]))
            await stage.agent.run("hi")
            assert [(line[0], line[3]) for line in stage.agent.seen] == [
                ("before", True),
                ("after", True),
            ]

    async def test_m128_a_tool_that_nobody_knows_is(self):
        async with running(Clerk, [call("nobody")], "ok") as stage:
            await stage.agent.run("hi")
            assert stage.agent.seen == [("after", "nobody", "tool-call", True)]

    async def test_m128_a_tool_that_the_client_declared_is(self):
        async with running(Clerk, [call("draw")], "ok") as stage:
            client = await stage.connect()
            await client.ask("hi", clientTools=[{"name": "draw", "description": "Draw."}])
            await client.until_end()
            await stage.agent.add_tool_result("call-1", output="done")
            await stage.agent.wait_until_stable()
            assert stage.agent.seen == [("after", "draw", "tool-call", True)]

    async def test_m128_a_client_tool_that_the_agent_declared_is_not(self):
        async with running(Clerk, [call("ask")], "ok") as stage:
            await stage.agent.run("hi")
            await stage.agent.add_tool_result("call-1", output="done")
            await stage.agent.wait_until_stable()
            assert stage.agent.seen == [("after", "ask", "tool-call", False)]

    async def test_a_step_says_the_same_of_its_calls_and_results(self):
        steps: list[Any] = []
        calls = [call("look"), call("plus", {"a": 1}), call("nobody"), call("draw")]
        async with running(Clerk, calls, "ok") as stage:
            stage.agent.scopes.register(Scope("page", tools=[plus]))
            stage.agent.add_hook("on_step_finish", steps.append)
            client = await stage.connect()
            await client.ask("hi", clientTools=[{"name": "draw", "description": "Draw."}])
            await client.until_end()
            said = {line[1]: line[3] for line in stage.agent.seen}
        told = {"look": False, "plus": True, "nobody": True}
        assert said == told
        assert {c.tool_name: c.dynamic for c in steps[0].tool_calls} == {**told, "draw": True}
        assert {r.tool_name: r.dynamic for r in steps[0].tool_results} == told

    async def test_an_own_tool_is_not_if_the_client_declares_the_name_too(self):
        async with running(Clerk, [call("paint")], "ok") as stage:
            client = await stage.connect()
            await client.ask("hi", clientTools=[{"name": "paint", "description": "Paint."}])
            await client.until_end()
            await stage.agent.respond_to_approval("call-1", False)
            await stage.agent.wait_until_stable()
            assert stage.agent.seen == [("after", "paint", "tool-call", False)]


async def test_5_11_a_step_has_its_reasoning_parts_and_calls_with_their_types():
    thought = [
        ReasoningStart("r1"),
        ReasoningDelta("r1", "Hm."),
        ReasoningEnd("r1", {"acme": {"signature": "s"}}),
        ReasoningStart("r2"),
        ReasoningDelta("r2", " So."),
        ReasoningEnd("r2"),
    ]
    steps: list[Any] = []
    async with running(Clerk, [*thought, text("A"), call("look")], "ok") as stage:
        stage.agent.add_hook("on_step_finish", steps.append)
        await stage.agent.run("hi")
    first = steps[0]
    assert [part["text"] for part in first.reasoning] == ["Hm.", " So."]
    assert first.reasoning[0]["providerMetadata"] == {"acme": {"signature": "s"}}
    assert first.reasoning_text == "Hm. So."
    assert [(c.type, c.dynamic) for c in first.tool_calls] == [("tool-call", False)]
    assert [(r.type, r.dynamic) for r in first.tool_results] == [("tool-result", False)]
    assert steps[1].reasoning == ()


async def test_m033_the_error_of_a_client_tool_reaches_on_tool_error_and_may_be_replaced():
    errors: list[Any] = []

    def replace(ctx: Any) -> Any:
        errors.append((ctx.call.name, str(ctx.error)))
        return {"error": ToolError("no screen here")}

    async with running(Clerk, [call("ask")], "ok") as stage:
        stage.agent.add_hook("on_tool_error", replace)
        await stage.agent.run("hi")
        await stage.agent.add_tool_result("call-1", error="display :0 not found")
        await stage.agent.wait_until_stable()
        assert errors == [("ask", "display :0 not found")]
        assert part_of(await stage.answer())["errorText"] == "no screen here"
