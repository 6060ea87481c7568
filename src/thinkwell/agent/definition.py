"""What a class body must not do: checked when the class is made; the error says what to write."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any, cast

from thinkwell.agent.rpc import rpc_methods
from thinkwell.agent.state import check_initial, check_initial_fits, shape_of
from thinkwell.core.budgets import read_budgets
from thinkwell.core.errors import AgentDefinitionError, ConfigurationError
from thinkwell.core.spelling import did_you_mean
from thinkwell.features.schedules.marks import check_scheduled_methods
from thinkwell.features.schedules.retries import is_retry
from thinkwell.hooks import recovery, values
from thinkwell.hooks.arity import is_callable_as, takes_event, written
from thinkwell.hooks.class_names import hooks_of, is_ours, refuse_useless_names, settings_of_class
from thinkwell.hooks.former_names import hint, refuse_former
from thinkwell.hooks.registry import ALIASES, hook_mark
from thinkwell.hooks.rpc import is_rpc
from thinkwell.hooks.seats import features_of, left_out
from thinkwell.hooks.time_limits import limits_of
from thinkwell.messages.message import BUDGET_TOOL
from thinkwell.tools.tool import expiring_tools, is_tool, read_tools
from thinkwell.turn.ask.policy import STRATEGIES, read_policy
from thinkwell.wire.naming import kebab_case

EXPIRES = "approvals"
"""The feature whose job ends questions that nobody answers."""
_NAME = re.compile(r"^[a-z0-9][a-z0-9-]*$")
_VALUES: Mapping[str, values.ValueKind] = {
    "chat_recovery": recovery.SETTING,
    "chat_stream_stall_timeout": values.SECONDS,
    "expose_errors": values.YES_NO,
    "hydration_byte_budget": values.whole(0),
    "max_retries": values.whole(0),
    "max_steps": values.whole(1),
    "max_tool_output_chars": values.whole(1),
    "max_turn_chain": values.whole(0),
    "model": values.ValueKind(
        lambda value: not isinstance(value, type | int | float | Mapping),
        'a name such as "openai-chat:gpt-4o-mini", or a model object',
    ),
    "on_max_steps": values.ON_MAX_STEPS,
    "retry_options": values.ValueKind(is_retry, "`RetryOptions(max_attempts=5)`"),
    "send_identity_on_connect": values.YES_NO,
    "send_reasoning": values.YES_NO,
    "store_reasoning": values.YES_NO,
    "strict_hooks": values.YES_NO,
    "system_prompt": values.TEXT,
    "tool_execution": values.TOOL_EXECUTION,
}
"""What settings must be. The others may be anything, or are read by those who use them."""
_BETTER = {
    "caller": "It is the connection that is served; give yours another name.",
    "name": 'The name of the class is written `class {cls}(Think, name="{name}")`.',
    "state": "The state an agent begins with is `initial_state = ...`.",
}
"""What those meant who give a value to something that an agent has already."""


def class_name_of(cls: type, given: str | None) -> str:
    """The stable name of an agent class: its identity in the store and its place in URLs."""
    name = kebab_case(cls.__name__) if given is None else given
    if not isinstance(cast("object", name), str) or not _NAME.match(name):
        raise AgentDefinitionError(
            f"{name!r} cannot be the name of {cls.__name__}: use lower-case letters, digits and "
            f'dashes, for example `class {cls.__name__}(Think, name="assistant")`.'
        )
    if name == "sub":
        raise AgentDefinitionError("The agent name 'sub' is reserved for addresses of sub-agents.")
    return name


def unknown_options(cls: type, options: Collection[str]) -> AgentDefinitionError:
    """The error for what stands in the class line and nobody understands."""
    option = min(options)
    near = did_you_mean(option, ("name", "own_names"))
    return AgentDefinitionError(
        f"`class {cls.__name__}(..., {option}=...)` has no meaning.{near} A class line takes "
        "`name` and `own_names`; settings stand in the class body."
    )


def missing_member(agent: object, member: str) -> AttributeError:
    """The error for something that an agent does not have, or has only while it is awake."""
    cls = type(agent)
    if any(
        is_ours(base) and member in vars(base).get("__annotations__", ()) for base in cls.__mro__
    ):
        return AttributeError(
            f"{cls.__name__}() is not awake: made by hand, it has no conversation, state or "
            f"storage. Write `async with App(agents=[{cls.__name__}]) as app:` and use "
            f"`app.agent({cls.__name__})`, or `create_agent(...)`."
        )
    text = f"{cls.__name__!r} object has no attribute {member!r}.{hint(member)}"
    return AttributeError(text.rstrip("."), name=member, obj=agent)


def check_class(cls: type, own_names: Collection[str] = ()) -> None:
    """Refuse a class that would break silently later.

    `own_names` are names in its body that are near misses on purpose.
    """
    if "__init__" in vars(cls):
        raise AgentDefinitionError(
            f"{cls.__name__} defines __init__, but agents are woken by the host and take no "
            "arguments. Set things up in `async def on_start(self)` instead."
        )
    shape_of(cls)  # raises for a type in quotes
    check_initial(cls)
    for alias in ALIASES.keys() & vars(cls).keys():
        raise AgentDefinitionError(
            f"{cls.__name__}.{alias} would never be called: as a method the moment is named "
            f"{ALIASES[alias]!r}. {alias!r} works with `add_hook` and `@hook`."
        )
    for name, member in vars(cls).items():
        base = next((base for base in cls.__mro__[1:] if name in vars(base)), None)
        if base is not None:
            _check_hiding(cls, base, name, member)
    _check_values(cls)
    if not is_ours(cls):
        _check_methods(cls)
        check_scheduled_methods(cls, has_default_zone=_has_default_zone(cls))
        refuse_useless_names(cls, own_names)
    own = rpc_methods(cls)
    features = features_of(cls)
    refuse_former(cls, vars(cls), {feature.name for feature in features})
    _check_expiry(cls)
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


def _check_expiry(cls: type) -> None:
    """Without the feature whose job ends them, questions would wait past their time."""
    if not left_out(cls, EXPIRES):
        return
    where = next((f"the tool {name!r}" for name in expiring_tools(cls)), None)
    limits: Any = getattr(cls, "time_limits", None)
    if isinstance(limits, Mapping) and cast("Mapping[str, Any]", limits).get("approval"):
        where = 'time_limits["approval"]'
    if where is not None:
        raise AgentDefinitionError(
            f"{cls.__name__} leaves out the feature {EXPIRES!r}, which ends questions that expire, "
            f'but {where} has questions expire. Remove Without("{EXPIRES}"), or let them wait for '
            "ever."
        )


def _has_default_zone(cls: type) -> bool:
    """Whether somebody says what zone tasks without one are in: only an agent awake is asked."""
    owner = next((base for base in cls.__mro__ if "get_default_timezone" in vars(base)), None)
    return owner is not None and not is_ours(owner)


def check_served(cls: type, features: Iterable[object]) -> None:
    """Refuse a class whose types are wrong, before an agent of it wakes.

    When a class is made, a type that it names may still stand further down in the file.
    """
    for owner in (cls, *map(type, features)):
        read_tools(owner)
    check_initial_fits(cls)


def _check_values(cls: type) -> None:
    for setting in settings_of_class(cls):
        value = vars(cls).get(setting)
        if inspect.isfunction(value):
            raise AgentDefinitionError(_no_method(cls, setting))
        kind = _VALUES.get(setting)
        # A property, or another descriptor, gives its value later.
        if setting in vars(cls) and kind is not None and not hasattr(value, "__get__"):
            problem = values.problem_with(value, kind)
            if problem is not None:
                raise AgentDefinitionError(f"{cls.__name__}.{setting} {problem}")
    _check_budget(cls)
    policy = vars(cls).get("message_concurrency", "queue")
    if not hasattr(policy, "__get__"):
        try:
            read_policy(policy)
        except ConfigurationError as error:
            near = did_you_mean(policy, STRATEGIES) if isinstance(policy, str) else ""
            raise AgentDefinitionError(f"{cls.__name__}.{error}{near}") from None


def _check_budget(cls: type) -> None:
    """What is no budget, and a tool by the name with which budgets ask."""
    given = vars(cls).get("budget", ())
    if not given or hasattr(given, "__get__"):
        return
    try:
        budgets = read_budgets(given, f"{cls.__name__}.budget")
    except ConfigurationError as error:
        raise AgentDefinitionError(str(error)) from None
    asks = any(budget.on_breach == "ask" for budget in budgets)
    if asks and is_tool(vars(cls).get(BUDGET_TOOL)):
        raise AgentDefinitionError(
            f"{cls.__name__}.{BUDGET_TOOL} has the name with which a budget asks for more. Name "
            "the tool differently."
        )


def _no_method(cls: type, setting: str) -> str:
    getter = f"get_{setting}"
    instead = f"`def {getter}(self)`" if hasattr(cls, getter) else f"`{setting} = ...`"
    return f"{cls.__name__}.{setting} is a method, but a setting is a value. Write {instead}."


def _check_methods(cls: type) -> None:
    """Hooks are called with what they are given, tools with `self`."""
    hooks = hooks_of(cls)
    for name, member in vars(cls).items():
        if isinstance(member, property) and (is_tool(member.fget) or hook_mark(member.fget)):
            raise AgentDefinitionError(
                f"{cls.__name__}.{name} is a property, so its mark does nothing. Leave out "
                "`@property`: tools and hooks are methods."
            )
        if not inspect.isfunction(member):
            continue
        if name in hooks and not is_callable_as(member, name, hooks[name]):
            raise AgentDefinitionError(
                f"{cls.__name__}.{name}{inspect.signature(member)} cannot be called: it is given "
                f"other arguments. Write `{written(member, name, hooks[name])}`."
            )
        mark = hook_mark(member)
        if mark is not None and not takes_event(partial(member, None), mark[0]):
            raise AgentDefinitionError(
                f"{cls.__name__}.{name}{inspect.signature(member)} cannot be called at "
                f"{mark[0]!r}. Write `def {name}(self, ctx)`."
            )
        if is_tool(member) and _lacks_self(member):
            raise AgentDefinitionError(
                f"The tool {cls.__name__}.{name} has no `self`. Write it as the first parameter, "
                "or `@staticmethod` above `@tool`."
            )


def _lacks_self(method: Callable[..., Any]) -> bool:
    """Whether the first parameter, which gets the agent, is there for something else."""
    first = next(iter(inspect.signature(method).parameters.values()), None)
    if first is None:
        return True
    return first.name != "self" and first.annotation is not first.empty


def _check_time_limits(cls: type, limits: Mapping[str, Any]) -> None:
    try:
        limits_of(limits)
    except ConfigurationError as error:
        raise AgentDefinitionError(f"{cls.__name__}.time_limits is wrong. {error}") from error


def _check_hiding(cls: type, base: type, name: str, member: Any) -> None:
    """A tool or a call may take the place of one of its kind only, a value not of a method."""
    if is_ours(base) and not callable(member) and not hasattr(member, "__get__"):
        hidden = vars(base)[name]
        if isinstance(hidden, property) or inspect.isfunction(hidden):
            better = _BETTER.get(name, "Give yours another name, or write a method.")
            better = better.format(cls=cls.__name__, name=member)
            raise AgentDefinitionError(
                f"{cls.__name__}.{name} = {member!r:.50} would hide {base.__name__}.{name}. "
                f"{better}"
            )
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
