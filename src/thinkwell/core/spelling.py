"""Near misses: a name that is almost one we know (pure).

Whoever refuses an unknown name says with these which one was probably meant. Two letters may be
wrong, and never more than a third of the name: of `run`, everything short would be a near miss.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable
from functools import wraps
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])
MOST_WRONG = 2


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that `name` is almost; None if it is one of them or like none of them."""
    names = list(known)
    if name in names:
        return None
    found = [(wrong, other) for other in names if (wrong := _wrong(name, other)) is not None]
    return min(found)[1] if found else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A sentence to put behind one that says that `name` is unknown; empty if none is near."""
    meant = nearest(name, known)
    return "" if meant is None else f" Did you mean {meant!r}?"


def unknown_names(what: str, given: Iterable[str], known: Collection[str]) -> str | None:
    """What is wrong with the first given name that is not known, as a sentence; None if all are."""
    for name in given:
        if name not in known:
            near = did_you_mean(name, known) or f" There are: {', '.join(known)}."
            return f"{what} has no {name!r}.{near}"
    return None


def spelled(title: str, *, example: str = "") -> Callable[[F], F]:
    """Let a function say which keyword was meant when it is given one it does not know.

    `title` is how it is called: `App()`. Newer Pythons do so by themselves. With an `example`, it
    also says what to write when it is given nothing.
    """

    def spell(function: F) -> F:
        parameters = inspect.signature(function).parameters.values()
        known = named_parameters(function)
        named = all(p.kind in (p.KEYWORD_ONLY, p.VAR_KEYWORD) for p in parameters)
        open_ended = any(p.kind is p.VAR_KEYWORD for p in parameters)

        @wraps(function)
        def call(*args: Any, **keywords: Any) -> Any:
            if example and not args and known[0] not in keywords:
                raise TypeError(f"{title} is not told its {known[0]}. {example}")
            if args and named:
                raise TypeError(
                    f"{title} takes named arguments. Write `{known[0]}={args[0]!r:.50}`."
                )
            wrong = None if open_ended else unknown_names(title, keywords, known)
            if wrong is not None:
                raise TypeError(wrong)
            return function(*args, **keywords)

        return cast("F", call)

    return spell


def named_parameters(function: Callable[..., Any]) -> list[str]:
    """What can be given to a function by name."""
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = inspect.signature(function).parameters.values()
    return [p.name for p in parameters if p.kind in kinds and p.name != "self"]


def misspelt_keyword(
    title: str, function: Callable[..., Any], keywords: Iterable[str]
) -> str | None:
    """Which keyword was meant, after Python refused a call; None if it was refused for another
    reason, or the keyword is like none.
    """
    known = named_parameters(function)
    for name in keywords:
        if name not in known and (near := did_you_mean(name, known)):
            return f"{title} has no {name!r}.{near}"
    return None


def _wrong(name: str, other: str) -> int | None:
    """How many letters are wrong, if they are few."""
    most = min(MOST_WRONG, len(other) // 3)
    if abs(len(name) - len(other)) > most:
        return None
    wrong = distance(name, other)
    return wrong if wrong <= most else None


def distance(one: str, other: str) -> int:
    """Letters to add, drop, replace or swap with their neighbour until `one` is `other`."""
    before: list[int] = []
    last = list(range(len(other) + 1))
    for row, letter in enumerate(one, 1):
        line = [row]
        for column, match in enumerate(other, 1):
            cost = min(last[column] + 1, line[-1] + 1, last[column - 1] + (letter != match))
            swapped = row > 1 and column > 1 and letter == other[column - 2]
            if swapped and one[row - 2] == match:
                cost = min(cost, before[column - 2] + 1)
            line.append(cost)
        before, last = last, line
    return last[-1]
