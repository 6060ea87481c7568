"""Structured output: the last answer of a turn as a typed value (spec/02 §8.3-8.4).

Owns the schema a model is asked to fill, the check of what came back, the choice between the ways
to ask (the provider's own response format, a hidden tool whose input is the answer, or words in the
prompt) and that tool. Sending the format, adding the tool, ending the turn and asking again belong
to `turn`.

Invariant: `json_schema` is an object at the top, because providers take nothing else; a value that
is none travels under one key and is unpacked by `parse` and `validate`.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Callable, Collection, Mapping
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Literal,
    TypeAlias,
    TypeVar,
    cast,
    get_args,
    overload,
)

from thinkwell.core import json
from thinkwell.core.errors import ConfigurationError, OutputError, ToolInputError
from thinkwell.tools.json_check import problems
from thinkwell.tools.schema import explain, plain_schema_generator, root_only
from thinkwell.tools.tool import Tool

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar("T")

OutputMode: TypeAlias = Literal["auto", "native", "tool", "prompted"]

FINAL_ANSWER = "final_answer"
"""The name of the hidden tool; a number is put behind it if the name is taken."""

_WRAPPED = "value"
_OF_TYPES = ("typing", "types", "typing_extensions")
"""Where the classes of types such as `list[int]` and `int | None` are, which are no classes."""
_NO_NAME = re.compile(r"[^a-zA-Z0-9_-]+")
_FENCE = re.compile(r"```(?:json)?\s*\n(.*?)\n?\s*```", re.DOTALL)


class Output(Generic[T]):
    """What the final answer of a turn must look like.

    `schema` is a pydantic model, a dataclass, a TypedDict, any other type that pydantic
    understands, or a JSON schema as a dict. `retries` says how often the model is asked again
    after an answer that does not fit.
    """

    __slots__ = ("_check", "_is_wrapped", "_schema", "json_schema", "mode", "name", "retries")

    @overload
    def __init__(
        self,
        schema: type[T],
        *,
        mode: OutputMode = "auto",
        name: str | None = None,
        retries: int = 0,
    ) -> None: ...
    @overload
    def __init__(
        self: Output[Any],
        schema: Any,
        *,
        mode: OutputMode = "auto",
        name: str | None = None,
        retries: int = 0,
    ) -> None: ...
    def __init__(
        self, schema: Any, *, mode: OutputMode = "auto", name: str | None = None, retries: int = 0
    ) -> None:
        if mode not in get_args(OutputMode):
            raise ConfigurationError(
                f"Output has mode={mode!r}. Use one of {', '.join(get_args(OutputMode))}."
            )
        if type(cast("object", retries)) is not int or retries < 0:
            raise ConfigurationError(
                f"Output has retries={retries!r}. Give a whole number, 0 or more."
            )
        self.mode: OutputMode = mode
        """How the model is asked: see `resolve_mode`."""
        self.name = _NO_NAME.sub("_", name or _name_of(schema)).strip("_") or "answer"
        """What providers call the schema."""
        self.retries = retries
        """How often the model may try again."""
        self._schema, self._check = _read(schema)
        self.json_schema, self._is_wrapped = _as_object(self._schema)
        """The JSON schema the model is given; always an object at the top."""

    def to_json(self) -> dict[str, Any]:
        """What can be stored of it: the schema as data. Stored format, with the turn's row."""
        return {
            "schema": self._schema,
            "mode": self.mode,
            "name": self.name,
            "retries": self.retries,
        }

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Output[Any]:
        """The output again from `to_json`. It checks the schema and gives plain JSON data: a
        Python type, and the checks written in it, are not stored.
        """
        more = {name: stored[name] for name in ("mode", "name", "retries")}
        return Output[Any](stored["schema"], **more)

    def parse(self, text: str) -> T:
        """The value in the model's text. Raises `OutputError`."""
        try:
            value = json.loads(_without_fence(text) if self.mode == "prompted" else text)
        except ValueError as error:
            raise OutputError((f"it is not JSON ({error})",), text) from None
        return self._validated(value, text)

    def validate(self, value: Any) -> T:
        """The typed value of JSON data that follows `json_schema`. Raises `OutputError`."""
        return self._validated(value, json.dumps(value))

    def _validated(self, value: Any, raw: str) -> T:
        if self._is_wrapped:
            if not isinstance(value, dict) or _WRAPPED not in value:
                raise OutputError((f"missing field {_WRAPPED!r}",), raw)
            value = cast("dict[str, Any]", value)[_WRAPPED]
        return cast("T", self._check(value, raw))


def resolve_mode(
    output: Output[Any], *, native_supported: bool, tools_active: bool
) -> Literal["native", "tool", "prompted"]:
    """How to ask: as the output says; `auto` is native where that works without tools in play."""
    if output.mode != "auto":
        return output.mode
    return "native" if native_supported and not tools_active else "tool"


def final_answer_tool(output: Output[Any], taken_names: Collection[str]) -> Tool:
    """The hidden tool of mode `tool`: its validated input is the answer."""
    name = FINAL_ANSWER
    count = 0
    while name in taken_names:
        count += 1
        name = f"{FINAL_ANSWER}_{count}"

    def validate(value: dict[str, Any]) -> Any:
        try:
            return output.validate(value)
        except OutputError as error:
            raise ToolInputError(name, "; ".join(error.problems)) from error

    return Tool(
        name=name,
        description="Give the final answer. Its arguments are the answer.",
        input_schema=root_only(output.json_schema, name),
        execute=lambda value, _ctx: value,
        validate=validate,
        effect="pure",
    )


def final_answer_instruction(tool_name: str) -> str:
    """The sentence the prompt gets in mode `tool`."""
    return (
        f"When you have everything you need, give your final answer by calling the tool "
        f"{tool_name!r}. Do not write the answer as text."
    )


def prompted_instruction(output: Output[Any]) -> str:
    """What the prompt gets in mode `prompted`."""
    return (
        "Give your final answer as JSON and nothing else, without a code fence. It must follow "
        f"this JSON schema:\n{json.dumps(output.json_schema)}"
    )


def _without_fence(text: str) -> str:
    """The JSON of an answer that is only prompted for: models like to put it into a code block."""
    fenced = _FENCE.search(text)
    return fenced[1] if fenced is not None else text


def correction_request(error: OutputError) -> str:
    """What the model is told when it may try again."""
    found = "\n".join(f"- {problem}" for problem in error.problems)
    return f"Your answer does not have the required form:\n{found}\nGive the whole answer again."


_Checker: TypeAlias = Callable[[Any, str], Any]


def _read(schema: Any) -> tuple[dict[str, Any], _Checker]:
    """The JSON schema, and a function that checks JSON data and gives the typed value."""
    if isinstance(schema, Mapping):
        described = dict(cast("Mapping[str, Any]", schema))
        return described, lambda value, raw: _check_json(described, value, raw)
    _refuse_value(schema)
    from pydantic import TypeAdapter
    from pydantic.errors import PydanticUserError

    try:
        adapter: TypeAdapter[Any] = TypeAdapter(schema)
        described = adapter.json_schema(schema_generator=plain_schema_generator())
    except PydanticUserError as error:
        raise ConfigurationError(f"{schema!r} cannot be an output: {error.message}") from error
    return described, lambda value, raw: _check_type(adapter, value, raw)


def _refuse_value(schema: Any) -> None:
    """Refuse what is no type, before pydantic tries: it would look up a text in this module."""
    kind = cast("type[Any]", type(schema))
    if isinstance(schema, str):
        raise ConfigurationError(
            f"{schema!r} is a text, not a class. Give the class without quotes: `output=City`."
        )
    if schema is not None and not isinstance(schema, type) and kind.__module__ not in _OF_TYPES:
        raise ConfigurationError(
            f"{reprlib.repr(schema)} is a value, not a class. Give the class: "
            f"`output={kind.__name__}`."
        )


def _check_json(schema: Mapping[str, Any], value: Any, raw: str) -> Any:
    found = problems(value, schema)
    if found:
        raise OutputError(found, raw)
    return value


def _check_type(adapter: TypeAdapter[Any], value: Any, raw: str) -> Any:
    from pydantic import ValidationError

    try:
        # As JSON, so that strict types accept what JSON can only write as text.
        return adapter.validate_json(json.dumps(value))
    except ValidationError as error:
        raise OutputError(explain(error, "field"), raw) from None


def _as_object(schema: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """The schema with an object at the top, and whether the value had to be wrapped for that."""
    shared = {key: schema[key] for key in ("$defs", "definitions") if key in schema}
    inner = {key: item for key, item in schema.items() if key not in shared}
    reference = str(inner.get("$ref", ""))
    if reference.startswith("#/$defs/") and len(inner) == 1:
        inner = dict(shared["$defs"][reference.removeprefix("#/$defs/")])  # a recursive type
    if inner.get("type") == "object" or ("type" not in inner and "properties" in inner):
        return {**inner, "type": "object", **shared}, False
    wrapper = {
        "type": "object",
        "properties": {_WRAPPED: inner},
        "required": [_WRAPPED],
        "additionalProperties": False,
    }
    return {**wrapper, **shared}, True


def _name_of(schema: Any) -> str:
    if isinstance(schema, Mapping):
        return str(cast("Mapping[str, Any]", schema).get("title", ""))
    return str(getattr(schema, "__name__", ""))
