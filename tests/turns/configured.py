"""An agent with two tools whose `before_turn` gives what a test wants."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.turns.support import Stage, running
from thinkwell import Think, ToolContext, tool


class Two(Think):
    system_prompt = "Be kind."
    seen: list[Any]

    async def on_start(self) -> None:
        self.seen = []

    @tool
    async def a(self, ctx: ToolContext, n: int = 0) -> str:
        """One."""
        self.seen.append((n, ctx.runtime_context))
        return "a"

    @tool
    async def b(self) -> str:
        """Two."""
        return "b"


@asynccontextmanager
async def configured(
    config: Any, *steps: Any, cls: type[Two] = Two, **options: Any
) -> AsyncIterator[Stage[Two]]:
    """A running agent whose `before_turn` gives `config`."""
    async with running(cls, *steps, **options) as stage:
        stage.agent.add_hook("before_turn", lambda _: config)
        yield stage
