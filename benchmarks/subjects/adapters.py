"""Ours, adapter by adapter: a model call alone, a turn around it, and many streams at once.

An order names the adapter (`openai-chat`, `openai`, `anthropic`, `bridge`) and the mock's model.
"""

from __future__ import annotations

import argparse
import asyncio
import os
from contextlib import suppress
from typing import Any

import uvloop

from benchmarks.worker import serve_orders
from thinkwell import App, Think
from thinkwell.core.signal import AbortController
from thinkwell.messages.model_messages import TextContent, UserMessage
from thinkwell.models.base import Finish, ModelRequest, TextDelta
from thinkwell.models.resolve import ModelPool

STREAMS = 200
ASKED = ModelRequest(messages=(UserMessage((TextContent("hi"),)),), system="Be brief.")


class Chosen:
    """The model of the next turn."""

    model = ""


class Plain(Think, name="plain"):
    """No hook, no tool: the journal and the adapter are all there is."""

    system_prompt = "Be brief."

    def get_model(self) -> str:
        return Chosen.model


class Runner:
    """Carries out orders."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._models = ModelPool()

    async def run_turn(self, order: dict[str, Any]) -> None:
        """One call, one turn, or many streams."""
        prefix = "pydantic-ai/openai-chat" if order["adapter"] == "bridge" else order["adapter"]
        name = f"{prefix}:{order['model']}"
        if order["scenario"] == "turn":
            Chosen.model = name
            result = await self._app.agent(Plain, order["agent"]).run("hi")
            if result.status != "completed":
                raise RuntimeError(f"the turn ended {result.status}: {result.error}")
        elif order["scenario"] == "call":
            await self._call(name)
        else:
            await self._streams(name, stuck=order["scenario"] == "stuck")

    async def _call(self, name: str) -> None:
        model = await self._models.load(name)
        deltas, last = 0, None
        async for event in model.stream(ASKED, AbortController().signal):
            deltas += type(event) is TextDelta
            last = event
        if not isinstance(last, Finish) or not deltas:
            raise RuntimeError(f"the call ended with {last}")

    async def _streams(self, name: str, *, stuck: bool) -> None:
        """All of them at once; with `stuck`, beside one whose reader takes nothing after the first
        delta.
        """
        lazy = asyncio.create_task(self._stuck(name)) if stuck else None
        await asyncio.gather(*(self._call(name) for _ in range(STREAMS)))
        if lazy is not None:
            lazy.cancel()
            with suppress(asyncio.CancelledError):
                await lazy

    async def _stuck(self, name: str) -> None:
        model = await self._models.load(name)
        async for event in model.stream(ASKED, AbortController().signal):
            if type(event) is TextDelta:
                await asyncio.Event().wait()


async def main() -> None:
    """Take orders until the harness closes the pipe."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--address", required=True)
    parser.add_argument("--store", required=True)
    arguments = parser.parse_args()
    os.environ["OPENAI_BASE_URL"] = f"{arguments.address}/v1"
    os.environ["ANTHROPIC_BASE_URL"] = arguments.address
    os.environ["OPENAI_API_KEY"] = os.environ["ANTHROPIC_API_KEY"] = "none"
    async with App(agents=[Plain], store=arguments.store) as app:
        await serve_orders(Runner(app).run_turn)


if __name__ == "__main__":
    uvloop.run(main())
