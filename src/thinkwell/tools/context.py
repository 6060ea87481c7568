"""What a tool may know about the call it serves (spec/02 §9.2).

A handler asks for it with a parameter annotated `ToolContext`; that parameter is not part of the
schema the model sees. The record is frozen: a tool changes the world through its result, never
through its context. `report` is put in by whoever runs the call; outside of one it does nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import msgspec

from thinkwell.core.principal import Principal
from thinkwell.core.signal import AbortSignal
from thinkwell.messages.model_messages import ModelMessage

Report: TypeAlias = "Callable[[Any], Awaitable[None]]"


async def report_to_nobody(_value: Any) -> None:
    """The `report` of a context outside of a running call."""


class ToolContext(msgspec.Struct, frozen=True, kw_only=True):
    """One tool call, seen from inside its handler."""

    tool_call_id: str
    """The model's id of this call."""
    tool_name: str
    """The name the model called."""
    messages: tuple[ModelMessage, ...]
    """The conversation the model saw when it asked for the call."""
    abort_signal: AbortSignal
    """Aborts when the turn is stopped. Long handlers should watch it."""
    step_number: int
    """Zero-based step of the turn."""
    request_id: str
    """The turn's request id."""
    agent: Any
    """The agent instance that runs the turn."""
    idempotency_key: str
    """Stays the same when the call is run again after a crash (spec/04 §15.1)."""
    runtime_context: Any = None
    """What `before_turn` or `before_step` gave as `runtime_context`."""
    principal: Principal | None = None
    """Who asked for the turn, as the app's `auth` said."""
    authorization: Any = None
    """What `authorize_turn` granted."""
    report: Report = report_to_nobody
    """`await ctx.report(value)` shows a preliminary result to clients; the model never sees it.

    A handler that runs in a thread calls it without `await`. After the call has ended it does
    nothing.
    """
