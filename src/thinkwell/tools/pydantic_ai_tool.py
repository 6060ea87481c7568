"""A pydantic-ai `Tool` object, read as what our own record needs.

It keeps its own schema, its own validation and its own way to be called; a function that takes a
`RunContext` gets a small one, with the turn's `runtime_context` as its `deps`. What would change
the meaning of the tool and cannot be honoured here is refused when the tool is taken over. The
object is recognised by the module of its class, so nobody pays for the import who does not use it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from thinkwell.core import json
from thinkwell.core.errors import ToolDefinitionError, ToolError, ToolInputError
from thinkwell.tools.context import ToolContext
from thinkwell.tools.schema import Validator, explain, root_only

if TYPE_CHECKING:
    from pydantic_ai import RunContext
    from pydantic_ai.tools import Tool as PydanticTool

_UNSUPPORTED = {
    "prepare": "Offer it through get_tools(), or give a Tool with enabled=..., to decide per step",
    "sequential": 'Take it off and set tool_execution="sequential" for the turn',
}


class ReadTool(NamedTuple):
    """The parts of a pydantic-ai tool that need translation."""

    input_schema: dict[str, Any]
    execute: Callable[[Any, ToolContext], Any]
    validate: Validator


def is_pydantic_ai_tool(value: object) -> bool:
    """Whether `value` is a pydantic-ai tool, found out without importing pydantic-ai."""
    return any(
        base.__name__ == "Tool" and base.__module__ == "pydantic_ai.tools"
        for base in type(value).__mro__
    )


def takes_run_context(function: Callable[..., Any]) -> bool:
    """Whether a plain function is written for pydantic-ai: its first argument is a `RunContext`."""
    names = list(inspect.signature(function).parameters)
    hint: Any = inspect.get_annotations(function).get(names[0]) if names else None
    if isinstance(hint, str):  # written under `from __future__ import annotations`
        return hint.partition("[")[0].rpartition(".")[2] == "RunContext"
    kind = getattr(hint, "__origin__", hint)
    module = str(getattr(kind, "__module__", ""))
    return getattr(kind, "__name__", "") == "RunContext" and module.startswith("pydantic_ai")


def as_pydantic_ai_tool(function: Callable[..., Any], name: str | None) -> PydanticTool[Any]:
    """The tool that pydantic-ai makes of such a function."""
    from pydantic_ai.tools import Tool as PydanticTool

    return PydanticTool(function, name=name)


def read_pydantic_ai_tool(tool: PydanticTool[Any]) -> ReadTool:
    """Read the tool, or raise `ToolDefinitionError` for one that could not do here what it says."""
    for option, remedy in _UNSUPPORTED.items():
        if getattr(tool, option):
            raise ToolDefinitionError(
                f"The pydantic-ai tool {tool.name!r} uses `{option}`, which has no equal here. "
                f"{remedy}."
            )
    return ReadTool(
        input_schema=root_only(tool.function_schema.json_schema, tool.name),
        execute=_execute(tool),
        validate=_validator(tool),
    )


def _validator(tool: PydanticTool[Any]) -> Validator:
    validator = tool.function_schema.validator

    def validate(value: dict[str, Any]) -> dict[str, Any]:
        from pydantic import ValidationError

        try:
            # As JSON, so that strict types accept what JSON can only write as text.
            return validator.validate_json(json.dumps(value))
        except ValidationError as error:
            raise ToolInputError(tool.name, "; ".join(explain(error))) from None

    return validate


def _execute(tool: PydanticTool[Any]) -> Callable[[Any, ToolContext], Any]:
    async def execute(value: dict[str, Any], ctx: ToolContext) -> Any:
        from pydantic_ai.exceptions import ApprovalRequired, CallDeferred

        run = _run_context(tool, ctx)
        try:
            await _check_arguments(tool, value, run)
            return _plain_result(await tool.function_schema.call(value, run))
        except (ApprovalRequired, CallDeferred) as error:
            raise ToolError(
                f"Tool {tool.name!r} raised {type(error).__name__}, which cannot be waited for "
                "once the tool runs. Declare it with requires_approval=True."
            ) from error

    return execute


async def _check_arguments(
    tool: PydanticTool[Any], value: Mapping[str, Any], run: RunContext[Any]
) -> None:
    if tool.args_validator is None:
        return
    checked = tool.args_validator(run, **value)
    if inspect.isawaitable(checked):
        await checked


def _run_context(tool: PydanticTool[Any], ctx: ToolContext) -> RunContext[Any]:
    from pydantic_ai import RunContext
    from pydantic_ai.usage import RunUsage

    return RunContext(
        deps=ctx.runtime_context,
        # Nothing, rather than a model that would give made-up answers to a tool that asks it.
        model=cast("Any", None),
        usage=RunUsage(),
        tool_call_id=ctx.tool_call_id,
        tool_name=ctx.tool_name,
        run_step=ctx.step_number,
        tool_call_approved=tool.requires_approval,
    )


def _plain_result(result: Any) -> Any:
    """The result the model gets; what the tool says beside it comes along under its own key."""
    from pydantic_ai.messages import ToolReturn

    if not isinstance(result, ToolReturn):
        return result
    value: Any = result.return_value
    return value if result.content is None else {"result": value, "content": result.content}
