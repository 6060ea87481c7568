"""What is wrong with a tool where it is written: the error shows what to write instead.

Options that would do nothing, or not what they say, are refused. Of a tool that works, but that a
model knows too little about, there is one warning, with its place.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, cast
from warnings import warn_explicit

from thinkwell.core.errors import ToolDefinitionError
from thinkwell.core.spelling import did_you_mean

_NAME: Final = re.compile(r"[a-zA-Z0-9_-]+")
_EFFECTS: Final = ("pure", "idempotent", "once", "tx")


def _is_time(value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return value is None or (number and value > 0)


def _is_function(value: Any) -> bool:
    return value is None or callable(value)


_WANTED: Final[Mapping[str, tuple[Callable[[Any], bool], str]]] = {
    "effect": (lambda value: value in _EFFECTS, f"Use one of {', '.join(_EFFECTS)}."),
    "timeout": (_is_time, "Give seconds above 0, or None."),
    "needs_approval": (
        lambda value: isinstance(value, bool) or callable(value),
        "Give True, False, or a function of the input and the context.",
    ),
    "approval_expires": (_is_time, "Give seconds above 0, or None."),
    "to_model_output": (_is_function, "Give a function of the output."),
    "enabled": (_is_function, "Give a function without arguments."),
    "description": (lambda value: isinstance(value, str | None), "Give a text."),
    "title": (lambda value: isinstance(value, str | None), "Give a text."),
    "metadata": (lambda value: isinstance(value, Mapping | None), "Give values by name."),
}
"""What options must be, and what to write instead."""


def check_name(name: Any) -> None:
    """Refuse a name that models cannot call."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ToolDefinitionError(
            f"{name!r} is no tool name. Use letters, digits, '_' and '-', "
            'for example @tool(name="get_weather").'
        )


def written_as(function: Callable[..., Any], name: str) -> str:
    """A tool as it is found in the program: with its class, if it is a method."""
    owner = function.__qualname__.rpartition("<locals>.")[2].rpartition(".")[0]
    return f"{owner}.{name}" if owner else name


def check_options(name: str, options: Any, *, has_handler: bool) -> None:
    """Look at the options of a `Tool`, or of what `@tool` leaves on a function.

    Refuse values of another kind, which would fail in a turn; `approvers` that nobody would be
    asked, and a `reconcile` that is never called.
    """
    for option, (fits, wants) in _WANTED.items():
        value = getattr(options, option)
        if not fits(value):
            near = did_you_mean(value, _EFFECTS) if option == "effect" else ""
            raise ToolDefinitionError(f"Tool {name!r} has {option}={value!r:.100}. {wants}{near}")
    if options.approvers is not None:
        _check_approvers(name, options.approvers)
        if has_handler and options.needs_approval is False:
            raise ToolDefinitionError(
                f"Tool {name!r} has approvers, but runs without asking anybody. Write "
                "@tool(needs_approval=True, approvers=...)."
            )
    if options.approval_expires is not None and options.needs_approval is False:
        raise ToolDefinitionError(
            f"Tool {name!r} has approval_expires, but runs without asking anybody. Write "
            "@tool(needs_approval=True, approval_expires=3600)."
        )
    if options.reconcile is not None:
        _check_reconcile(name, options)
    if options.effect == "tx" and getattr(options, "blocking", False):
        raise ToolDefinitionError(_no_plain_tx(name))


def check_tx(function: Callable[..., Any], name: str) -> None:
    """Refuse `tx` for a function that cannot await `self.storage`."""
    waits = inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
    if not waits:
        raise ToolDefinitionError(_no_plain_tx(name))


def _no_plain_tx(name: str) -> str:
    return (
        f"Tool {name!r} has effect='tx' and is no coroutine function. Its effect is what it "
        f"writes to `self.storage`, which is awaited: write `async def {name.rpartition('.')[2]}`."
    )


_WARNED: Final[dict[str | tuple[str, type[Warning], int], int]] = {}
"""Where Python notes what it has warned about: a tool of `get_tools()` is read in every turn."""


def warn_incomplete(function: Callable[..., Any], name: str, *, described: bool) -> None:
    """Warn of a tool without a description, and of arguments without a type."""
    if not described:
        warn_at(
            function,
            f"Tool {name!r} has no description, so the model has to guess from its name. Write a "
            'docstring, or @tool(description="...").',
        )
    for parameter in list(inspect.signature(function).parameters.values()):
        plain = parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        if parameter.annotation is parameter.empty and plain and parameter.name not in _OWN:
            wanted = "ToolContext" if parameter.name in ("ctx", "context") else "str"
            warn_at(
                function,
                f"Tool {name!r} takes {parameter.name!r} without a type, so the model is not told "
                f"what to send. Write `{parameter.name}: {wanted}`, or another type.",
            )


_OWN: Final = ("self", "cls")


def warn_at(function: Callable[..., Any], text: str) -> None:
    """Warn of a function, with the place where it is written, once."""
    code = getattr(inspect.unwrap(function), "__code__", function.__code__)
    warn_explicit(text, UserWarning, code.co_filename, code.co_firstlineno, registry=_WARNED)


def _check_approvers(name: str, approvers: Any) -> None:
    if callable(approvers) or (isinstance(approvers, str) and approvers):
        return
    if isinstance(approvers, Collection) and not isinstance(approvers, str | bytes):
        ids = list(cast("Collection[Any]", approvers))
        if ids and all(isinstance(each, str) and each for each in ids):
            return
    raise ToolDefinitionError(
        f"Tool {name!r} has approvers={approvers!r}, which names nobody. Give a principal's id, "
        'several, or a function: @tool(needs_approval=True, approvers={"boss"}).'
    )


def _check_reconcile(name: str, options: Any) -> None:
    if not callable(options.reconcile):
        raise ToolDefinitionError(
            f"Tool {name!r} has reconcile={options.reconcile!r}. Give a function of the earlier "
            'call: @tool(effect="once", reconcile=find_payment).'
        )
    if options.effect != "once":
        raise ToolDefinitionError(
            f"Tool {name!r} has effect={options.effect!r}, so its calls may be repeated and "
            'reconcile is never asked. Write @tool(effect="once", reconcile=...).'
        )
