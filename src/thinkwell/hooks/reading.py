"""Reading what hooks returned: typed answers, their dict forms, and how several are merged (pure).

Unknown fields and wrong types raise a `WrongAnswerError` that names the hook and the right form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, cast, get_args

import msgspec

from thinkwell.core import json
from thinkwell.core.ids import new_id
from thinkwell.core.named_fields import unknown_field
from thinkwell.core.spelling import unknown_names
from thinkwell.core.user_code import WrongAnswerError
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
from thinkwell.hooks.contexts import Classification, ModelResponse, ResponseCall
from thinkwell.hooks.given import taken
from thinkwell.hooks.registry import Hook
from thinkwell.hooks.tool_choice import read_choice
from thinkwell.messages.given import read_messages
from thinkwell.models.base import ModelRequest

Config = TypeVar("Config", TurnConfig, StepConfig)
Struct = TypeVar("Struct", bound=msgspec.Struct)

CLASSIFICATIONS = frozenset(get_args(Classification))
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


def as_step_answer(answer: object, hook: Hook, request: ModelRequest) -> StepAnswer:
    """The answer of a `before_step` hook:

    StepConfig, `{"request": …}`, `{"response": …}` or None. A dict in the place of a request
    that brings no messages changes `request` where it names a field.
    """
    if not isinstance(answer, Mapping):
        return StepAnswer(_as_config(answer, StepConfig, hook))
    fields = dict(cast("Mapping[str, Any]", answer))
    other = _as_request(fields.pop("request", None), hook, request)
    given = fields.pop("response", None)
    response = as_response(given, hook, ModelResponse()) if given else None
    config = _as_config(fields, StepConfig, hook) if fields else None
    return StepAnswer(config, other, response)


def _as_request(given: Any, hook: Hook, base: ModelRequest) -> ModelRequest | None:
    if not given:
        return None
    # With messages it is a whole one, and tools it does not name are not offered (§13.9).
    whole = isinstance(given, Mapping) and "messages" in given
    request = _changed(given, hook, ModelRequest(messages=()) if whole else base)
    try:
        return msgspec.structs.replace(
            request,
            messages=read_messages(request.messages),
            tool_choice=read_choice(request.tool_choice),
        )
    except TypeError as error:
        raise WrongAnswerError(f"{hook.name} returned a request whose {error}") from error


def as_response(given: Any, hook: Hook, base: ModelResponse) -> ModelResponse:
    """A response as a hook gives it: whole, or a dict that changes `base` where it names a field.

    So a hook that rewrites the text leaves the calls alone.
    """
    response = _changed(given, hook, base)
    calls = tuple(_as_call(call, hook) for call in response.calls or ())
    return msgspec.structs.replace(response, calls=calls)


def _as_call(given: Any, hook: Hook) -> ResponseCall:
    """A call as `ResponseCall`, `CallInfo` or dict; its arguments as JSON text or as an object."""
    if isinstance(given, ResponseCall):
        return given
    fields = cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else _fields_of(given)
    name, arguments = fields.get("name"), fields.get("arguments", "")
    if not isinstance(name, str) or not isinstance(arguments, str | Mapping):
        raise WrongAnswerError(
            f"{hook.name} returned {given!r} as a call of a tool; write "
            '{"id": "call-1", "name": "search", "arguments": {"query": "fog"}}.'
        )
    text = arguments if isinstance(arguments, str) else json.dumps(json.to_jsonable(arguments))
    return ResponseCall(id=fields.get("id") or new_id(), name=name, arguments=text)


def _fields_of(struct: Any) -> Mapping[str, Any]:
    return msgspec.structs.asdict(struct) if isinstance(struct, msgspec.Struct) else {}


def _changed(given: Any, hook: Hook, base: Struct) -> Struct:
    """What a hook gave whole, or `base` with the fields that a dict names."""
    kind = type(base)
    if isinstance(given, kind):
        return given
    if not isinstance(given, Mapping):
        raise WrongAnswerError(
            f"{hook.name} returned {given!r} as a {kind.__name__}; give one, or a dict of the "
            "fields that change."
        )
    fields = cast("Mapping[str, Any]", given)
    unknown = ", ".join(sorted(fields.keys() - set(kind.__struct_fields__)))
    if unknown:
        known = ", ".join(kind.__struct_fields__)
        raise WrongAnswerError(
            f"{hook.name} returned a {kind.__name__} with {unknown}. Its fields are: {known}."
        )
    return msgspec.structs.replace(base, **fields)


def as_decision(answer: object, hook: Hook) -> ToolDecision | None:
    """The answer of a `before_tool_call` hook, in any of its forms (spec/02 §5.8.3)."""
    if answer is None or isinstance(answer, Allow | Block | Substitute | Fail):
        return answer
    if isinstance(answer, Mapping):
        fields = dict(cast("Mapping[str, Any]", answer))
        kind = _DECISIONS.get(fields.pop("action", ""))
        if kind is not None:
            return _decision(kind, fields, hook)
        if "error" in fields:
            return Fail(fields["error"])
        if "result" in fields:
            return Substitute(fields["result"])
        if "call" in fields:
            return Allow(_arguments(fields["call"]))
    raise WrongAnswerError(
        f"{hook.name} returned {answer!r}; return Allow(...), Block(...), Substitute(...), "
        "Fail(...) or None."
    )


def _decision(kind: type[ToolDecision], fields: dict[str, Any], hook: Hook) -> ToolDecision:
    wrong = unknown_names(kind.__name__, fields, kind.__struct_fields__)
    if wrong is not None:
        raise WrongAnswerError(f"{hook.name} returned a wrong answer: {wrong}")
    return kind(**fields)


def as_classification(answer: object) -> Classification | None:
    """A known classification, or None."""
    return cast("Classification", answer) if answer in CLASSIFICATIONS else None


def read_key(answer: object, key: str, hook: Hook) -> Any:
    """The value under the one key a hook may answer with, or None."""
    if answer is None:
        return None
    if isinstance(answer, Mapping) and key in answer:
        return cast("Mapping[str, Any]", answer)[key]
    raise WrongAnswerError(f'{hook.name} returned {answer!r}; return {{"{key}": ...}} or None.')


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
        raise WrongAnswerError(
            f"{hook.name} returned a {type(answer).__name__}; return {kind.__name__}(...), a dict "
            "or None."
        )
    config = _struct(answer, kind, hook)
    try:
        return None if config is None else taken(config)
    except TypeError as error:
        raise WrongAnswerError(f"{hook.name} returned a {kind.__name__} whose {error}") from error


def _struct(value: Any, kind: type[Struct], hook: Hook) -> Struct | None:
    if not value or isinstance(value, kind):
        return value or None
    wrong = unknown_field(kind, value)
    if wrong is not None:
        raise WrongAnswerError(f"{hook.name} returned a wrong answer: {wrong}")
    try:
        return kind(**value)
    except TypeError as error:
        raise WrongAnswerError(f"{hook.name} returned a wrong answer: {error}") from error


def _arguments(call: Any) -> Mapping[str, Any]:
    if isinstance(call, Mapping):
        return cast("Mapping[str, Any]", call)["arguments"]
    return call.arguments
