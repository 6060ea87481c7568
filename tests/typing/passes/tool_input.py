"""The input of a call, by the tool it is for."""

from __future__ import annotations

from typing import TypedDict, assert_type

from pydantic import BaseModel

from thinkwell import Block, Think, ToolContext, tool
from thinkwell.hooks import ToolCallContext, ToolDecision, ToolResultContext, ToolSuccessContext


class Payment(BaseModel):
    to: str
    cents: int


class Erase(TypedDict):
    path: str


class Clerk(Think):
    model = "demo"

    @tool
    async def pay(self, to: str, cents: int, ctx: ToolContext) -> str:
        """Pay somebody."""
        return f"{cents} to {to}, {ctx.step_number}"

    @tool
    def erase(self, path: str, *, force: bool = False) -> None:
        """Erase a file."""

    def before_tool_call(self, ctx: ToolCallContext) -> ToolDecision | None:
        if ctx.tool_name == "pay":
            payment = ctx.input_as(Payment)
            assert_type(payment, Payment)
            assert_type(ctx.input_as(Erase)["path"], str)
            if payment.cents > 10_000:
                return Block(f"{payment.to} gets too much.")
        return ctx.for_tool(self.erase, self.check_erase) or ctx.for_tool(self.pay, self.check_pay)

    def check_erase(self, path: str, *, force: bool = False) -> Block | None:
        return Block("Not the root.") if path == "/" and not force else None

    def check_pay(self, to: str, cents: int, ctx: ToolContext) -> Block | None:
        return Block("Ask first.") if ctx.principal is None else None

    def on_tool_result(self, ctx: ToolSuccessContext) -> None:
        assert_type(ctx.call.input_as(Payment).cents, int)

    def after_tool_call(self, ctx: ToolResultContext) -> None:
        assert_type(ctx.input_as(Payment), Payment)
