"""What a class body must not do: checked when the class is made; the error says what to write."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from thinkwell.agent.rpc import rpc_methods
from thinkwell.core.errors import AgentDefinitionError, ConfigurationError
from thinkwell.hooks.former_names import refuse_former
from thinkwell.hooks.registry import ALIASES
from thinkwell.hooks.rpc import is_rpc
from thinkwell.hooks.seats import features_of
from thinkwell.tools.tool import is_tool
from thinkwell.turn.run.settings import limits_of
from thinkwell.wire.naming import kebab_case

_NAME = re.compile(r"^[a-z0-9][a-z0-9-]*$")


def class_name_of(cls: type, given: str | None) -> str:
    """The stable name of an agent class: its identity in the store and its place in URLs."""
    name = kebab_case(cls.__name__) if given is None else given
    if not _NAME.match(name):
        raise AgentDefinitionError(
            f"{name!r} cannot be the name of {cls.__name__}: use lower-case letters, digits and "
            f'dashes, for example `class {cls.__name__}(Think, name="assistant")`.'
        )
    if name == "sub":
        raise AgentDefinitionError("The agent name 'sub' is reserved for addresses of sub-agents.")
    return name


def check_class(cls: type) -> None:
    """Refuse a class that would break silently later."""
    if "__init__" in vars(cls):
        raise AgentDefinitionError(
            f"{cls.__name__} defines __init__, but agents are woken by the host and take no "
            "arguments. Set things up in `async def on_start(self)` instead."
        )
    for alias in ALIASES.keys() & vars(cls).keys():
        raise AgentDefinitionError(
            f"{cls.__name__}.{alias} would never be called: as a method the moment is named "
            f"{ALIASES[alias]!r}. {alias!r} works with `add_hook` and `@hook`."
        )
    for name, member in vars(cls).items():
        base = next((base for base in cls.__mro__[1:] if name in vars(base)), None)
        if base is not None:
            _check_hiding(cls, base, name, member)
    own = rpc_methods(cls)
    features = features_of(cls)
    refuse_former(cls, vars(cls), {feature.name for feature in features})
    for feature in features:
        # Calls of others may need their kit: theirs are compared when an agent wakes.
        ours = type(feature).__module__.startswith("thinkwell.")
        for call in own.keys() & feature.calls().keys() if ours else ():
            raise AgentDefinitionError(
                f"Clients that call {call!r} would mean both {cls.__name__}.{own[call].__name__} "
                f'and the feature {feature.name!r}. Name yours differently: `@rpc(name="...")`.'
            )
    if isinstance(limits := vars(cls).get("time_limits", {}), Mapping):
        _check_time_limits(cls, cast("Mapping[str, Any]", limits))
    elif not hasattr(limits, "__get__"):
        raise AgentDefinitionError(
            f"{cls.__name__}.time_limits is {limits!r}. Give seconds by name, for example "
            '`time_limits = {"tool": 30}`.'
        )


def _check_time_limits(cls: type, limits: Mapping[str, Any]) -> None:
    try:
        limits_of(limits)
    except ConfigurationError as error:
        raise AgentDefinitionError(f"{cls.__name__}.time_limits is wrong. {error}") from error


def _check_hiding(cls: type, base: type, name: str, member: Any) -> None:
    """A tool or a call may take the place of one of its kind only."""
    if is_tool(member):
        raise AgentDefinitionError(
            f"The tool {cls.__name__}.{name} would hide {base.__name__}.{name}. Name the "
            f'method differently and keep the tool\'s name: `@tool(name="{name}")`.'
        )
    if is_rpc(member) and not is_rpc(vars(base)[name]):
        raise AgentDefinitionError(
            f"{cls.__name__}.{name}, marked with @rpc, would hide {base.__name__}.{name}. Name "
            f'the method differently and keep what clients call: `@rpc(name="{name}")`.'
        )
