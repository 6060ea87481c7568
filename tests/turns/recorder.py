"""An agent that writes down every hook, so that orders can be compared with spec/02 §7."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from tests.turns.support import Log, Stage, loosely, running
from thinkwell import Think, ToolContext, tool

EVENTS = (
    "before_turn",
    "before_step",
    "before_tool_call",
    "after_tool_call",
    "on_step_finish",
    "on_chunk",
    "on_chat_response",
    "on_chat_error",
)
"""The moments this recorder writes down."""


class Recorder(Think):
    """Overrides every hook; `registered` ones log the same lines with a prime."""

    time_limits = {"grace": 0.0}
    log: Log

    async def before_turn(self, ctx: Any) -> Any:
        self.note("before_turn", ctx)
        return None

    def before_step(self, ctx: Any) -> Any:
        self.note("before_step", ctx)

    def on_chunk(self, ctx: Any) -> Any:
        self.note("on_chunk", ctx)

    async def before_tool_call(self, ctx: Any) -> Any:
        self.note("before_tool_call", ctx)
        return None

    def after_tool_call(self, ctx: Any) -> Any:
        self.note("after_tool_call", ctx)

    async def on_step_finish(self, ctx: Any) -> Any:
        self.note("on_step_finish", ctx)

    async def on_chat_error(self, error: Any, ctx: Any) -> Any:
        self.note("on_chat_error", ctx)

    def on_chat_response(self, ctx: Any) -> Any:
        self.note("on_chat_response", ctx)

    def note(self, event: str, ctx: Any, mark: str = "") -> None:
        """Write one line: the hook and what tells its calls apart."""
        detail = {
            "before_turn": lambda: "",
            "before_step": lambda: ctx.step_number,
            "on_chunk": lambda: ctx.chunk["type"],
            "before_tool_call": lambda: ctx.tool_name,
            "after_tool_call": lambda: f"{ctx.tool_name} {ctx.outcome}",
            "on_step_finish": lambda: ctx.step_number,
            "on_chat_error": lambda: ctx.stage,
            "on_chat_response": lambda: ctx.status,
        }[event]()
        self.log.append(f"{event}{mark} {detail}".strip())

    @tool
    async def a(self, n: int = 0) -> str:
        """The first tool."""
        self.log.append("ran a")
        return f"a{n}"

    @tool
    async def b(self) -> str:
        """The second tool."""
        self.log.append("ran b")
        return "b"

    @tool
    async def fails(self) -> str:
        """Always raises."""
        self.log.append("ran fails")
        raise RuntimeError("it broke")

    @tool
    async def waits(self, ctx: ToolContext) -> str:
        """Runs until it is stopped."""
        self.log.append("ran waits")
        await asyncio.Event().wait()
        return ctx.tool_name


@asynccontextmanager
async def recording(
    cls: type[Recorder], *steps: Any, suspends: bool = False
) -> AsyncIterator[Stage[Recorder]]:
    """Run a recorder with a registered hook for every event beside its own methods."""
    log = Log()
    async with running(cls, *steps, log=log, suspends=suspends) as stage:
        stage.agent.log = log
        for event in EVENTS:
            register(stage.agent, event)
        yield stage


def register(agent: Recorder, event: str) -> None:
    """Add a hook that logs with a prime."""

    def observe(*arguments: Any) -> None:
        agent.note(event, arguments[-1], mark="'")

    loosely(agent).add_hook(event, observe)


HOOK_LINES = (*EVENTS, "ran", "stored", "settled")


def hooks(log: Sequence[str], *, chunks: bool = False) -> list[str]:
    """The lines of class hooks, handlers and storage; chunks only when asked for."""
    wanted = [line for line in log if line.split(" ")[0] in HOOK_LINES]
    return [line for line in wanted if chunks or not line.startswith("on_chunk")]


def without_storage(log: Sequence[str]) -> list[str]:
    """Hook lines without what the store did."""
    return [line for line in log if line.split(" ")[0] not in ("stored", "settled")]


def assert_told_after_stored(log: Sequence[str]) -> None:
    """Every chunk frame comes after the commit of its chunk, in the same order (DESIGN §1)."""
    committed = told = 0
    stored: list[str] = []
    for line in log:
        kind, _, rest = line.partition(" ")
        if kind == "committed":
            stored.append(rest)
            committed += 1
        elif kind == "frame" and rest in CHUNK_KINDS:
            assert told < committed, f"{line} was told before it was stored"
            assert stored[told] == rest
            told += 1
    assert told == committed


CHUNK_KINDS = frozenset(
    {
        "start",
        "start-step",
        "text-start",
        "text-delta",
        "text-end",
        "reasoning-start",
        "reasoning-delta",
        "reasoning-end",
        "tool-input-start",
        "tool-input-delta",
        "tool-input-available",
        "tool-input-error",
        "tool-output-available",
        "tool-output-error",
        "finish-step",
        "finish",
    }
)
