"""Whether a function can be called as a hook is: found out where it is written, not in the turn."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final

ERROR_HOOKS: Final = ("on_chat_error", "classify_chat_error")
"""These are given the error and the context, or one of them."""


def is_callable_as(function: Callable[..., Any], name: str, hook: Callable[..., Any]) -> bool:
    """Whether `function` takes what the method `hook` of that name takes, `self` included."""
    given = len(inspect.signature(hook).parameters)
    return any(takes(function, count) for count in _counts(name, given))


def takes_event(call: Callable[..., Any], event: str) -> bool:
    """Whether `call` can be given what hooks of an event are given."""
    return any(takes(call, count) for count in _counts(event, 2 if event in ERROR_HOOKS else 1))


def takes(function: Callable[..., Any], count: int) -> bool:
    """Whether it can be called with so many arguments; True if Python cannot tell."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return True
    try:
        signature.bind(*range(count))
    except TypeError:
        return False
    return True


def written(function: Callable[..., Any], name: str, hook: Callable[..., Any]) -> str:
    """How the method should begin: `async def before_turn(self, ctx)`."""
    parameters = ", ".join(inspect.signature(hook).parameters)
    start = "async def" if inspect.iscoroutinefunction(function) else "def"
    return f"{start} {name}({parameters})"


def _counts(name: str, given: int) -> tuple[int, ...]:
    return (given, given - 1) if name in ERROR_HOOKS else (given,)
