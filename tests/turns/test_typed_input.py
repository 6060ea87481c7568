"""The input of a call as a type: `ctx.input_as(Model)` and `ctx.for_tool(function, read)`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict

import pytest
from pydantic import BaseModel

from tests.turns.support import running
from thinkwell import Allow, Block, Think, ToolContext, tool
from thinkwell.hooks import ToolCallContext, ToolResultContext, ToolSuccessContext
from thinkwell.testing import call


class Payment(BaseModel):
    to: str
    cents: int


@dataclass
class Paid:
    to: str
    cents: int


class Part(TypedDict):
    to: str


class Clerk(Think):
    async def on_start(self) -> None:
        self.seen: list[Any] = []

    @tool(effect="pure")
    async def pay(self, to: str, cents: int, ctx: ToolContext) -> str:
        """Pay somebody."""
        return f"{to} got {cents}"

    @tool(effect="pure", name="wipe")
    async def erase(self, path: str) -> str:
        """Erase a file."""
        return path


def pay(**changed: Any) -> Any:
    return [call("pay", {"to": "Ada", "cents": 3, **changed})]


async def test_a_hook_reads_the_input_as_the_type_it_names():
    class Reads(Clerk):
        def before_tool_call(self, ctx: ToolCallContext) -> None:
            self.seen.append(ctx.input_as(Payment))
            self.seen.append(ctx.input_as(Part)["to"])

        def on_tool_result(self, ctx: ToolSuccessContext) -> None:
            self.seen.append(ctx.call.input_as(Payment).cents)

        def after_tool_call(self, ctx: ToolResultContext) -> None:
            self.seen.append(ctx.input_as(Paid))

    async with running(Reads, pay(), "done") as stage:
        await stage.agent.run("hi")
        assert stage.agent.seen == [Payment(to="Ada", cents=3), "Ada", 3, Paid("Ada", 3)]


async def test_input_that_does_not_fit_says_which_field():
    class Wrong(Clerk):
        def before_tool_call(self, ctx: ToolCallContext) -> None:
            class Refund(BaseModel):
                reason: str

            with pytest.raises(
                ValueError, match=r"The input of 'pay' does not fit Refund: .*reason"
            ):
                ctx.input_as(Refund)
            self.seen.append("asked")

    async with running(Wrong, pay(), "done") as stage:
        await stage.agent.run("hi")
        assert stage.agent.seen == ["asked"]


async def test_a_check_with_the_parameters_of_a_tool_is_asked_about_its_calls_only():
    class Checks(Clerk):
        def before_tool_call(self, ctx: ToolCallContext) -> Any:
            return ctx.for_tool(self.pay, self.check_pay) or ctx.for_tool(self.erase, self.no)

        def check_pay(self, to: str, cents: int, ctx: ToolContext) -> Block | None:
            self.seen.append((to, cents, ctx.tool_name, ctx.agent is self))
            return Block("too much") if cents > 5 else None

        def no(self, path: str) -> Block:
            return Block(f"{path} stays")

    script = (pay(), pay(cents=9), [call("wipe", {"path": "/"})], "done")
    async with running(Checks, *script) as stage:
        message = (await stage.agent.run("hi")).message
        assert message is not None
        assert stage.agent.seen == [("Ada", 3, "pay", True), ("Ada", 9, "pay", True)]
        outputs = [part["output"] for part in message["parts"] if "output" in part]
        assert outputs == ["Ada got 3", "too much", "/ stays"]


async def test_what_an_earlier_hook_chose_is_what_a_check_gets():
    class Halves(Clerk):
        def before_tool_call(self, ctx: ToolCallContext) -> Allow:
            return Allow({**ctx.input, "cents": ctx.input_as(Payment).cents // 2})

    async with running(Halves, pay(cents=8), "done") as stage:
        agent = stage.agent

        def check(to: str, cents: int, ctx: ToolContext) -> None:
            agent.seen.append(cents)

        agent.add_hook("before_tool_call", lambda ctx: ctx.for_tool(agent.pay, check))
        await agent.run("hi")
        assert agent.seen == [4]


async def test_a_plain_function_is_known_by_itself_whatever_the_model_calls_it():
    def double(n: int) -> int:
        """Double a number."""
        return 2 * n

    class Doubles(Clerk):
        def get_tools(self) -> dict[str, Any]:
            return {"twice": double}

        def before_tool_call(self, ctx: ToolCallContext) -> Any:
            assert ctx.for_tool(self.erase, lambda path: path) is None
            return ctx.for_tool(double, lambda n: Block(f"not {n}"))

    async with running(Doubles, [call("twice", {"n": 4})], "done") as stage:
        message = (await stage.agent.run("hi")).message
        assert message is not None
        assert [p["output"] for p in message["parts"] if "output" in p] == ["not 4"]
