"""Answers of the hooks that may hide a value, `on_tool_result` and `on_tool_error` (spec/02 §13.3).

Nothing of the value may be told by the way they fail: neither what they returned nor what they said
when they raised is shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

import msgspec

from thinkwell.core.errors import RedactionError
from thinkwell.core.user_code import WrongAnswerError, blame
from thinkwell.hooks.contexts import ToolFailureContext, ToolSuccessContext
from thinkwell.hooks.read_only import ReadOnlyError, read_only_copy
from thinkwell.hooks.registry import Hook

ContextT = TypeVar("ContextT", ToolSuccessContext, ToolFailureContext)

_MISTAKEN = ("output", "result", "error", "value", "content", "text", "data", "response")


def for_reading(context: ContextT, **changes: Any) -> ContextT:
    """The context with data that cannot be changed in place."""
    arguments = read_only_copy(context.call.arguments)
    return msgspec.structs.replace(
        context,
        call=msgspec.structs.replace(context.call, arguments=arguments),
        original_input=read_only_copy(context.original_input),
        **changes,
    )


def read_keys(answer: object, keys: tuple[str, ...], hook: Hook) -> Mapping[str, Any]:
    """The answer of a hook that may change a result or hide it: exactly one of `keys`, or None."""
    if answer is None:
        return {}
    kind = type(answer).__name__
    given: Mapping[str, Any] = {}
    if isinstance(answer, Mapping):
        given = cast("Mapping[str, Any]", answer)
    if len(given) == 1 and next(iter(given)) in keys:
        return given
    # The answer itself must not be shown, nor its keys unless they are common mistakes: it may
    # hold the raw value.
    names = ", ".join(repr(name) for name in _MISTAKEN if name in given)
    shape = f"a {kind}" + (f" with {names}" if names else "")
    forms = " or ".join(f'{{"{key}": ...}}' for key in keys)
    raise WrongAnswerError(
        f"{hook.name} returned {shape}; return {forms} to change it, or None to leave it."
    )


def withheld(hook: Hook, error: Exception) -> RedactionError:
    """What is told of a hook that could not hide something: its type and its lines."""
    if isinstance(error, ReadOnlyError):
        text = (
            f"{hook.name} wrote into what it was given, which cannot be changed. Return the new "
            'value: `return {"result": {**ctx.result, ...}}`.'
        )
    elif isinstance(error, WrongAnswerError):
        text = str(error)
    else:
        text = (
            f"{hook.name} raised {type(error).__name__}; its text is withheld, because it may "
            "quote what the hook was to hide."
        )
    told = RedactionError(hook.name, text).with_traceback(error.__traceback__)
    if isinstance(error, WrongAnswerError):
        told.__cause__ = error  # which says that no line of the hook is at fault
    blame(told, hook.name, "hook")
    return told
