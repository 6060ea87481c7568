# type: ignore
"""A check that does not fit its tool."""

from __future__ import annotations

from pydantic import BaseModel

from thinkwell import Block, Think, tool
from thinkwell.hooks import ToolCallContext


class Payment(BaseModel):
    to: str
    cents: int


class Clerk(Think):
    @tool
    async def pay(self, to: str, cents: int) -> str:
        """Pay somebody."""
        return f"{cents} to {to}"

    def before_tool_call(self, ctx: ToolCallContext) -> Block | None:
        # E pyright: Cannot access attribute "dollars" for class "Payment"
        # E mypy: "Payment" has no attribute "dollars"
        print(ctx.input_as(Payment).dollars)
        # E pyright: Argument of type "(to: str) -> (Block | None)"
        # E mypy: nothing
        return ctx.for_tool(self.pay, self.check_pay)

    def check_pay(self, to: str) -> Block | None:
        return Block("Too much.") if to == "me" else None
