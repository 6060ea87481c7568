"""The record of a tool and the ways to make one (spec/02 §9.1).

`@tool` only marks a function: it stays callable as written, and its schema is read when an agent is
first put together, once per function. `bind_tools` gives the tools of one agent instance, `as_tool`
takes a plain function or a pydantic-ai tool, `from_json_schema` a ready schema, `client_tool` the
JSON of a client, which then answers the calls. Who may call which tool, and when, is decided in
`turn`.

Contract of `Tool.execute(input, ctx)`: called once per run with the value `validate` returned. It
may return a value, an awaitable, or an async iterator whose items are preliminary results. It may
raise; the text of the error goes to the model.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, Literal, TypeAlias, TypedDict, TypeVar, Unpack, cast, overload

from thinkwell.core.authority import Approvers
from thinkwell.core.class_members import nearest_members
from thinkwell.core.errors import ToolDefinitionError, ToolInputError
from thinkwell.core.spelling import unknown_names
from thinkwell.tools.context import ToolContext
from thinkwell.tools.docstring import summary
from thinkwell.tools.model_output import ToModelOutput
from thinkwell.tools.pydantic_ai_tool import (
    as_pydantic_ai_tool,
    is_pydantic_ai_tool,
    read_pydantic_ai_tool,
    takes_run_context,
)
from thinkwell.tools.reconcile import Reconcile
from thinkwell.tools.schema import (
    SignatureSchema,
    Validator,
    check_parameters,
    check_shape,
    from_signature,
    root_only,
    shallow_validator,
)
from thinkwell.tools.tool_checks import (
    check_name,
    check_options,
    check_tx,
    warn_incomplete,
    written_as,
)

Effect = Literal["pure", "idempotent", "once", "tx"]
Execute: TypeAlias = "Callable[[Any, ToolContext], Any]"
NeedsApproval: TypeAlias = "bool | Callable[[Any, ToolContext], bool | Awaitable[bool]]"
F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R")

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
    execute: Execute | None = None
    """The handler. See the contract in the module docstring. None: the client answers."""
    validate: Validator
    """Arguments in, the value for `execute` out; raises `ToolInputError`."""
    effect: Effect = "once"
    """Whether it may run again after a crash (spec/04 §15.1)."""
    timeout: float | None = None
    """Seconds a call may take; None means no limit."""
    blocking: bool = False
    """Whether `execute` would hold up the event loop and so runs in a thread."""
    needs_approval: NeedsApproval = False
    """Whether somebody has to allow a call first; a function of the validated input decides."""
    approvers: Approvers | None = None
    """Who may approve or answer its calls, instead of whoever asked; None: the agent decides."""
    approval_expires: float | None = None
    """Seconds after which a call that nobody allowed is denied; None: the agent's
    `time_limits["approval"]`, infinity: never.
    """
    reconcile: Reconcile | None = None
    """Says what came of an earlier call with an unknown outcome; None leaves it unknown."""
    to_model_output: ToModelOutput | None = None
    """What the model reads of a stored output, if not the output itself."""
    enabled: Callable[[], bool] | None = None
    """Asked before every step and every call; False or an error hides the tool."""
    title: str | None = None
    """A name for people."""
    metadata: Mapping[str, Any] | None = None
    """For the application; the model never sees it."""

    @property
    def is_client(self) -> bool:
        """Whether the client answers its calls, because there is no handler here."""
        return self.execute is None

    def is_enabled(self) -> bool:
        """Whether it may be offered and called now."""
        return is_switched_on(self.enabled)

    def __post_init__(self) -> None:
        """Refuse what no model could be offered."""
        check_name(self.name)
        check_switch(self.enabled, f"Tool {self.name!r}")
        check_options(self.name, self, has_handler=self.execute is not None)


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """The `execute` of a tool that is a function: the input is its keywords."""

    function: Callable[..., Any]
    context_parameter: str | None
    """What the function calls its `ToolContext`, if it has one."""

    def __call__(self, value: dict[str, Any], ctx: ToolContext) -> Any:
        """Call the function."""
        return self.hand_to(self.function, value, ctx)

    def hand_to(self, reader: Callable[..., R], value: dict[str, Any], ctx: ToolContext) -> R:
        """Call another function with the same parameters."""
        if self.context_parameter is None:
            return reader(**value)
        return reader(**value, **{self.context_parameter: ctx})

    def is_of(self, function: Callable[..., Any]) -> bool:
        """Whether this is the tool a function was made into, bound to an agent or not."""
        ours = getattr(self.function, "__func__", self.function)
        return ours is getattr(function, "__func__", function)


class ToolOptions(TypedDict, total=False):
    """What can be said about a tool beside its name, its texts and its schema. See `Tool`."""

    effect: Effect
    timeout: float | None
    needs_approval: NeedsApproval
    approvers: Approvers | None
    approval_expires: float | None
    reconcile: Reconcile | None
    to_model_output: ToModelOutput | None
    enabled: Callable[[], bool] | None
    title: str | None
    metadata: Mapping[str, Any] | None


@dataclass(kw_only=True, slots=True)
class _Mark:
    """What `@tool` leaves on a function: the options, and the schema once it was read."""

    name: str | None = None
    description: str | None = None
    effect: Effect = "once"
    timeout: float | None = None
    inline: bool = False
    needs_approval: NeedsApproval = False
    approvers: Approvers | None = None
    approval_expires: float | None = None
    reconcile: Reconcile | None = None
    to_model_output: ToModelOutput | None = None
    enabled: Callable[[], bool] | None = None
    title: str | None = None
    metadata: Mapping[str, Any] | None = None
    schema: SignatureSchema | None = field(default=None, init=False)


@overload
def tool(function: F, /) -> F: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    inline: bool = False,
    **options: Unpack[ToolOptions],
) -> Callable[[F], F]: ...
def tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Offer a method of an agent, or a plain function, to the model.

    The name, the docstring's first paragraph, its `Args:` section and the annotations become what
    the model sees. A parameter annotated `ToolContext` gets the call's context. An ordinary
    function runs in a thread unless `inline=True`; an async generator streams preliminary results.
    `effect` says whether a call may be repeated after a crash: `"pure"`, `"idempotent"` or `"once"`
    (the default: never). With `needs_approval` a person has to allow the call first.
    """
    if isinstance(cast("object", function), str):
        raise ToolDefinitionError(f"@tool({function!r}) is a text. Write @tool(name={function!r}).")
    if function is not None:
        return _mark(function, _Mark())
    wrong = unknown_names("@tool", options, [f.name for f in fields(_Mark) if f.init])
    if wrong is not None:
        raise TypeError(wrong)
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
    for attribute, (function, mark, schema) in read_tools(type(agent)).items():
        made = _make(function, mark, schema, call=getattr(agent, attribute))
        if made.name in tools:
            raise ToolDefinitionError(
                f"{owners[made.name]} and {attribute} of {type(agent).__name__} are both tools "
                f"named {made.name!r}. Give one another name: @tool(name=...)."
            )
        tools[made.name] = made
        owners[made.name] = attribute
    return tools


def read_tools(owner: type) -> dict[str, tuple[Callable[..., Any], _Mark, SignatureSchema]]:
    """The decorated methods of a class by their names there, with what their signatures say.

    Raises `ToolDefinitionError` for a signature that no model could be told.
    """
    found: dict[str, tuple[Callable[..., Any], _Mark, SignatureSchema]] = {}
    for attribute, member in nearest_members(owner).items():
        function = getattr(member, "__func__", member)  # a static or class method hides it
        mark = _mark_of(function)
        if mark is not None:
            schema = _read(function, mark, skip_first=not isinstance(member, staticmethod))
            found[attribute] = (function, mark, schema)
    return found


def expiring_tools(owner: type) -> list[str]:
    """The decorated methods of a class whose questions expire, by their names there."""
    marks = {
        name: _mark_of(getattr(member, "__func__", member))
        for name, member in nearest_members(owner).items()
    }
    return [
        name
        for name, mark in marks.items()
        if mark is not None and mark.approval_expires not in (None, float("inf"))
    ]


def as_tool(value: Tool | Callable[..., Any] | Any, name: str | None = None) -> Tool:
    """A plain function, decorated or not, or a pydantic-ai tool; a `Tool` comes back as it is.

    With `name` the model calls it that, whatever it was called where it was made.
    """
    if isinstance(value, Tool):
        return _renamed(value, name)
    if is_pydantic_ai_tool(value):
        return _renamed(_from_pydantic_ai(value), name)
    function = getattr(value, "__func__", value)
    if not inspect.isfunction(function):
        raise ToolDefinitionError(f"{value!r} is neither a function nor a Tool.")
    mark = _mark_of(function)
    if mark is None and takes_run_context(value):
        return _from_pydantic_ai(as_pydantic_ai_tool(value, name))
    if mark is None:
        warn_incomplete(function, name or function.__name__, described=bool(summary(function)))
        mark = _Mark(name=name)  # its own name may be none for a model: a lambda has none
    schema = _read(function, mark, skip_first=inspect.ismethod(value))
    return _renamed(_make(function, mark, schema, call=value), name)


def from_json_schema(
    name: str,
    description: str,
    schema: Mapping[str, Any],
    execute: Execute,
    *,
    inline: bool = False,
    **options: Unpack[ToolOptions],
) -> Tool:
    """A tool with a ready JSON schema; `execute` gets the arguments as a shallowly checked dict."""
    input_schema = root_only(schema, name)
    return Tool(
        name=name,
        description=description,
        input_schema=input_schema,
        execute=execute,
        validate=shallow_validator(input_schema, name),
        blocking=_is_blocking(execute, inline=inline),
        **options,
    )


def client_tool(name: Any, description: Any = None, parameters: Any = None) -> Tool:
    """A tool the client declares and answers, from its JSON (spec/01 §11.1).

    Nothing of it is trusted: what cannot be offered to a model raises `ToolDefinitionError`.
    """
    if not isinstance(name, str):
        raise ToolDefinitionError(f"A client tool needs a string `name`, not {name!r}.")
    if not isinstance(description, str | None):
        raise ToolDefinitionError(f"`description` of client tool {name!r} must be a string.")
    if not isinstance(parameters, Mapping | None):
        raise ToolDefinitionError(f"`parameters` of client tool {name!r} must be a JSON schema.")
    schema = root_only(cast("Mapping[str, Any]", parameters or {}), name)
    check_shape(schema, name)
    return Tool(
        name=name,
        description=description or "",
        input_schema=schema,
        validate=shallow_validator(schema, name),
    )


def is_switched_on(enabled: Callable[[], bool] | None) -> bool:
    """Ask `enabled`; an error means no (spec/02 §12.6)."""
    if enabled is None:
        return True
    try:
        return bool(enabled())
    except BaseException:  # noqa: BLE001 - what cannot say whether it is on must not be offered
        return False


def check_switch(enabled: Callable[[], bool] | None, owner: str) -> None:
    """Refuse an async `enabled`: its coroutine would always count as True."""
    if enabled is not None and inspect.iscoroutinefunction(enabled):
        raise ToolDefinitionError(
            f"`enabled` of {owner} is async. It is asked before every step: write an ordinary "
            "function that looks at something known already."
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
    name = mark.name or function.__name__
    check_name(name)
    check_options(written_as(function, name), mark, has_handler=True)
    if mark.effect == "tx":
        check_tx(function, written_as(function, name))
    check_switch(mark.enabled, f"Tool {written_as(function, name)!r}")
    check_parameters(function, name)
    warn_incomplete(function, name, described=bool(mark.description or summary(function)))
    setattr(function, _MARK, mark)
    return function


def _mark_of(function: object) -> _Mark | None:
    mark = getattr(function, _MARK, None) if inspect.isfunction(function) else None
    return mark if isinstance(mark, _Mark) else None


def _read(function: Callable[..., Any], mark: _Mark, *, skip_first: bool) -> SignatureSchema:
    if mark.schema is None:
        name = mark.name or function.__name__
        mark.schema = from_signature(function, name, skip_first=skip_first)
    return mark.schema


def _make(
    function: Callable[..., Any], mark: _Mark, schema: SignatureSchema, *, call: Callable[..., Any]
) -> Tool:
    return Tool(
        name=mark.name or function.__name__,
        description=mark.description if mark.description is not None else summary(function),
        input_schema=schema.input_schema,
        execute=FunctionCall(call, schema.context_parameter),
        validate=schema.validate,
        effect=mark.effect,
        timeout=mark.timeout,
        blocking=_is_blocking(function, inline=mark.inline),
        needs_approval=mark.needs_approval,
        approvers=mark.approvers,
        approval_expires=mark.approval_expires,
        reconcile=mark.reconcile,
        to_model_output=mark.to_model_output,
        enabled=mark.enabled,
        title=mark.title,
        metadata=mark.metadata,
    )


def _renamed(tool: Tool, name: str | None) -> Tool:
    """The tool under another name; what it says about wrong arguments has that name too."""
    if name is None or tool.name == name:
        return tool
    own = tool.validate

    def validate(value: dict[str, Any]) -> Any:
        try:
            return own(value)
        except ToolInputError as error:
            raise ToolInputError(name, error.detail) from None

    return replace(tool, name=name, validate=validate)


def _from_pydantic_ai(value: Any) -> Tool:
    read = read_pydantic_ai_tool(value)
    return Tool(
        name=value.name,
        description=value.description or "",
        input_schema=read.input_schema,
        execute=read.execute,
        validate=read.validate,
        timeout=value.timeout,
        needs_approval=value.requires_approval,
        metadata=value.metadata,
    )


def _is_blocking(function: Callable[..., Any], *, inline: bool) -> bool:
    return not (
        inline or inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
    )
