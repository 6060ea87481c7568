"""Reading what hooks returned: typed answers, their dict forms, and how several are merged (pure).

Unknown fields and wrong types raise a `TypeError` that names the hook and the right form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, cast

import msgspec

from thinkwell.hooks.answers import (
    SAMPLING_FIELDS,
    Allow,
    Block,
    Fail,
    StepConfig,
    Substitute,
    ToolDecision,
    TurnConfig,
)
from thinkwell.hooks.contexts import Classification, ModelResponse
from thinkwell.hooks.given import taken
from thinkwell.hooks.registry import Hook
from thinkwell.models.base import ModelRequest

Config = TypeVar("Config", TurnConfig, StepConfig)

CLASSIFICATIONS = ("context_overflow", "rate_limit", "transient", "fatal", "unknown")
_DECISIONS = {"allow": Allow, "block": Block, "substitute": Substitute, "fail": Fail}
_MERGED_BY_KEY = ("tools", "headers")
_JOINED = ("stop_when", "transforms")


class StepAnswer(msgspec.Struct, frozen=True):
    """What one `before_step` hook wants: a patch, another request, an answer."""

    config: StepConfig | None = None
    request: ModelRequest | None = None
    response: ModelResponse | None = None


def as_turn_config(answer: object, hook: Hook) -> TurnConfig | None:
    """The answer of a `before_turn` hook."""
    return _as_config(answer, TurnConfig, hook)


def as_step_answer(answer: object, hook: Hook) -> StepAnswer:
    """The answer of a `before_step` hook:

    StepConfig, `{"request": …}`, `{"response": …}` or None.
    """
    if not isinstance(answer, Mapping):
        return StepAnswer(_as_config(answer, StepConfig, hook))
    fields = dict(cast("Mapping[str, Any]", answer))
    request = _struct(fields.pop("request", None), ModelRequest, hook)
    response = _struct(fields.pop("response", None), ModelResponse, hook)
    config = _as_config(fields, StepConfig, hook) if fields else None
    return StepAnswer(config, request, response)


def as_decision(answer: object, hook: Hook) -> ToolDecision | None:
    """The answer of a `before_tool_call` hook, in any of its forms (spec/02 §5.8.3)."""
    if answer is None or isinstance(answer, Allow | Block | Substitute | Fail):
        return answer
    if isinstance(answer, Mapping):
        fields = dict(cast("Mapping[str, Any]", answer))
        kind = _DECISIONS.get(fields.pop("action", ""))
        if kind is not None:
            return kind(**fields)
        if "error" in fields:
            return Fail(fields["error"])
        if "result" in fields:
            return Substitute(fields["result"])
        if "call" in fields:
            return Allow(_arguments(fields["call"]))
    raise TypeError(
        f"{hook.name} returned {answer!r}; return Allow(...), Block(...), Substitute(...), "
        "Fail(...) or None."
    )


def as_classification(answer: object) -> Classification | None:
    """A known classification, or None."""
    return answer if answer in CLASSIFICATIONS else None


def read_key(answer: object, key: str, hook: Hook) -> Any:
    """The value under the one key a hook may answer with, or None."""
    if answer is None:
        return None
    if isinstance(answer, Mapping) and key in answer:
        return cast("Mapping[str, Any]", answer)[key]
    raise TypeError(f'{hook.name} returned {answer!r}; return {{"{key}": ...}} or None.')


def merge(base: Config, change: Config | None) -> Config:
    """Several answers in one: the last given value wins, some are merged or joined (5.3.3)."""
    if change is None:
        return base
    given = chosen_of(change)
    for name in _MERGED_BY_KEY:
        if name in given and getattr(base, name, None):
            given[name] = {**getattr(base, name), **given[name]}
    if "provider_options" in given:
        given["provider_options"] = merge_options(base.provider_options, given["provider_options"])
    for name in _JOINED:
        if name in given:
            given[name] = (*as_list(getattr(base, name, None)), *as_list(given[name]))
    return msgspec.structs.replace(base, **given)


def chosen_of(answer: msgspec.Struct) -> dict[str, Any]:
    """The fields of an answer that say something."""
    return {
        name: value
        for name in answer.__struct_fields__
        if (value := getattr(answer, name)) is not None and value is not msgspec.UNSET
    }


def step_answer_said(answer: StepAnswer) -> dict[str, Any]:
    """What a `before_step` hook chose. A whole request or response is only named: it is stored."""
    said = {} if answer.config is None else chosen_of(answer.config)
    named = {"request": answer.request, "response": answer.response}
    return {**said, **{name: True for name, given in named.items() if given is not None}}


def decision_said(decision: ToolDecision) -> dict[str, Any]:
    """What a `before_tool_call` hook decided. A substitute is only named: it is the result."""
    return {"action": type(decision).__name__.lower(), **chosen_of(decision)}


def as_list(value: Any) -> Sequence[Any]:
    """One, several or none, as a sequence."""
    if value is None:
        return ()
    return cast("Sequence[Any]", value) if isinstance(value, list | tuple) else (value,)


def sampling_of(*configs: TurnConfig | StepConfig) -> dict[str, Any]:
    """The sampling settings of several configs, later ones winning; provider options are merged."""
    result: dict[str, Any] = {}
    for config in configs:
        for name in SAMPLING_FIELDS:
            value = getattr(config, name)
            if value is None:
                continue
            if name == "provider_options":
                value = merge_options(result.get(name), value)
            result[name] = value
    return result


def merge_options(base: Mapping[str, Any] | None, change: Mapping[str, Any]) -> dict[str, Any]:
    """Options by provider: those of one provider are merged key by key (5.3.3)."""
    result = dict(base or {})
    for name, given in change.items():
        known = result.get(name)
        both = isinstance(known, Mapping) and isinstance(given, Mapping)
        result[name] = {**cast("Mapping[str, Any]", known), **given} if both else given
    return result


def _as_config(answer: object, kind: type[Config], hook: Hook) -> Config | None:
    if answer is None:
        return None
    if not isinstance(answer, kind | Mapping):
        raise TypeError(
            f"{hook.name} returned a {type(answer).__name__}; return {kind.__name__}(...), a dict "
            "or None."
        )
    config = _struct(answer, kind, hook)
    try:
        return None if config is None else taken(config)
    except TypeError as error:
        raise TypeError(f"{hook.name} returned a {kind.__name__} whose {error}") from error


Struct = TypeVar("Struct", bound=msgspec.Struct)


def _struct(value: Any, kind: type[Struct], hook: Hook) -> Struct | None:
    if not value or isinstance(value, kind):
        return value or None
    try:
        return kind(**value)
    except TypeError as error:
        fields = ", ".join(kind.__struct_fields__)
        raise TypeError(
            f"{hook.name} returned no {kind.__name__}: {error}. Its fields are: {fields}."
        ) from error


def _arguments(call: Any) -> Mapping[str, Any]:
    if isinstance(call, Mapping):
        return cast("Mapping[str, Any]", call)["arguments"]
    return call.arguments
