"""What the values of settings must be: checked where they are written, with what to write instead.

The same kinds serve the settings of a class, `TurnConfig` and `StepConfig`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, cast

import msgspec

from thinkwell.core.errors import ConfigurationError
from thinkwell.core.spelling import did_you_mean


class ValueKind(msgspec.Struct, frozen=True):
    """A kind of value."""

    fits: Callable[[Any], bool]
    wants: str
    """What to give, as the end of a sentence."""
    choices: tuple[str, ...] = ()


def problem_with(value: Any, kind: ValueKind) -> str | None:
    """What is wrong with a value, to be read behind its name; None if nothing is."""
    if kind.fits(value):
        return None
    near = did_you_mean(value, kind.choices) if isinstance(value, str) else ""
    return f"is {value!r:.100}. Give {kind.wants}.{near}"


def returned(where: str, value: Any, kind: ValueKind) -> Any:
    """What a method returned. Raises `ConfigurationError` if it is of another kind."""
    if not kind.fits(value):
        raise ConfigurationError(f"{where} returned {value!r:.100}. Return {kind.wants}.")
    return value


def one_of(*choices: str) -> ValueKind:
    """One of a few texts."""
    named = [repr(choice) for choice in choices]
    wants = f"{', '.join(named[:-1])} or {named[-1]}"
    return ValueKind(lambda value: value in choices, wants, choices)


def whole(least: int | None = None) -> ValueKind:
    """A whole number."""

    def fits(value: Any) -> bool:
        whole = not isinstance(value, bool) and isinstance(value, Integral)
        return whole and (least is None or int(value) >= least)

    return ValueKind(fits, "a whole number" + ("" if least is None else f", {least} or more"))


def several(example: str, *, of: Callable[[Any], bool]) -> ValueKind:
    """A list of things. A text is none, though Python would take it for one."""

    def fits(value: Any) -> bool:
        if isinstance(value, str | bytes | Mapping) or not isinstance(value, Sequence | set):
            return False
        return all(of(each) for each in cast("Sequence[Any]", value))

    return ValueKind(fits, f"a list, for example {example}")


def one_or_several(example: str, *, of: Callable[[Any], bool]) -> ValueKind:
    """One thing or a list of them."""
    many = several(example, of=of)
    return ValueKind(lambda value: of(value) or many.fits(value), f"{example}, or a list of such")


def by_name(example: str, *, of: Callable[[Any], bool] | None = None) -> ValueKind:
    """A mapping."""

    def fits(value: Any) -> bool:
        if not isinstance(value, Mapping):
            return False
        return of is None or all(map(of, cast("Mapping[Any, Any]", value).values()))

    return ValueKind(fits, f"them by name, for example {example}")


def is_mapping(value: Any) -> bool:
    """Whether it is a mapping."""
    return isinstance(value, Mapping)


def is_text(value: Any) -> bool:
    """Whether it is a text."""
    return isinstance(value, str)


def is_number(value: Any) -> bool:
    """Whether it is a number; True and False are none."""
    return not isinstance(value, bool) and isinstance(value, Real)


YES_NO = ValueKind(lambda value: isinstance(value, bool), "True or False")
NUMBER = ValueKind(is_number, "a number")
SECONDS = ValueKind(lambda value: is_number(value) and value >= 0, "seconds, 0 or more")
TEXT = ValueKind(is_text, "a text")
FUNCTION = ValueKind(callable, "a function")
TOOLS = by_name('`{"search": search}`')
MODEL = ValueKind(
    lambda value: value is not None, 'a name such as `"openai-chat:gpt-4o-mini"`, or a model object'
)
ON_MAX_STEPS = one_of("stop", "error", "answer")
TOOL_EXECUTION = one_of("parallel", "sequential")


def check_fields(config: msgspec.Struct, kinds: Mapping[str, ValueKind]) -> None:
    """Raise `TypeError` for a field whose value is of another kind. None says nothing."""
    for name in config.__struct_fields__:
        value = getattr(config, name)
        if value is not None and name in kinds:
            problem = problem_with(value, kinds[name])
            if problem is not None:
                raise TypeError(f"{type(config).__name__}.{name} {problem}")
