"""What the arguments of `App` must be: checked when it is made; the error has the right call."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast, overload

from thinkwell.core.errors import ConfigurationError
from thinkwell.core.retention import Retention
from thinkwell.hooks.arity import takes
from thinkwell.models.limits import ModelLimits

if TYPE_CHECKING:
    from thinkwell.agent.agent import Agent
    from thinkwell.core.budgets import Budget
    from thinkwell.models.prices import Price
    from thinkwell.store.sqlite import Durability

F = TypeVar("F", bound=Callable[..., Any])
NumberT = TypeVar("NumberT", int, float)
SettingT = TypeVar("SettingT")

VERSION_VARIABLE: Final = "THINKWELL_APP_VERSION"
LONGEST_VERSION: Final = 200
"""Characters; it is stored with every turn."""
_FUNCTIONS: Final = {
    "auth": "lambda request, route: user_of(request)",
    "on_before_connect": "lambda request, route: None",
    "on_before_request": "lambda request, route: None",
}
"""What each function looks like."""


@overload
def collection(option: str, values: Collection[str]) -> frozenset[str]: ...
@overload
def collection(option: str, values: Collection[str] | None) -> frozenset[str] | None: ...
def collection(option: str, values: Collection[str] | None) -> frozenset[str] | None:
    """The values of an option; a single text is an error, because it is a collection too."""
    if isinstance(values, str):
        raise ConfigurationError(
            f"App({option}={values!r}) is one text. Write `App({option}=[{values!r}])`."
        )
    return None if values is None else frozenset(values)


def at_least(option: str, value: NumberT, least: int) -> NumberT:
    """A number that is not too small."""
    given = cast("object", value)
    if isinstance(given, bool) or not isinstance(given, int | float) or not given >= least:
        raise ConfigurationError(f"App({option}={given!r}) is wrong. Give {least} or more.")
    return value


def durability(value: Durability) -> Durability:
    """What a commit survives."""
    if value not in ("process", "power"):
        raise ConfigurationError(
            f'App(durability={value!r}) is unknown. Write "process" or "power".'
        )
    return value


def retention(value: Retention) -> Retention:
    """How long records are kept."""
    given = cast("object", value)
    if not isinstance(given, Retention):
        raise ConfigurationError(
            f"App(retention={given!r:.50}) is no Retention. Write "
            "`App(retention=Retention(journals=timedelta(days=7)))`."
        )
    return value


def model_limits(value: Mapping[str, ModelLimits]) -> Mapping[str, ModelLimits]:
    """Limits by pattern."""
    given = cast("object", value)
    right = '`App(model_limits={"openai:*": ModelLimits(parallel=8)})`'
    if not isinstance(given, Mapping):
        raise ConfigurationError(
            f"App(model_limits={given!r:.50}) says not which models. Write {right}."
        )
    for pattern, limits in cast("Mapping[object, object]", given).items():
        if not isinstance(limits, ModelLimits):
            raise ConfigurationError(
                f"App(model_limits={{{pattern!r}: {limits!r:.50}}}) has no ModelLimits there. "
                f"Write {right}."
            )
        if not isinstance(pattern, str) or (":" not in pattern and pattern != "*"):
            raise ConfigurationError(
                f"App(model_limits={{{pattern!r}: ...}}) matches no model: names are "
                f'"provider:model", such as "openai:gpt-5". Write {right}.'
            )
    return dict(value)


def metrics(value: SettingT) -> SettingT:
    """Whether there are metrics, and who may read them."""
    given = cast("object", value)
    if not isinstance(given, bool) and not (callable(given) and takes(given, 1)):
        raise ConfigurationError(
            f"App(metrics={given!r:.50}) is wrong. Write True, False, or a function that says who "
            'may read them: `App(metrics=lambda request: request.headers.get("x-key") == KEY)`.'
        )
    return value


def prices(value: Mapping[str, Price] | None) -> Mapping[str, Price]:
    """What the author says that models cost, by `provider:name`."""
    from thinkwell.models.prices import Price

    given = cast("object", value)
    if given is None:
        return {}
    right = isinstance(given, Mapping) and all(
        isinstance(name, str) and ":" in name and isinstance(price, Price)
        for name, price in cast("Mapping[object, object]", given).items()
    )
    if not right:
        raise ConfigurationError(
            f"App(prices={given!r:.80}) is wrong. Give a Price for each `provider:model`: "
            '`App(prices={"openai:ft:acme": Price(input=3, output=12)})`.'
        )
    return dict(cast("Mapping[str, Price]", given))


def budgets(value: Budget | Sequence[Budget]) -> tuple[Budget, ...]:
    """The budgets of all agents together."""
    if not value:
        return ()
    from thinkwell.core.budgets import read_budgets

    return read_budgets(value, "App(budget=...)")


def version(value: str | None) -> str | None:
    """The app's version, if somebody says it."""
    given = cast("object", value)
    if given is None:
        return os.environ.get(VERSION_VARIABLE) or None
    if not isinstance(given, str) or not 0 < len(given) <= LONGEST_VERSION:
        raise ConfigurationError(
            f"App(version={given!r:.50}) is no version. Give a text of 1 to {LONGEST_VERSION} "
            'characters, for example `App(version="1.4.2")`.'
        )
    return value


def installed_version(agents: Iterable[type]) -> str | None:
    """The version of the installed package that the first agent is from."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as version_of

    first = next((cls.__module__.partition(".")[0] for cls in agents), "__main__")
    try:
        return None if first == "__main__" else version_of(first)[:LONGEST_VERSION]
    except (PackageNotFoundError, ValueError):
        return None  # a file of its own, or a package under another name than its distribution


def store_url(url: str) -> str:
    """Refuse a store that nobody could open, before anything is served."""
    from thinkwell.store.open import database_file

    database_file(url)
    return url


def function(option: str, value: F | None) -> F | None:
    """An option that is called."""
    if value is not None and not callable(value):
        raise ConfigurationError(
            f"App({option}=...) is {value!r:.50}. Give a function: "
            f"`App({option}={_FUNCTIONS[option]})`."
        )
    if value is not None and not takes(value, 2):
        raise ConfigurationError(
            f"App({option}=...) cannot be called with (request, route). Write "
            f"`App({option}={_FUNCTIONS[option]})`."
        )
    return value


def agent_classes(agents: Iterable[type[Agent]]) -> tuple[type[Agent], ...]:
    """The classes to serve; one alone is no list."""
    given = cast("object", agents)
    if _is_agent_class(given):
        name = cast("type", given).__name__
        raise ConfigurationError(f"App({name}) is one class. Write a list: `App(agents=[{name}])`.")
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise ConfigurationError(
            f"App(agents=...) is {given!r:.50}. Write a list of agent classes: "
            "`App(agents=[Assistant])`."
        )
    return tuple(agents)


def names_of(agents: Sequence[type[Agent]]) -> dict[type, str]:
    """Each class with its name in URLs; two classes with one name are an error."""
    names: dict[type, str] = {}
    for cls in agents:
        if not _is_agent_class(cls):
            raise ConfigurationError(
                f"App(agents=[...]) takes agent classes, not {cls!r:.50}. "
                "Write `App(agents=[Assistant])`, where `class Assistant(Think)`."
            )
        name = cls.agent_class
        other = next((known for known, taken in names.items() if taken == name), None)
        if other is not None:
            raise ConfigurationError(
                f"{other.__name__} and {cls.__name__} are both reached as {name!r}. "
                f'Give one another name: `class {cls.__name__}(Think, name="...")`.'
            )
        names[cls] = name
    return names


def _is_agent_class(value: Any) -> bool:
    from thinkwell.agent.agent import Agent

    return isinstance(value, type) and issubclass(value, Agent)
