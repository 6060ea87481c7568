"""A second chance for a call the model got wrong (spec/02 §9.13).

`repair_tool_call` is asked about calls of unknown tools and calls with arguments that do not fit.
Owns what it is given, how its answer is read and what its failure is. The caller checks a repaired
call exactly once, like a fresh one; None means that the first problem stays.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

import msgspec

from thinkwell.core import json
from thinkwell.core.errors import ToolError, ToolInputError, ToolRepairError, UnknownToolError
from thinkwell.core.user_code import call_user
from thinkwell.messages.model_messages import ModelMessage
from thinkwell.tools.tool import Tool


class RawCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call as the model wrote it."""

    tool_call_id: str
    """The model's id of the call; a repair cannot change it."""
    tool_name: str
    """The tool it asked for."""
    input: str
    """The text of the arguments, which may be no JSON."""

    def corrected(
        self, *, tool_name: str | None = None, input: str | Mapping[str, Any] | None = None
    ) -> RawCall:
        """The call with another name or other arguments, given as a text or as an object."""
        text = self.input if input is None else input
        return RawCall(
            tool_call_id=self.tool_call_id,
            tool_name=tool_name or self.tool_name,
            input=text if isinstance(text, str) else json.dumps(json.to_jsonable(dict(text))),
        )


class RepairCall(msgspec.Struct, frozen=True, kw_only=True):
    """What `repair_tool_call` gets."""

    tool_call: RawCall
    """The call that cannot run."""
    error: ToolError
    """Why: an `UnknownToolError` or a `ToolInputError`."""
    tools: Mapping[str, Tool]
    """The tools offered in this step."""
    messages: tuple[ModelMessage, ...]
    """The conversation the model saw."""
    system: str
    """The system prompt it saw."""

    def schema(self, name: str) -> Mapping[str, Any] | None:
        """The input schema of a tool; None if it is not offered."""
        tool = self.tools.get(name)
        return None if tool is None else tool.input_schema


RepairToolCall: TypeAlias = "Callable[[RepairCall], RawCall | Awaitable[RawCall | None] | None]"
"""Gives a corrected call, or None to leave it.

Contract: asked at most once per call; may be async and may ask a model; a raise becomes the call's
error.
"""


async def repair_call(function: RepairToolCall | None, ctx: RepairCall) -> RawCall | None:
    """The repaired call to be checked once, or None when the problem stays as it is.

    Raises `ToolRepairError`, the call's new problem, if the function fails or returns nonsense.
    """
    if function is None or not isinstance(ctx.error, UnknownToolError | ToolInputError):
        return None
    wanted = ctx.tool_call
    try:
        repaired = await call_user("repair_tool_call", function, ctx)
    except Exception as error:
        detail = json.error_text(error)
        raise ToolRepairError(wanted.tool_name, ctx.error, detail) from error
    if repaired is None:
        return None
    if not isinstance(repaired, RawCall):
        detail = (
            f"repair_tool_call returned a {type(repaired).__name__}. "
            "Return ctx.tool_call.corrected(...) or None."
        )
        raise ToolRepairError(wanted.tool_name, ctx.error, detail)
    return msgspec.structs.replace(repaired, tool_call_id=wanted.tool_call_id)
