"""Tools that `get_tools` and `TurnConfig.tools` bring: the key is the name, anything is a tool
(M-005, M-006; spec/02 §8.1, §9.1, §9.3).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic_ai import RunContext
from pydantic_ai import Tool as PydanticTool

from tests.turns.configured import Two, configured
from tests.turns.support import part_of, running
from thinkwell import NamedTool, StepConfig, Think, ToolError, TurnConfig, tool
from thinkwell.models import ToolChoice
from thinkwell.testing import call
from thinkwell.tools import Tool, client_tool, from_json_schema


async def plus(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
async def marked(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def with_context(ctx: RunContext[Any], a: int, b: int) -> int:
    """Add two numbers, written for pydantic-ai."""
    return a + b if ctx.tool_name else 0


def ready() -> Tool:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {}}}
    return from_json_schema("ready", "Add.", schema, lambda value, _: value["a"] + value["b"])


KINDS: dict[str, Callable[[], Any]] = {
    "a plain function": lambda: plus,
    "a function without a name": lambda: lambda a, b: int(a) + int(b),
    "a marked function": lambda: marked,
    "a Tool": ready,
    "a tool of pydantic-ai": lambda: PydanticTool(plus),
    "a function with pydantic-ai's context": lambda: with_context,
}
kinds = pytest.mark.parametrize("made", KINDS.values(), ids=KINDS)


class Given(Think):
    tools: dict[str, Any]

    def get_tools(self) -> Any:
        return self.tools


class TestTheKeyIsTheName:
    @kinds
    async def test_9_3_the_model_is_offered_the_key_and_its_call_runs(self, made: Any):
        async with running(Given, [call("research", {"a": 2, "b": 3})], "done") as stage:
            stage.agent.tools = {"research": made()}
            await stage.agent.run("go")
            assert [spec.name for spec in stage.model.requests[0].tools] == ["research"]
            assert "research" in stage.model.requests[0].system
            part = part_of(await stage.answer())
            assert (part["type"], part["output"]) == ("tool-research", 5)

    @kinds
    async def test_8_1_so_it_is_in_turn_config(self, made: Any):
        config = TurnConfig(tools={"research": made()}, active_tools=["research"])
        async with configured(config, [call("research", {"a": 2, "b": 3})], "done") as stage:
            result = await stage.agent.run("go")
            assert (result.status, result.text) == ("completed", "done")
            assert [spec.name for spec in stage.model.requests[0].tools] == ["research"]
            assert part_of(await stage.answer())["output"] == 5

    async def test_arguments_that_do_not_fit_are_told_under_the_name_the_model_used(self):
        async with running(Given, [call("research", {"a": "x", "b": 3})], "done") as stage:
            stage.agent.tools = {"research": marked}
            await stage.agent.run("go")
            assert "tool 'research'" in part_of(await stage.answer())["errorText"]

    async def test_one_function_may_have_two_names(self):
        calls = [
            call("one", {"a": 1, "b": 1}, id="call-1"),
            call("two", {"a": 2, "b": 2}, id="call-2"),
        ]
        async with running(Given, calls, "done") as stage:
            stage.agent.tools = {"one": plus, "two": plus}
            await stage.agent.run("go")
            answer = await stage.answer()
            assert (part_of(answer)["output"], part_of(answer, "call-2")["output"]) == (2, 4)

    async def test_hooks_see_the_tool_under_its_name(self):
        seen: list[Any] = []
        async with running(Given, [call("research", {"a": 2, "b": 3})], "done") as stage:
            stage.agent.tools = {"research": plus}
            stage.agent.add_hook("before_turn", lambda ctx: seen.extend(ctx.tools))
            stage.agent.add_hook(
                "before_tool_call", lambda ctx: seen.append((ctx.tool_name, ctx.tool.name))
            )
            await stage.agent.run("go")
        assert seen == ["research", ("research", "research")]

    async def test_a_hook_that_comes_later_sees_a_tool_and_not_a_function(self):
        seen: list[Any] = []
        async with configured({"tools": {"research": plus}}, "ok") as stage:
            stage.agent.add_hook("before_turn", lambda ctx: seen.append(ctx.tools["research"]))
            await stage.agent.run("go")
        assert [(type(found), found.name) for found in seen] == [(Tool, "research")]

    async def test_a_client_tool_may_be_answered_under_its_key(self):
        async with running(Given, [call("ask", {})], "thanks") as stage:
            stage.agent.tools = {"ask": client_tool("question", "Ask the user.")}
            await stage.agent.run("go")
            assert await stage.agent.has_pending_interaction()
            await stage.agent.add_tool_result("call-1", output="blue")
            await stage.agent.wait_until_stable()
            assert part_of(await stage.answer())["output"] == "blue"

    async def test_what_is_no_tool_fails_the_turn_and_is_named(self):
        async with configured({"tools": {"research": 5}}, "never") as stage:
            result = await stage.agent.run("go")
            assert result.status == "error"
            assert "research" in str(result.error)


class TestToolChoice:
    CHOICES: tuple[Any, ...] = (
        NamedTool("b"),
        {"type": "tool", "tool_name": "b"},
        {"type": "tool", "toolName": "b"},
        {"tool_name": "b"},
    )

    @pytest.mark.parametrize("choice", CHOICES)
    async def test_8_1_a_tool_is_forced_by_name_in_every_form(self, choice: Any):
        async with configured({"tool_choice": choice}, "ok") as stage:
            await stage.agent.run("go")
            assert stage.model.requests[0].tool_choice == NamedTool("b")

    @pytest.mark.parametrize("choice", CHOICES)
    async def test_8_1_and_for_one_step(self, choice: ToolChoice):
        async with running(Two, "ok") as stage:
            stage.agent.add_hook("before_step", lambda _: StepConfig(tool_choice=choice))
            await stage.agent.run("go")
            assert stage.model.requests[0].tool_choice == NamedTool("b")

    @pytest.mark.parametrize("choice", ["always", {"type": "function"}, {"tool_name": 5}, 5])
    async def test_anything_else_fails_the_turn_and_says_what_to_write(self, choice: Any):
        async with configured({"tool_choice": choice}, "never") as stage:
            result = await stage.agent.run("go")
            assert result.status == "error"
            assert 'NamedTool("search")' in str(result.error)
            assert stage.model.requests == []


class TestAToolErrorReachesTheModel:
    async def test_9_8_also_from_a_plain_function_of_the_turn(self):
        def fails() -> None:
            raise ToolError("no paper left")

        async with configured({"tools": {"print": fails}}, [call("print", {})], "sorry") as stage:
            await stage.agent.run("go")
            assert part_of(await stage.answer())["errorText"] == "no paper left"
