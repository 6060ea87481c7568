"""Ours behind a socket: the file that `thinkwell serve` is given. One class per model."""

from __future__ import annotations

from typing import Any

from benchmarks.provider import BURST, SMALL
from thinkwell import App, Think


class Watched(Think):
    """One class hook and one registered hook on every chunk, as in `ours`."""

    system_prompt = "You are a careful assistant."
    hydration_byte_budget = 16_384
    chunks = 0

    async def on_start(self) -> None:
        self.add_hook("on_chunk", self.count_chunk)

    async def on_chunk(self, ctx: Any) -> None:
        self.chunks += 1

    async def count_chunk(self, ctx: Any) -> None:
        self.chunks += 1


class Burst(Watched, name="burst"):
    """Answers with many deltas at once."""

    model = f"openai-chat:{BURST}"


class Small(Watched, name="small"):
    """Answers with two deltas."""

    model = f"openai-chat:{SMALL}"


app = App(agents=[Burst, Small])
