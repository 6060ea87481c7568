"""The effect log: what tools really did, written down beside them and not by the ledger.

A line goes into the file before a tool begins and another when it has ended, each with one write
call, so that a killed process leaves whole lines. `watch_tools` puts the log around every tool that
runs in this process, whoever offers it: it wraps the handler itself, below everything that keeps
books about calls.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import AsyncIterator, Awaitable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, cast

from thinkwell.core import json
from thinkwell.tools.context import ToolContext
from thinkwell.tools.tool import Execute, Tool

EFFECTS = "effects.jsonl"
Moment = Literal["begin", "end"]


class EffectLog:
    """One process's pen. Several processes may have had it before."""

    def __init__(self, folder: Path, life: int) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        self._file = os.open(folder / EFFECTS, flags, 0o600)
        self._life = life

    def write(self, moment: Moment, tool: Tool, ctx: ToolContext, **more: Any) -> None:
        """Add a line."""
        line = {
            "moment": moment,
            "life": self._life,
            "pid": os.getpid(),
            "agent": getattr(ctx.agent, "agent_id", None) or _address(ctx.agent),
            "turn": ctx.request_id,
            "call": ctx.tool_call_id,
            "key": ctx.idempotency_key,
            "tool": tool.name,
            "effect": tool.effect,
            "reconcile": tool.reconcile is not None,
            **more,
        }
        os.write(self._file, json.dump_bytes(line) + b"\n")

    def around(self, tool: Tool) -> Tool:
        """The same tool, whose runs are written down."""
        own = tool.execute
        return tool if own is None else replace(tool, execute=self._logged(tool, own))

    def _logged(self, tool: Tool, own: Execute) -> Execute:
        def execute(value: Any, ctx: ToolContext) -> Any:
            self.write("begin", tool, ctx)
            try:
                result = own(value, ctx)
            except BaseException as error:
                self.write("end", tool, ctx, error=type(error).__name__)
                raise
            if inspect.isawaitable(result):
                return self._awaited(tool, ctx, result)
            if isinstance(result, AsyncIterator):
                return self._iterated(tool, ctx, cast("AsyncIterator[Any]", result))
            self.write("end", tool, ctx)
            return result

        return execute

    async def _awaited(self, tool: Tool, ctx: ToolContext, work: Awaitable[Any]) -> Any:
        try:
            result = await work
        except BaseException as error:
            self.write("end", tool, ctx, error=type(error).__name__)
            raise
        if isinstance(result, AsyncIterator):
            return self._iterated(tool, ctx, cast("AsyncIterator[Any]", result))
        self.write("end", tool, ctx)
        return result

    async def _iterated(
        self, tool: Tool, ctx: ToolContext, items: AsyncIterator[Any]
    ) -> AsyncIterator[Any]:
        try:
            async for item in items:
                yield item
        except BaseException as error:
            self.write("end", tool, ctx, error=type(error).__name__)
            raise
        self.write("end", tool, ctx)


def _address(agent: Any) -> str:
    return f"{getattr(agent, 'agent_class', '')}/{getattr(agent, 'name', '')}"


def watch_tools(log: EffectLog) -> None:
    """Write down every tool that runs in this process from now on."""
    from thinkwell.turn.run import tool_run

    run = tool_run.run_tool

    def run_watched(tool: Tool, *given: Any, **named: Any) -> Any:
        return run(log.around(tool), *given, **named)

    tool_run.run_tool = run_watched
