"""Which events a subscriber hears: by name, by class, by agent (pure).

What could never be heard is refused here, with the right form: a subscription that stays silent
looks like a program in which nothing happens.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from fnmatch import fnmatchcase
from typing import Any, TypeAlias

from thinkwell.core.bus_event import BusEvent
from thinkwell.core.events import TYPES
from thinkwell.core.spelling import did_you_mean

Filter: TypeAlias = Callable[[BusEvent], bool]
"""Whether an event is wanted."""

_WILDCARD = re.compile(r"[*?\[]")
_FIRST_WORD = re.compile(r"\w*")


def filter_of(patterns: Collection[Any], agent: Any, served: Collection[str] | None) -> Filter:
    """What is wanted. `served`: the classes of agents there are, as in URLs; None: any."""
    names = tuple(_checked_name(each) for each in patterns if isinstance(each, str))
    classes = tuple(_checked_class(each) for each in patterns if not isinstance(each, str))
    if agent is not None:
        _check_agent(agent, served)

    def hears(event: BusEvent) -> bool:
        if agent is not None and event.agent != agent:
            return False
        if not patterns or isinstance(event, classes):
            return True
        return any(fnmatchcase(event.type, name) for name in names)

    return hears


def _checked_name(pattern: str) -> str:
    # An event of an app's own begins with a word of its own; what begins with ours must be one.
    word = _FIRST_WORD.match(pattern)
    ours = word is not None and any(name.startswith(f"{word[0]}:") for name in TYPES)
    literal = _WILDCARD.search(pattern) is None
    if (ours or (literal and ":" not in pattern)) and not _names_one_of_ours(pattern):
        near = did_you_mean(pattern, TYPES) or (
            ' Give a name such as "hook:error", a pattern such as "chat:*", or a class such as '
            f"HookFailed itself, not its name. Events are: {', '.join(sorted(TYPES))}."
        )
        raise ValueError(f"There is no event {pattern!r}.{near}")
    return pattern


def _names_one_of_ours(pattern: str) -> bool:
    return any(fnmatchcase(name, pattern) for name in TYPES)


def _checked_class(pattern: Any) -> type[BusEvent]:
    if isinstance(pattern, type) and issubclass(pattern, BusEvent):
        return pattern
    shown = pattern.__name__ if isinstance(pattern, type) else f"{pattern!r:.100}"
    raise TypeError(
        f'{shown} is no event. Give a name such as "hook:error", or a class of thinkwell.events; '
        "without any, all events are heard."
    )


def _check_agent(agent: Any, served: Collection[str] | None) -> None:
    example = next(iter(served or ()), "clerk")
    if not isinstance(agent, str):
        raise TypeError(
            f"agent={agent!r:.100} is no text. Write class and name as in URLs: "
            f'agent="{example}/default".'
        )
    kind, _, name = agent.partition("/")
    if not kind or not name:
        raise ValueError(
            f"agent={agent!r} is not `class/name`. Write the class as in URLs, and the name: "
            f'agent="{kind if served and kind in served else example}/default".'
        )
    if served is not None and kind not in served:
        near = did_you_mean(kind, served)
        raise ValueError(
            f"agent={agent!r}: this app serves no {kind!r}, only {', '.join(map(repr, served))} "
            f"(the names of its classes in URLs).{near}"
        )
