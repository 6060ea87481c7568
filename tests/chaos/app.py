"""The app that our own chaos runs kill: every kind of tool, an approval, hooks, jobs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from thinkwell import App, Think, ToolContext, tool
from thinkwell.hooks import ChatResponse, StepFinishContext
from thinkwell.jobs import JobContext
from thinkwell.store.deleting import PIECE

MOMENT = 0.01
"""Seconds a tool works: long enough to be killed in."""


class Line(BaseModel):
    article: Literal["pen", "book", "lamp"]
    count: Annotated[int, Field(ge=1, le=9)] = 1
    note: str | None = None


class Shop(Think):
    async def on_start(self) -> None:
        await self.approvals.allow("gift", {"size": "small"})
        if self.name.startswith("chaos-spare"):  # has more rows than are deleted at a time
            for number in range(2 * PIECE):
                await self.storage.set(f"k{number}", number)

    @tool
    async def pay(self, cents: Annotated[int, Field(ge=1)], to: str) -> str:
        """Pay somebody: never twice."""
        await asyncio.sleep(MOMENT)
        return f"paid {cents} to {to}"

    @tool(effect="idempotent")
    async def order(self, lines: list[Line], ctx: ToolContext) -> dict[str, object]:
        """Order something; the shop knows the order by its key."""
        await asyncio.sleep(MOMENT)
        return {"key": ctx.idempotency_key, "lines": len(lines)}

    @tool(effect="tx")
    async def count(self, article: str) -> str:
        """Count something; the count is stored with the result or not at all."""
        await self.storage.set(f"count-{article}", 1)
        return f"counted {article}"

    @tool(effect="pure")
    def look(self, article: str, limit: float | None = None) -> list[str]:
        """Look something up, in a thread."""
        return [article] * int(limit or 1)

    @tool(effect="pure")
    async def pack(self, boxes: Annotated[int, Field(ge=1, le=3)]) -> AsyncIterator[str]:
        """Pack boxes; the result grows."""
        for box in range(boxes):
            yield f"box {box}"
            await asyncio.sleep(MOMENT)

    @tool(needs_approval=True)
    async def refund(self, cents: int) -> str:
        """Give money back, if somebody allows it."""
        await asyncio.sleep(MOMENT)
        return f"refunded {cents}"

    @tool(needs_approval=True)
    async def gift(self, size: Literal["small"]) -> str:
        """Give something away: a rule allows small gifts."""
        await asyncio.sleep(MOMENT)
        return f"gave a {size} one"

    @tool
    async def fail(self, reason: str) -> str:
        """A tool that always fails."""
        raise ValueError(reason)

    async def on_step_finish(self, ctx: StepFinishContext) -> None:
        await asyncio.sleep(0)

    async def on_chat_response(self, ctx: ChatResponse) -> None:
        await asyncio.sleep(0)


class Depot(Think):
    """Its tools leave jobs behind."""

    @tool(effect="idempotent")
    async def ship(self, parcel: str, ctx: ToolContext) -> str:
        """Enqueue a job of each kind."""
        for name in ("stepwise", "failing"):
            await self.jobs.enqueue(name, parcel, key=f"{name}-{ctx.idempotency_key}")
        return "enqueued"

    @tool(effect="idempotent")
    async def recall(self, parcel: str, ctx: ToolContext) -> str:
        """Begin a job that would last for ever, and cancel it."""
        job = await self.jobs.enqueue("lasting", parcel, key=f"lasting-{ctx.idempotency_key}")
        while (found := await self.jobs.get(job.id)) and found.status == "waiting":
            await asyncio.sleep(0.001)
        await self.jobs.cancel(job.id)
        return "cancelled"

    async def stepwise(self, ctx: JobContext) -> None:
        """Three steps, each stashed."""
        for step in range((ctx.stashed or 0) + 1, 4):
            await ctx.stash(step)

    async def failing(self, ctx: JobContext) -> None:
        """Fails once."""
        if ctx.attempt == 1:
            raise ConnectionError("not yet")

    async def lasting(self, ctx: JobContext) -> None:
        """Runs until it is cancelled."""
        while not ctx.signal.aborted:
            await asyncio.sleep(0.001)


app = App(agents=[Shop, Depot])
