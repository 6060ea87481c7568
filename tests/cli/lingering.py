"""Agents that do not want to end."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from typing import Any

from thinkwell import App, Think, tool
from thinkwell.testing import ScriptedModel, call, pause, text


def say(word: str) -> None:
    sys.stderr.write(f"{word}\n")
    sys.stderr.flush()


async def hold() -> None:
    """Ignores every cancel."""
    say("began")
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            say("ignored")


class Lingering(Think, name="lingering"):
    time_limits = {"grace": 0.1}

    @tool
    def blocks(self) -> str:
        """Blocks its thread."""
        say("began")
        threading.Event().wait()
        return ""

    @tool
    async def borrows(self) -> str:
        """Blocks a thread of asyncio's own."""
        say("began")
        await asyncio.to_thread(threading.Event().wait)
        return ""

    @tool
    async def holds(self) -> str:
        """Ignores every cancel."""
        await hold()
        return ""

    @tool
    async def forgets(self) -> str:
        """Leaves a task of its own behind."""
        self.forgotten = asyncio.ensure_future(hold())
        return ""

    @tool
    async def freezes(self) -> str:
        """Blocks the event loop."""
        say("began")
        time.sleep(3600)
        return ""

    def get_model(self) -> Any:
        if self.name == "streams":
            return ScriptedModel([[text("one "), pause()]])
        if self.name in ("on_chat_response", "on_close"):
            return ScriptedModel(["ok"])
        if self.name in ("before_turn", "before_step", "on_chunk"):
            return ScriptedModel(["ok"])
        return ScriptedModel([[call(self.name)], "ok"])

    async def before_turn(self, ctx: Any) -> None:
        if self.name == "before_turn":
            await hold()

    async def on_chunk(self, ctx: Any) -> None:
        if self.name == "on_chunk":
            await hold()

    async def on_chat_response(self, ctx: Any) -> None:
        if self.name == "on_chat_response":
            await hold()

    async def on_close(self, connection: Any, code: int, reason: str) -> None:
        if self.name == "on_close":
            await hold()


app = App(agents=[Lingering], drain_timeout=3.0)
