"""Asking the destination what came of a call that was cut (spec/04 §15.1).

`@tool(effect="once", reconcile=find_payment)`: the function gets the `EarlierCall` and answers
`Done(output)`, `NotDone()`, or None when it does not know. It may be async. What it raises means
that it does not know.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

import msgspec


class EarlierCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call of which nobody knows whether it took effect."""

    tool_name: str
    """The tool that was called."""
    input: Mapping[str, Any]
    """What it was called with."""
    idempotency_key: str
    """What the tool was given as `ToolContext.idempotency_key`."""
    tool_call_id: str
    """The model's id of that call."""
    request_id: str
    """The turn it belongs to."""
    agent: Any
    """The agent instance."""


class Done(msgspec.Struct, frozen=True):
    """It took effect: `output` is its result, and nothing runs."""

    output: Any = None


class NotDone(msgspec.Struct, frozen=True):
    """It did not take effect: the tool may run."""


Reconcile: TypeAlias = (
    "Callable[[EarlierCall], Done | NotDone | Awaitable[Done | NotDone | None] | None]"
)
