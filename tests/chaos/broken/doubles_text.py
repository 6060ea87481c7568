"""Does not tell the model what it had said before a crash, so it says it again."""

from __future__ import annotations

from tests.chaos.broken.base import Till
from thinkwell import App
from thinkwell.hooks import StepConfig, StepContext, TurnContext
from thinkwell.messages.model_messages import AssistantMessage


class Forgetful(Till):
    interrupted = False

    async def before_turn(self, ctx: TurnContext) -> None:
        self.interrupted = ctx.attempt > 0

    async def before_step(self, ctx: StepContext) -> StepConfig | None:
        told = [m for m in ctx.messages if not isinstance(m, AssistantMessage)]
        return StepConfig(messages=told) if self.interrupted and ctx.step_number == 0 else None


app = App(agents=[Forgetful])
