"""Ours behind a socket: the file that `thinkwell serve` is given."""

from __future__ import annotations

import os
from typing import Any

from thinkwell import App, Think


class Served(Think):
    """One class hook and one registered hook on every chunk, as in `ours`.

    The part of an agent's name before the dot is its model.
    """

    system_prompt = "You are a careful assistant."
    hydration_byte_budget = 16_384
    chunks = 0

    def get_model(self) -> str:
        return f"openai-chat:{self.name.partition('.')[0]}"

    async def on_start(self) -> None:
        self.add_hook("on_chunk", self.count_chunk)

    async def on_chunk(self, ctx: Any) -> None:
        self.chunks += 1

    async def count_chunk(self, ctx: Any) -> None:
        self.chunks += 1


class Bridged(Served):
    """The same through pydantic-ai's model for the same provider."""

    def get_model(self) -> str:
        return f"pydantic-ai/openai-chat:{self.name.partition('.')[0]}"


durability: Any = os.environ.get("BENCH_DURABILITY", "process")
app = App(agents=[Served, Bridged], durability=durability)
