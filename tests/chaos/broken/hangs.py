"""A hook that never returns once a turn was interrupted."""

from __future__ import annotations

import asyncio

from tests.chaos.broken.base import Till
from thinkwell import App
from thinkwell.hooks import TurnContext


class Stuck(Till):
    async def before_turn(self, ctx: TurnContext) -> None:
        if ctx.attempt > 0:
            await asyncio.Event().wait()


app = App(agents=[Stuck])
