"""What a feature brings, read and checked: a wrong shape is told by what to write instead (pure).

Methods that say it themselves, with `@hook`, with `@rpc` or by the name of a hook, are found here;
nobody has to list them again. Those with `@tool` are what `Feature.tools` returns.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple, cast

from thinkwell.core.errors import AgentDefinitionError
from thinkwell.hooks.class_names import is_ours, refuse_misspelt_event
from thinkwell.hooks.feature import Feature, Without
from thinkwell.hooks.jobs import JobHandler
from thinkwell.hooks.registry import ALIASES, EVENTS, hook_mark
from thinkwell.hooks.rpc import is_rpc, mark_of
from thinkwell.tools.tool import is_tool

_FORMS = {
    "tools": '`{"take_note": self.take_note}`',
    "hooks": '`{"on_turn_start": self.remember}`',
    "calls": '`{"readNotes": self.read}`',
    "jobs": '`{"send": self.send}`',
    "page": '`{"title": "Notes"}`',
    "routes": '`[Route("GET", "notes", self.read)]`',
    "greet": "a list of frames, which are texts",
    "prompt": "a text, or None",
}
"""What each method returns."""
_LISTS = ("routes", "greet")


def listed(features: Any, where: str) -> tuple[Any, ...]:
    """What stands in a list of features. Raises `AgentDefinitionError` if it is no list."""
    if isinstance(features, Feature | Without | type):
        name = features.__name__ if isinstance(features, type) else type(features).__name__
        raise AgentDefinitionError(
            f"{where} is {name} alone. Write a list: `features = [{name}(...)]`."
        )
    if isinstance(features, str | Mapping) or not isinstance(features, Iterable):
        raise AgentDefinitionError(
            f"{where} is {features!r}. Write a list of features: `features = [Notes()]`."
        )
    return tuple(cast("Iterable[Any]", features))


def checked(method: str, value: Any) -> Any:
    """What a method of a feature returned. Raises `TypeError` if it is something else."""
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()  # or Python complains that nobody awaited it
        raise TypeError(
            f"{method}() is async, and it is asked where nobody can wait. Write `def {method}(...)`"
            ", and read what it needs in `on_boot` or in a hook."
        )
    if not _fits(method, value):
        raise TypeError(f"{method}() returned {value!r:.100}. Return {_FORMS[method]}.")
    return value


def _fits(method: str, value: Any) -> bool:
    if method == "prompt":
        return value is None or isinstance(value, str)
    if method in _LISTS:
        return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)
    return isinstance(value, Mapping)


def check_jobs(jobs: Mapping[str, JobHandler]) -> None:
    """Refuse handlers that no job could call. Raises `TypeError`."""
    for name, handler in jobs.items():
        try:
            inspect.signature(handler).bind("payload", "ctx")
        except (TypeError, ValueError) as error:
            what = getattr(handler, "__qualname__", repr(handler))
            raise TypeError(
                f"the job {name!r} is done by {what}, which cannot be called with (payload, ctx): "
                f"{error}. Write `async def {name}(self, payload, ctx)`"
            ) from error


# What stands on the methods themselves


class MarkedHook(NamedTuple):
    """A method that is called at a moment of every turn."""

    attribute: str
    event: str
    timeout: float | None


class Marks(NamedTuple):
    """The methods of a feature that need not be listed."""

    hooks: tuple[MarkedHook, ...]
    calls: Mapping[str, str]
    """By the name that clients use."""
    tools: bool
    """Whether there are any; `Feature.tools` binds them."""


@lru_cache(maxsize=1024)  # an agent that wakes would look through all members again
def marks_of(cls: type[Feature]) -> Marks:
    """What is marked in a class. Raises `AgentDefinitionError` where it could mean nothing."""
    members: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        members.update(vars(base))
    hooks: list[MarkedHook] = []
    calls: dict[str, str] = {}
    for attribute, member in members.items():
        function = getattr(member, "__func__", member)  # a static or class method hides it
        if (mark := hook_mark(function)) is not None:
            hooks.append(MarkedHook(attribute, *mark))
        elif attribute in EVENTS and callable(function):
            hooks.append(MarkedHook(attribute, attribute, None))
        elif attribute in ALIASES and callable(function):
            raise AgentDefinitionError(
                f"{cls.__name__}.{attribute} would never be called: as a method the moment is "
                f"named {ALIASES[attribute]!r}. {attribute!r} works in `hooks()` and with `@hook`."
            )
        elif not is_ours(cls):
            refuse_misspelt_event(cls, attribute, member)
        if is_rpc(function):
            name = mark_of(function, attribute).name
            if name in calls:
                raise AgentDefinitionError(
                    f"{cls.__name__}.{calls[name]} and {cls.__name__}.{attribute} are both called "
                    f'{name!r} by clients. Give one another name: `@rpc(name="...")`.'
                )
            calls[name] = attribute
    return Marks(tuple(hooks), calls, any(is_tool(member) for member in members.values()))
