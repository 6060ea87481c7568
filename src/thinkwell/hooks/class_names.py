"""Names in the body of an agent class that do nothing: near misses of hooks and settings, and names
that other libraries use.

Such a class works, without what was written; so it is refused, with the name that was meant. Of a
method that is more than a slip away from a hook, or another form of the same word, there is only a
warning: it may be a helper, and every hook that we add has such neighbours.

A class may have names of its own, near or not: what is marked (`@tool`, `@rpc`, `@hook`), what
cannot be called as the hook is, and what the class itself uses is left alone; `own_names=[...]` in
the class line says it of the rest.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Iterator
from functools import partial
from types import CodeType
from typing import Any, Final

from thinkwell.core.errors import AgentDefinitionError
from thinkwell.core.spelling import did_you_mean, distance, nearest
from thinkwell.hooks.arity import is_callable_as, takes, takes_event
from thinkwell.hooks.former_names import hint
from thinkwell.hooks.registry import EVENTS, hook_mark
from thinkwell.hooks.rpc import is_rpc
from thinkwell.tools.tool import is_tool
from thinkwell.tools.tool_checks import warn_at

_HOOKS: Final = ("on_", "before_", "after_", "should_", "classify_", "validate_", "authorize")
"""How methods begin that are there to be overridden; and those that begin otherwise:"""
_MORE_HOOKS: Final = (
    "configure_session",
    "get_connection_tags",
    "get_model",
    "get_system_prompt",
    "get_tools",
    "repair_interrupted_tool_part",
)
_OWN_WORDS: Final = frozenset({"mode", "modes", "models", "get_mode", "get_modes", "get_models"})
"""Common words that are one letter away from `model`."""
_WORD_ENDS: Final = ("s", "d", "ed", "ing")
"""What makes another form of a word: `get_tool` and `get_tools`."""
_ELSEWHERE: Final = {
    "instructions": '`system_prompt = "..."`',
    "prompt": '`system_prompt = "..."`',
    "system": '`system_prompt = "..."`',
    "temperature": "`return TurnConfig(temperature=0.2)` in `def before_turn(self, ctx)`",
    "tools": "`@tool` above methods of the class, or `def get_tools(self)` that returns them by "
    "name",
}
"""What other libraries call it, and what to write here."""
_VALUES_ELSEWHERE: Final = {
    "hooks": '`@hook("before_turn")` above methods of the class',
    "llm": '`model = "..."`',
    "max_output_tokens": "`return TurnConfig(max_output_tokens=500)` in `before_turn`",
    "max_tokens": "`return TurnConfig(max_output_tokens=500)` in `before_turn`",
    "output": "`run(..., output=Model)`",
    "retries": "`max_retries = 2`",
    "sys_prompt": '`system_prompt = "..."`',
    "timeout": '`time_limits = {"total": 60}`',
}
"""The same for values only: methods of these names are somebody's own."""
_HOOKS_ELSEWHERE: Final = {
    **dict.fromkeys(("after_turn", "on_turn_end", "on_turn_finish"), "on_chat_response"),
    **dict.fromkeys(("on_chat_end", "on_chat_finish", "on_finish"), "on_chat_response"),
    "on_startup": "on_start",
    "on_tool_call": "before_tool_call",
}
"""What other libraries call a hook, and ours."""


def refuse_useless_names(cls: type, own_names: Collection[str]) -> None:
    """Raise `AgentDefinitionError` for a name in the class body that was meant to do something.

    Warn of a method that may have been.
    """
    hooks, settings = hooks_of(cls), settings_of_class(cls)
    for name, member in vars(cls).items():
        if name.startswith("_") or name in own_names or _is_inherited(cls, name):
            continue
        instead = _meant(name, member, hooks, settings)
        if instead is not None and not _is_used(cls, name):
            text = (
                f"{cls.__name__}.{name} would do nothing. {instead} If the name is your own, say "
                f'so: `class {cls.__name__}(..., own_names=["{name}"])`.'
            )
            if not inspect.isfunction(member) or not _may_be_own(name, hooks):
                raise AgentDefinitionError(text)
            warn_at(member, text)


def refuse_misspelt_event(cls: type, name: str, member: Any) -> None:
    """The same for a method of a feature that was probably meant for a moment of a turn."""
    if name.startswith("_") or not inspect.isfunction(member) or is_tool(member) or is_rpc(member):
        return
    event = nearest(_snake(name), EVENTS)
    if event is None or not takes_event(partial(member, None), event) or _is_used(cls, name):
        return
    text = (
        f"{cls.__name__}.{name} would do nothing. Did you mean the hook {event!r}? If the name is "
        "your own, choose another, or begin it with an underscore."
    )
    if not _may_be_own(name, EVENTS):
        raise AgentDefinitionError(text)
    warn_at(member, text)


def instead_of(name: str, cls: type, arguments: Collection[str]) -> str:
    """What to write instead of an argument that was meant as a setting of `cls`, as a sentence."""
    settings, hooks = settings_of_class(cls), hooks_of(cls)
    if name in _ELSEWHERE:
        return f"Write {_ELSEWHERE[name]}."
    if known := hint(name) or did_you_mean(name, {*settings, *arguments}):
        return known.lstrip()
    hook = name if name in hooks else nearest(name, hooks)
    if hook is None:
        return f"Settings are: {', '.join(settings)}."
    added = f'`agent.add_hook("{hook}", ...)`, or ' if hook in EVENTS else ""
    return f"A hook is no setting. Write {added}`def {hook}(self, ...)` in a class."


def hooks_of(cls: type) -> dict[str, Any]:
    """The methods of our classes that are there to be overridden."""
    return {
        name: member
        for base in reversed(cls.__mro__)
        if is_ours(base)
        for name, member in vars(base).items()
        if inspect.isfunction(member) and (name.startswith(_HOOKS) or name in _MORE_HOOKS)
    }


def settings_of_class(cls: type) -> list[str]:
    """The settings of our classes: what they annotate and give a value."""
    ours = [base for base in cls.__mro__ if is_ours(base)]
    names = {name for base in ours for name in inspect.get_annotations(base)}
    return sorted(
        name
        for name in names
        if not name.startswith("_")
        and name != "agent_class"
        and any(name in vars(base) for base in ours)
    )


def is_ours(cls: type) -> bool:
    """Whether a class comes with the library."""
    return cls.__module__.startswith("thinkwell.")


def _meant(name: str, member: Any, hooks: dict[str, Any], settings: Collection[str]) -> str | None:
    """What was meant, as a sentence; None for a name that is somebody's own."""
    if inspect.isfunction(member):
        if name in _OWN_WORDS or is_tool(member) or is_rpc(member) or hook_mark(member):
            return None
        if name in _ELSEWHERE and takes(member, 1) and not inspect.iscoroutinefunction(member):
            return f"Write {_ELSEWHERE[name]}."
        hook = _HOOKS_ELSEWHERE.get(name) or _nearest(name, hooks)
        if hook not in hooks or not is_callable_as(member, hook, hooks[hook]):
            return None
        return f"Did you mean the hook {hook!r}?"
    instead = _ELSEWHERE.get(name) or _VALUES_ELSEWHERE.get(name)
    if instead is not None:
        return f"Write {instead}."
    if name in _OWN_WORDS or (callable(member) and not isinstance(member, property)):
        return None
    setting = _nearest(name, settings)
    return None if setting is None else f"Did you mean the setting {setting!r}?"


def _nearest(name: str, known: Collection[str]) -> str | None:
    """Also for those who write `getModel`, as it is called in TypeScript."""
    snake = _snake(name)
    return snake if snake != name and snake in known else nearest(snake, known)


def _may_be_own(name: str, hooks: Collection[str]) -> bool:
    """Whether a near miss may be a word of its own (`before_run`, `on_started`) and no slip."""
    hook = _nearest(name, hooks)
    if hook is None:
        return False
    short, long = sorted((_snake(name), hook), key=len)
    return long.removeprefix(short) in _WORD_ENDS or distance(short, long) > 1


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


def _is_inherited(cls: type, name: str) -> bool:
    return any(name in vars(base) for base in cls.__mro__[1:])


def _is_used(cls: type, name: str) -> bool:
    """Whether code of the class, or of its own bases, speaks of the name: then it is no mistake."""
    members = [
        member
        for base in cls.__mro__
        if not is_ours(base)
        for key, member in vars(base).items()
        if key != name
    ]
    return any(name in _words(code) for member in members for code in _code_of(member))


def _code_of(member: Any) -> Iterator[CodeType]:
    holders = (member, getattr(member, "__func__", None), getattr(member, "fget", None))
    for holder in holders:
        code = getattr(inspect.unwrap(holder) if callable(holder) else None, "__code__", None)
        if isinstance(code, CodeType):
            yield code


def _words(code: CodeType) -> set[str]:
    """The names and texts in a piece of code, and in the functions inside it."""
    words = {*code.co_names, *(each for each in code.co_consts if isinstance(each, str))}
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            words |= _words(inner)
    return words
