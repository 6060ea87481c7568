"""A function's signature as a JSON schema and a validator (spec/02 §9.1, §9.5).

Owns the two ways to check arguments: by pydantic, from annotations, giving typed values; and
shallowly by hand, for tools that come with a ready JSON schema. Both speak in texts that name the
field, because the model reads them. The validator returns only the arguments that were given, so a
function's own defaults stay its own. Pydantic is imported on first use.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast, get_type_hints

from thinkwell.core.errors import ToolDefinitionError, ToolInputError
from thinkwell.tools.context import ToolContext
from thinkwell.tools.docstring import argument_texts
from thinkwell.tools.tool_checks import written_as

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError
    from pydantic.json_schema import GenerateJsonSchema

Validator = Callable[[dict[str, Any]], Any]

ROOT_KEYS = ("type", "properties", "required", "additionalProperties", "description", "$defs")


class SignatureSchema:
    """What a signature says: the schema, the validator and where the context goes."""

    __slots__ = ("context_parameter", "input_schema", "validate")

    def __init__(
        self, input_schema: dict[str, Any], validate: Validator, context_parameter: str | None
    ) -> None:
        self.input_schema = input_schema
        """The JSON schema of the arguments."""
        self.validate = validate
        """Raises `ToolInputError`, or gives the keyword arguments for the function."""
        self.context_parameter = context_parameter
        """The parameter that wants the `ToolContext`, if there is one."""


def from_signature(
    function: Callable[..., Any], tool_name: str, *, skip_first: bool = False
) -> SignatureSchema:
    """Read `function`. `skip_first` leaves out the `self` of a method that is not bound yet."""
    parameters = list(inspect.signature(function).parameters.values())[1 if skip_first else 0 :]
    title = written_as(function, tool_name)
    hints = _hints(function, title, parameters)
    context_parameter: str | None = None
    fields: dict[str, Any] = {}
    texts = argument_texts(function)
    for parameter in parameters:
        _check_kind(parameter, title)
        annotation = hints.get(parameter.name, Any)
        if annotation is ToolContext:
            context_parameter = parameter.name
        else:
            fields[f"field_{len(fields)}"] = _field(parameter, annotation, texts)
    model = _build_model(tool_name, fields, title)
    names = {key: str(info.alias) for key, info in model.model_fields.items()}

    def validate(value: dict[str, Any]) -> dict[str, Any]:
        from pydantic import ValidationError

        try:
            checked = model.model_validate(value)
        except ValidationError as error:
            raise ToolInputError(tool_name, "; ".join(explain(error))) from None
        # Only what was given: a default that is made anew at each call stays the function's own.
        return {names[key]: getattr(checked, key) for key in checked.model_fields_set}

    return SignatureSchema(_json_schema(model, fields, title), validate, context_parameter)


def check_parameters(function: Callable[..., Any], tool_name: str) -> None:
    """Refuse parameters that no model could fill, as soon as the tool is written."""
    parameters = list(inspect.signature(function).parameters.values())
    if parameters and parameters[0].kind is inspect.Parameter.POSITIONAL_ONLY:
        del parameters[0]  # it may be `self`, which the model does not send
    for parameter in parameters:
        _check_kind(parameter, written_as(function, tool_name))


def root_only(schema: Mapping[str, Any], tool_name: str) -> dict[str, Any]:
    """The schema with the root keys that providers accept. Raises if the root is no object."""
    if schema.get("type", "object") != "object":
        raise ToolDefinitionError(
            f"The input schema of tool {tool_name!r} has the type {schema['type']!r} at the top. "
            "A model sends named arguments, so it must be an object."
        )
    result: dict[str, Any] = {"type": "object", "properties": {}, **schema}
    return {key: result[key] for key in ROOT_KEYS if key in result}


def check_shape(schema: Mapping[str, Any], tool_name: str) -> None:
    """Refuse what only looks like a schema; for those that come from outside."""
    properties, required = schema.get("properties"), schema.get("required", [])
    if not isinstance(properties, dict) or not all(
        _is_property(item) for item in cast("dict[str, Any]", properties).values()
    ):
        raise ToolDefinitionError(
            f"`properties` of tool {tool_name!r} must be an object that holds JSON schemas."
        )
    if not _is_names(required):
        raise ToolDefinitionError(f"`required` of tool {tool_name!r} must be a list of names.")


def _is_property(schema: Any) -> bool:
    if not isinstance(schema, dict):
        return isinstance(schema, bool)
    known = cast("dict[str, Any]", schema)
    declared = known.get("type", "any")
    named = isinstance(declared, str) or _is_names(declared)
    return named and isinstance(known.get("enum", []), list)


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(v, str) for v in cast("list[Any]", value))


def shallow_validator(schema: Mapping[str, Any], tool_name: str) -> Validator:
    """Checks required, unknown and wrongly typed arguments of a given schema, one level deep."""
    properties = cast("dict[str, Any]", schema.get("properties", {}))
    required = cast("list[str]", schema.get("required", []))
    closed = schema.get("additionalProperties", True) is False

    def validate(value: dict[str, Any]) -> dict[str, Any]:
        problems = [f"missing argument {name!r}" for name in required if name not in value]
        for name, item in value.items():
            if name not in properties:
                if closed:
                    problems.append(f"unknown argument {name!r}")
            elif problem := mismatch(item, properties[name]):
                problems.append(f"argument {name!r}: {problem}")
        if problems:
            raise ToolInputError(tool_name, "; ".join(problems))
        return value

    return validate


def explain(error: ValidationError, noun: str = "argument") -> tuple[str, ...]:
    """One text per wrong field, as the model will read it."""
    return tuple(
        _explain_one(item["type"], item["loc"], item["msg"], noun)
        for item in error.errors(include_url=False, include_context=False, include_input=False)
    )


def plain_schema_generator() -> type[GenerateJsonSchema]:
    """Pydantic's generator without the titles that tell a model nothing."""
    from pydantic.json_schema import GenerateJsonSchema

    class PlainSchema(GenerateJsonSchema):
        ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012

        def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
            return False

    return PlainSchema


def _hints(
    function: Callable[..., Any], title: str, parameters: list[inspect.Parameter]
) -> dict[str, Any]:
    hints: dict[str, Any] = {}
    for parameter in parameters:  # one by one, so that an error can name the one that is wrong
        try:
            hints |= parameter_hints(function, [parameter.name])
        except NameError as error:
            raise ToolDefinitionError(
                f"Tool {title!r} has the parameter `{_shown(parameter)}`, and {error}. Define the "
                "type, or import it at module level, outside `if TYPE_CHECKING`."
            ) from None
        except (SyntaxError, TypeError) as error:  # a text that is no type
            raise ToolDefinitionError(
                f"Tool {title!r} has the parameter `{_shown(parameter)}`, which is no type: {error}"
            ) from None
    return hints


def parameter_hints(function: Callable[..., Any], parameter_names: Iterable[str]) -> dict[str, Any]:
    """The types of these parameters. Raises `NameError` for one that is not there at run time."""
    target = inspect.unwrap(getattr(function, "__func__", function))
    raw = cast("dict[str, Any]", getattr(target, "__annotations__", {}))

    def carrier() -> None: ...

    # The return annotation may name something that only type checkers import; only parameters
    # matter here.
    carrier.__annotations__ = {name: raw[name] for name in parameter_names if name in raw}
    names = {"ToolContext": ToolContext, **getattr(target, "__globals__", {})}
    return get_type_hints(carrier, globalns=names, include_extras=True)


def _check_kind(parameter: inspect.Parameter, title: str) -> None:
    if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
        return
    raise ToolDefinitionError(
        f"Tool {title!r} has the parameter `{_shown(parameter)}`. Models send named arguments: "
        f"write `{parameter.name}: ...` as an ordinary parameter instead."
    )


def _shown(parameter: inspect.Parameter) -> str:
    """A parameter as it was written: annotations that wait are texts, which Python quotes."""
    annotation = parameter.annotation
    if not isinstance(annotation, str):
        return str(parameter)
    return str(parameter).replace(repr(annotation), annotation.strip("\"'"), 1)


def _field(parameter: inspect.Parameter, annotation: Any, texts: Mapping[str, str]) -> Any:
    from pydantic import Field

    # Fields get neutral names and the real one as alias: `schema`, `copy` or `_x` would clash with
    # pydantic.
    options: dict[str, Any] = {"alias": parameter.name}
    if parameter.name in texts:
        options["description"] = texts[parameter.name]
    if parameter.default is not parameter.empty:
        options["default"] = parameter.default
    return annotation, Field(**options)


def _build_model(tool_name: str, fields: dict[str, Any], title: str) -> type[BaseModel]:
    from pydantic import ConfigDict, create_model
    from pydantic.errors import PydanticUserError

    try:
        # A misspelt argument is an error the model can read, not a default it never notices.
        return create_model(tool_name, __config__=ConfigDict(extra="forbid"), **fields)
    except PydanticUserError as error:
        raise _no_schema(fields, title, error) from None


def _json_schema(model: type[BaseModel], fields: dict[str, Any], title: str) -> dict[str, Any]:
    from pydantic.errors import PydanticUserError

    try:
        schema = model.model_json_schema(by_alias=True, schema_generator=plain_schema_generator())
    except PydanticUserError as error:
        raise _no_schema(fields, title, error) from None
    return root_only(schema, title)


def _no_schema(fields: dict[str, Any], title: str, error: Any) -> ToolDefinitionError:
    """The error for a type that a model cannot be told; pydantic does not say whose it is."""
    for annotation, field in fields.values():
        if not _has_schema(annotation):
            return ToolDefinitionError(
                f"Tool {title!r} has the parameter {field.alias!r} of the type "
                f"{inspect.formatannotation(annotation)}, which a model cannot send. Give a type "
                "that JSON can hold: str, int, list[str], a dataclass, a TypedDict or a pydantic "
                "model."
            )
    return ToolDefinitionError(
        f"The signature of tool {title!r} cannot be offered to a model: {error.message}"
    )


def _has_schema(annotation: Any) -> bool:
    from pydantic import TypeAdapter
    from pydantic.errors import PydanticUserError

    try:
        TypeAdapter(annotation).json_schema()
    except PydanticUserError:
        return False
    return True


def _explain_one(kind: str, location: tuple[int | str, ...], message: str, noun: str) -> str:
    if not location:
        return message
    path = ".".join(str(step) for step in location)
    if kind == "missing":
        return f"missing {noun} {path!r}"
    if kind == "extra_forbidden":
        return f"unknown {noun} {path!r}"
    return f"{noun} {path!r}: {message}"


_JSON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


def mismatch(value: Any, schema: Any) -> str | None:
    """What is wrong with `value` by the `type` and `enum` of a schema; None if nothing is."""
    if isinstance(schema, bool):  # the schema True allows everything, False nothing
        return None if schema else "not allowed"
    declared = schema.get("type")
    kinds = cast("list[str]", declared if isinstance(declared, list) else [declared])
    if declared is not None and not any(_is_kind(value, kind) for kind in kinds):
        return f"expected {' or '.join(kinds)}"
    choices = cast("list[Any] | None", schema.get("enum"))
    if choices is not None and value not in choices:
        return f"expected one of {', '.join(map(repr, choices))}"
    return None


def _is_kind(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _JSON_TYPES.get(kind, (object,)))
