"""A program whose agents share a budget and are killed: `budget_program.py STORE TURNS CAP`.

It asks for its turns, each once however often it is started, and ends when all of them have ended.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import Any

from thinkwell import App, Budget, Think, TurnConfig
from thinkwell.core.signal import AbortSignal
from thinkwell.messages.usage import Usage
from thinkwell.models import (
    Finish,
    ModelEvent,
    ModelRequest,
    Price,
    TextDelta,
    TextEnd,
    TextStart,
)

USED = Usage(input_tokens=100, output_tokens=50, total_tokens=150)


class Slow:
    """Answers after a few rounds of the event loop, so that many calls run at once."""

    provider, model_id = "acme", "slow"

    async def stream(self, request: ModelRequest, signal: AbortSignal) -> AsyncIterator[ModelEvent]:
        yield TextStart("t")
        for word in ("one ", "two ", "three"):
            await asyncio.sleep(0.02)
            if signal.aborted:
                return
            yield TextDelta("t", word)
        yield TextEnd("t")
        yield Finish(reason="stop", usage=USED)


class Spender(Think):
    model = Slow()

    def before_turn(self, ctx: Any) -> TurnConfig:
        return TurnConfig(system="Count.", max_output_tokens=200)


async def main(store: str, turns: str, cap: str) -> None:
    prices = {"acme:slow": Price(input=1, output=1)}
    budget = Budget(usd=cap, per="principal")
    async with App([Spender], store=f"sqlite:///{store}", prices=prices, budget=budget) as app:
        agents = [app.agent(Spender, f"a{number}") for number in range(int(turns))]
        for agent in agents:
            await agent.submit("Go on.", submission_id="turn")
        for agent in agents:
            await agent.wait_until_stable()
    print("done", flush=True)  # noqa: T201


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
