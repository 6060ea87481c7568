"""The record of a tool and the ways to make one (spec/02 §9.1).

`@tool` only marks a function: it stays callable as written, and its schema is read when an agent is
first put together, once per function. `bind_tools` gives the tools of one agent instance, `as_tool`
takes a plain function, `from_json_schema` takes a ready schema. Who may call which tool, and when,
is decided in `turn`.

Contract of `Tool.execute(input, ctx)`: called once per run with the value `validate` returned. It
may return a value, an awaitable, or an async iterator whose items are preliminary results. It may
raise; the text of the error goes to the model.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias, TypeVar, overload

from thinkwell.core.errors import ToolDefinitionError
from thinkwell.tools.context import ToolContext
from thinkwell.tools.docstring import summary
from thinkwell.tools.schema import (
    SignatureSchema,
    Validator,
    from_signature,
    root_only,
    shallow_validator,
)

Effect = Literal["pure", "idempotent", "once"]
Execute: TypeAlias = "Callable[[Any, ToolContext], Any]"
F = TypeVar("F", bound=Callable[..., Any])

_EFFECTS = ("pure", "idempotent", "once")
_NAME = re.compile(r"[a-zA-Z0-9_-]+")
_MARK = "__thinkwell_tool__"


@dataclass(frozen=True, kw_only=True, slots=True)
class Tool:
    """One tool a model may call."""

    name: str
    """What the model calls it: letters, digits, `_` and `-`."""
    description: str
    """What the model is told about it."""
    input_schema: Mapping[str, Any]
    """JSON schema of the arguments; an object at the top."""
    execute: Execute
    """The handler. See the contract in the module docstring."""
    validate: Validator
    """Arguments in, the value for `execute` out; raises `ToolInputError`."""
    effect: Effect = "once"
    """Whether it may run again after a crash (spec/04 §15.1)."""
    timeout: float | None = None
    """Seconds a call may take; None means no limit."""
    blocking: bool = False
    """Whether `execute` would hold up the event loop and so runs in a thread."""

    def __post_init__(self) -> None:
        """Refuse what no model could be offered."""
        if not _NAME.fullmatch(self.name):
            raise ToolDefinitionError(
                f"{self.name!r} is no tool name. Use letters, digits, '_' and '-', "
                'for example @tool(name="get_weather").'
            )
        if self.effect not in _EFFECTS:
            raise ToolDefinitionError(
                f"Tool {self.name!r} has effect={self.effect!r}. Use one of {', '.join(_EFFECTS)}."
            )
        if self.timeout is not None and self.timeout <= 0:
            raise ToolDefinitionError(
                f"Tool {self.name!r} has timeout={self.timeout}. Give seconds above 0, or None."
            )


class _Mark:
    """What `@tool` leaves on a function: the options, and the schema once it was read."""

    __slots__ = ("description", "effect", "inline", "name", "schema", "timeout")

    def __init__(
        self,
        *,
        name: str | None = None,
        description: str | None = None,
        effect: Effect = "once",
        timeout: float | None = None,
        inline: bool = False,
    ) -> None:
        self.name = name
        self.description = description
        self.effect: Effect = effect
        self.timeout = timeout
        self.inline = inline
        self.schema: SignatureSchema | None = None


@overload
def tool(function: F, /) -> F: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    effect: Effect = "once",
    timeout: float | None = None,
    inline: bool = False,
) -> Callable[[F], F]: ...
def tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Offer a method of an agent, or a plain function, to the model.

    The name, the docstring's first paragraph, its `Args:` section and the annotations become what
    the model sees. A parameter annotated `ToolContext` gets the call's context. An ordinary
    function runs in a thread unless `inline=True`; an async generator streams preliminary results.
    `effect` says whether a call may be repeated after a crash: `"pure"`, `"idempotent"` or `"once"`
    (the default: never).
    """
    if function is not None:
        return _mark(function, _Mark())
    return partial(_mark, mark=_Mark(**options))


def is_tool(member: object) -> bool:
    """Whether a member of a class body, as found in `vars(cls)`, is decorated with `@tool`."""
    return _mark_of(getattr(member, "__func__", member)) is not None


def bind_tools(agent: object) -> dict[str, Tool]:
    """The decorated methods of an agent, bound to it, by tool name.

    The nearest definition along the MRO decides: an override without `@tool` is no tool any more.
    """
    tools: dict[str, Tool] = {}
    owners: dict[str, str] = {}
    for attribute, member in _nearest_members(type(agent)).items():
        function = getattr(member, "__func__", member)  # a static or class method hides it
        mark = _mark_of(function)
        if mark is None:
            continue
        call = getattr(agent, attribute)
        made = _make(function, mark, call=call, skip_first=not isinstance(member, staticmethod))
        if made.name in tools:
            raise ToolDefinitionError(
                f"{owners[made.name]} and {attribute} of {type(agent).__name__} are both tools "
                f"named {made.name!r}. Give one another name: @tool(name=...)."
            )
        tools[made.name] = made
        owners[made.name] = attribute
    return tools


def as_tool(value: Tool | Callable[..., Any]) -> Tool:
    """A plain function, decorated or not, as a tool; a `Tool` comes back as it is."""
    if isinstance(value, Tool):
        return value
    function = getattr(value, "__func__", value)
    if not inspect.isfunction(function):
        raise ToolDefinitionError(f"{value!r} is neither a function nor a Tool.")
    mark = _mark_of(function) or _Mark()
    return _make(function, mark, call=value, skip_first=inspect.ismethod(value))


def from_json_schema(
    name: str,
    description: str,
    schema: Mapping[str, Any],
    execute: Execute,
    *,
    effect: Effect = "once",
    timeout: float | None = None,
    inline: bool = False,
) -> Tool:
    """A tool with a ready JSON schema; `execute` gets the arguments as a shallowly checked dict."""
    input_schema = root_only(schema, name)
    return Tool(
        name=name,
        description=description,
        input_schema=input_schema,
        execute=execute,
        validate=shallow_validator(input_schema, name),
        effect=effect,
        timeout=timeout,
        blocking=_is_blocking(execute, inline=inline),
    )


def _mark(function: Callable[..., Any], mark: _Mark) -> Callable[..., Any]:
    if not inspect.isfunction(function):
        raise ToolDefinitionError(
            f"@tool was put on {function!r}. It goes directly on a function: "
            "write @staticmethod or @classmethod above @tool, not below."
        )
    if inspect.isgeneratorfunction(function):
        raise ToolDefinitionError(
            f"Tool {function.__name__!r} is a generator. To stream preliminary results write "
            f"`async def {function.__name__}(...)` with `yield`."
        )
    setattr(function, _MARK, mark)
    return function


def _mark_of(function: object) -> _Mark | None:
    mark = getattr(function, _MARK, None) if inspect.isfunction(function) else None
    return mark if isinstance(mark, _Mark) else None


def _nearest_members(owner: type) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for base in reversed(owner.__mro__):
        members.update(vars(base))
    return members


def _make(
    function: Callable[..., Any], mark: _Mark, *, call: Callable[..., Any], skip_first: bool
) -> Tool:
    name = mark.name or function.__name__
    if mark.schema is None:
        mark.schema = from_signature(function, name, skip_first=skip_first)
    return Tool(
        name=name,
        description=mark.description if mark.description is not None else summary(function),
        input_schema=mark.schema.input_schema,
        execute=_with_keywords(call, mark.schema.context_parameter),
        validate=mark.schema.validate,
        effect=mark.effect,
        timeout=mark.timeout,
        blocking=_is_blocking(function, inline=mark.inline),
    )


def _with_keywords(call: Callable[..., Any], context_parameter: str | None) -> Execute:
    def execute(value: dict[str, Any], ctx: ToolContext) -> Any:
        if context_parameter is None:
            return call(**value)
        return call(**value, **{context_parameter: ctx})

    return execute


def _is_blocking(function: Callable[..., Any], *, inline: bool) -> bool:
    return not (
        inline or inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
    )
