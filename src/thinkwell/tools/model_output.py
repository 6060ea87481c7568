"""What the model reads of a tool's stored output (spec/02 §9.11).

A tool may keep a compact output (a path, an id) and give the model something else each time the
conversation is sent. Owns the default (text stays text, everything else is JSON), the call of
`Tool.to_model_output` and the check of its answer. It never raises: a converter that fails leaves
the default, and the error stands on the result so that the caller can tell it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from functools import partial
from typing import Any, Literal, Protocol, TypeAlias, cast, get_args

import msgspec

from thinkwell.core import json
from thinkwell.core.user_code import call_user

ModelOutputKind: TypeAlias = Literal[
    "text", "json", "content", "error-text", "error-json", "execution-denied"
]

_KINDS = get_args(ModelOutputKind)


class ToModelOutput(Protocol):
    """Gives `{"type": ..., "value": ...}` for one stored output.

    Contract: called at every replay of the conversation, so it must be quick and give the same
    answer for the same output. It may be async and may raise.
    """

    def __call__(
        self, *, tool_call_id: str, input: Any, output: Any
    ) -> Mapping[str, Any] | Awaitable[Mapping[str, Any]]:
        """Convert one output."""
        ...


class ModelOutput(msgspec.Struct, frozen=True):
    """A tool result in the form the model gets."""

    kind: ModelOutputKind
    """How to read `value`."""
    value: Any
    """A text, JSON data, or a list of content parts."""
    error: Exception | None = None
    """Why the tool's own converter was passed over."""


def default_model_output(output: Any) -> ModelOutput:
    """Text as text, everything else as JSON."""
    return ModelOutput("text" if isinstance(output, str) else "json", output)


async def model_output(
    convert: ToModelOutput | None, *, tool_call_id: str, input: Any, output: Any
) -> ModelOutput:
    """What the model gets of `output`: by the tool's converter if it has one, else the default."""
    if convert is None:
        return default_model_output(output)
    try:
        made = partial(convert, tool_call_id=tool_call_id, input=input, output=output)
        return _checked(await call_user("to_model_output", made))
    except Exception as error:  # noqa: BLE001 - told to the caller on the result
        return ModelOutput("json", output, error)


def _checked(answer: Any) -> ModelOutput:
    given = cast("Mapping[str, Any]", answer if isinstance(answer, Mapping) else {})
    kind: Any = given.get("type")
    if kind not in _KINDS:
        raise ValueError(
            f"to_model_output returned {answer!r}. "
            f'Return {{"type": ..., "value": ...}} with one of the types {", ".join(_KINDS)}.'
        )
    value = json.to_jsonable(given.get("value", given.get("reason")))
    _check_value(kind, value)
    return ModelOutput(kind, value)


def _check_value(kind: ModelOutputKind, value: Any) -> None:
    match kind:
        case "text" | "error-text" if not isinstance(value, str):
            raise ValueError(f'to_model_output: a {kind!r} needs a string as "value"')
        case "execution-denied" if not isinstance(value, str | None):
            raise ValueError('to_model_output: an "execution-denied" needs a string or nothing')
        case "content" if not _is_content(value):
            raise ValueError('to_model_output: a "content" needs a list of parts with a "type"')
        case _:
            pass


def _is_content(value: Any) -> bool:
    if not isinstance(value, list):
        return False
    return all(
        isinstance(part, dict) and isinstance(cast("dict[str, Any]", part).get("type"), str)
        for part in cast("list[Any]", value)
    )
