"""One tool call: from the model's argument text to a JSON result (spec/02 §9.5-9.10, §9.12).

Owns parsing, validation, the question whether a call needs approval, the four shapes a handler may
have (ordinary function, coroutine, async generator, and an awaitable that gives an async iterator),
preliminary results, the tool's own timeout, and the check that a result fits JSON. It leaves to the
caller: waiting for an approval, hooks, the ledger, turning an exception into the text for the
model, and cancelling the task when the turn is stopped. Every failure it finds itself is a
`ToolError`.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, TypeAlias, cast

import msgspec

from thinkwell.core import json
from thinkwell.core.errors import ToolError, ToolInputError, ToolOutputError, ToolTimeoutError
from thinkwell.core.user_code import call_user, contained
from thinkwell.tools.context import ToolContext
from thinkwell.tools.reporter import Reporter
from thinkwell.tools.tool import Execute, Tool

OnPreliminary: TypeAlias = "Callable[[Any], Awaitable[None] | None]"
InThread: TypeAlias = "Callable[..., Awaitable[Any]]"
"""Runs a function with its arguments beside the event loop."""


class ParsedInput(msgspec.Struct, frozen=True):
    """Arguments that passed: as the model wrote them, and as the handler gets them."""

    raw: dict[str, Any]
    """The JSON object the model sent; `{}` when it sent nothing."""
    value: Any
    """The validated value for `Tool.execute`."""


def parse_input(tool: Tool, text: str) -> ParsedInput:
    """Parse and validate the model's argument text. Empty text means no arguments."""
    if not text.strip():
        return check_input(tool, {})
    try:
        raw = json.loads(text)
    except ValueError as error:
        raise ToolInputError(tool.name, f"the arguments are not valid JSON ({error})") from None
    return check_input(tool, raw)


def check_input(tool: Tool, raw: object) -> ParsedInput:
    """Validate arguments that are parsed already, for example after a hook changed them."""
    if not isinstance(raw, dict):
        raise ToolInputError(
            tool.name, f"the arguments must be a JSON object, not {_json_kind(raw)}"
        )
    arguments = cast("dict[str, Any]", raw)
    return ParsedInput(arguments, tool.validate(arguments))


async def approval_required(tool: Tool, value: Any, ctx: ToolContext) -> bool:
    """Whether somebody has to allow this call before it may run (spec/02 §9.10).

    `value` is the validated input. What the tool's own policy raises comes through: such a call
    must not run.
    """
    policy = tool.needs_approval
    if isinstance(policy, bool):
        return policy
    return bool(await call_user(f"needs_approval of {tool.name!r}", policy, value, ctx))


async def run_tool(
    tool: Tool,
    value: Any,
    ctx: ToolContext,
    on_preliminary: OnPreliminary,
    *,
    in_thread: InThread = asyncio.to_thread,
) -> Any:
    """Run one call and return its result as plain JSON data.

    Each value of an async iterator goes to `on_preliminary` as it comes; the last one is also the
    result, None if there was none. A handler that is not an iterator calls `on_preliminary` only
    by `ctx.report`, which works until the call has ended.
    """
    reporter = Reporter(lambda item: _report(tool, item, on_preliminary))
    ctx = msgspec.structs.replace(ctx, report=reporter)
    limit = asyncio.timeout(tool.timeout)
    try:
        with contained(f"tool {tool.name!r}"):
            async with limit:
                result = await _started(tool, value, ctx, in_thread)
                return await _result(tool, result, on_preliminary)
    except TimeoutError as error:
        # The tool raised a `TimeoutError` of its own: that is its result, not our limit.
        if not limit.expired():
            raise
        raise ToolTimeoutError(tool.name, tool.timeout or 0) from error
    finally:
        # A task the tool left running must not report into a call that has ended.
        reporter.close()


async def _started(tool: Tool, value: Any, ctx: ToolContext, in_thread: InThread) -> Any:
    """What the handler returned; for a coroutine or an iterator its work is still to come."""
    execute = tool.execute
    if execute is None:
        raise ToolError(f"Tool {tool.name!r} has no handler here: the client answers its calls.")
    # An ordinary function may wait for a database or a disk; on the loop it would stop every
    # agent.
    if tool.blocking:
        return await in_thread(_call, tool.name, execute, value, ctx)
    return execute(value, ctx)


async def _result(tool: Tool, result: Any, on_preliminary: OnPreliminary) -> Any:
    if inspect.isawaitable(result):
        result = await result
    if isinstance(result, AsyncIterator):
        return await _drain(tool, cast("AsyncIterator[Any]", result), on_preliminary)
    return _to_json(tool, result)


def _call(name: str, execute: Execute, value: Any, ctx: ToolContext) -> Any:
    try:
        return execute(value, ctx)
    except StopIteration as error:
        # A future cannot hold StopIteration: the awaiting side would hang for ever.
        raise ToolError(f"Tool {name!r} raised StopIteration.") from error


async def _drain(tool: Tool, items: AsyncIterator[Any], on_preliminary: OnPreliminary) -> Any:
    if hasattr(items, "aclose"):
        # Closed when the turn stops: a generator left open keeps its `finally` for the garbage
        # collector.
        async with aclosing(cast("Any", items)):
            return await _consume(tool, items, on_preliminary)
    return await _consume(tool, items, on_preliminary)


async def _consume(tool: Tool, items: AsyncIterator[Any], on_preliminary: OnPreliminary) -> Any:
    last: Any = None
    async for item in items:
        last = await _report(tool, item, on_preliminary)
    return last


async def _report(tool: Tool, item: Any, on_preliminary: OnPreliminary) -> Any:
    value = _to_json(tool, item)
    sending = on_preliminary(value)
    if sending is not None:
        await sending
    return value


def _to_json(tool: Tool, value: Any) -> Any:
    try:
        return json.to_jsonable(value)
    except Exception as error:
        raise ToolOutputError(
            f"The result of tool {tool.name!r} cannot be stored as JSON: {error}"
        ) from error


def _json_kind(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, list):
        return "an array"
    return "a string" if isinstance(value, str) else "a number"
