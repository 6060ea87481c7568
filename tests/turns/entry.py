"""An agent, a callback and a log of all hooks, for the tests of the ways into a turn."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from tests.turns.support import Stage
from thinkwell import Think, tool
from thinkwell.core import json
from thinkwell.hooks.registry import EVENTS

SCHEMA = {"name": "ask_page", "description": "Asks.", "parameters": {"type": "object"}}
"""A client tool as a client declares it."""


class Assistant(Think):
    time_limits = {"grace": 0.0}
    body: Callable[[], Awaitable[Any]] | None = None

    @tool
    async def a(self) -> Any:
        """Does what a test wants."""
        return "a" if self.body is None else await self.body()


class Callback:
    """Writes down what it is told."""

    def __init__(self, log: list[str] | None = None) -> None:
        self.log: list[str] = [] if log is None else log
        self.request_id = ""

    def on_start(self, info: dict[str, str]) -> None:
        self.request_id = info["request_id"]
        self.log.append("on_start")

    async def on_event(self, chunk: str) -> None:
        self.log.append(f"event {json.loads(chunk)['type']}")

    def on_done(self) -> None:
        self.log.append("on_done")

    async def on_error(self, text: str) -> None:
        self.log.append(f"on_error {text}")


class Stoppable(Callback):
    def on_aborted(self, reason: str) -> None:
        self.log.append(f"on_aborted {reason}")

    def on_interrupted(self) -> None:
        self.log.append("on_interrupted")


def record(stage: Stage[Any]) -> None:
    """Log every moment of a turn."""

    def observe(event: str) -> Callable[..., None]:
        def note(*arguments: Any) -> None:
            ctx = arguments[-1]
            chunk = ctx.chunk["type"] if event == "on_chunk" else ""
            role = ctx.message.role if event == "on_message" else ""
            step = ctx.step_number if event in ("before_step", "on_step_finish") else ""
            stage.log.append(f"hook {event} {chunk}{role}{step}".strip())

        return note

    for event in EVENTS:
        stage.agent.add_hook(event, observe(event))


def hook_lines(stage: Stage[Any]) -> list[str]:
    return [line for line in stage.log if line.startswith("hook")]


async def drain(items: Any) -> None:
    async for _ in items:
        pass


def fail(_: Any) -> None:
    """A hook that raises."""
    raise RuntimeError("no")
