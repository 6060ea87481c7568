"""Ours: a `Think` subclass on the same provider, with everything on that a served agent has.

One class `on_chunk` and one registered `on_chunk` see every chunk; turn, journal and messages are
committed to a SQLite file. The window sent to the model is bounded by `hydration_byte_budget`, so a
long history and a short one send the same amount.
"""

from __future__ import annotations

import argparse
import os
from typing import Any

import uvloop

from benchmarks.history import history
from benchmarks.worker import serve_orders
from thinkwell import App, Think, tool

HISTORY_BATCH = 500


class Chosen:
    """The model of the next turn; the harness names it in every order."""

    model = ""


class Subject(Think, name="subject"):
    """The measured agent."""

    system_prompt = "You are a careful assistant."
    hydration_byte_budget = 16_384

    class_chunks = 0
    hook_chunks = 0

    def get_model(self) -> str:
        return f"openai-chat:{Chosen.model}"

    async def on_start(self) -> None:
        self.add_hook("on_chunk", self.count_chunk)

    async def on_chunk(self, ctx: Any) -> None:
        self.class_chunks += 1

    async def count_chunk(self, ctx: Any) -> None:
        self.hook_chunks += 1

    @tool
    async def get_weather(self, city: str) -> str:
        """Current weather in a city."""
        return f"Sunny in {city}"


class Bare(Think, name="bare"):
    """The same without a hook of its own; the harness says how many are registered."""

    system_prompt = Subject.system_prompt
    hydration_byte_budget = Subject.hydration_byte_budget
    hooks = 0

    def get_model(self) -> str:
        return f"openai-chat:{Chosen.model}"

    async def on_start(self) -> None:
        for _ in range(Bare.hooks):
            self.add_hook("on_chunk", look)


def look(ctx: Any) -> None:
    """A hook that does nothing."""


class Runner:
    """Carries out orders on the agents of one app."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def run_turn(self, order: dict[str, Any]) -> None:
        """One turn of the ordered agent, or the history it will have."""
        if "hooks" in order:
            Bare.hooks = order["hooks"]  # read when the agent wakes; each order names a new one
        agent = self._app.agent(Bare if "hooks" in order else Subject, order["agent"])
        if order["scenario"] == "history":
            for start in range(0, order["messages"], HISTORY_BATCH):
                end = min(start + HISTORY_BATCH, order["messages"])
                await agent.add_messages(list(history(end - start, start)))
            return
        Chosen.model = order["model"]
        result = await agent.run("hi")
        if result.status != "completed":
            raise RuntimeError(f"the turn ended {result.status}: {result.error}")


async def main() -> None:
    """Take orders until the harness closes the pipe."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--store", required=True)
    arguments = parser.parse_args()
    os.environ["OPENAI_BASE_URL"] = arguments.base_url
    os.environ["OPENAI_API_KEY"] = "none"
    async with App(agents=[Subject, Bare], store=arguments.store) as app:
        await serve_orders(Runner(app).run_turn)


if __name__ == "__main__":
    uvloop.run(main())
