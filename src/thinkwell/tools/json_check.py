"""Does a value fit a JSON schema? For schemas that are data, not Python types.

Checks the keywords that say something about structure and plain bounds, to any depth, and follows
references inside the schema. Keywords it does not know allow everything, as JSON schema wants it.
Each problem is a text with the path of the field, because a model and people read it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias, cast

from thinkwell.tools.schema import mismatch

_MAX_DEPTH = 64

Schema: TypeAlias = Any
_Check: TypeAlias = "Callable[[Any, Any], bool]"


def problems(value: Any, schema: Schema) -> tuple[str, ...]:
    """What is wrong with `value`, one text per place; empty if it fits."""
    return tuple(_walk(value, schema, _Place(schema, "", 0)))


class _Place:
    """Where the walk stands: the whole schema for references, the path for texts, the depth."""

    __slots__ = ("depth", "path", "root")

    def __init__(self, root: Schema, path: str, depth: int) -> None:
        self.root = root
        self.path = path
        self.depth = depth

    def at(self, step: str | int) -> _Place:
        return _Place(self.root, f"{self.path}.{step}" if self.path else str(step), self.depth + 1)

    def same(self) -> _Place:
        return _Place(self.root, self.path, self.depth + 1)

    def says(self, problem: str) -> str:
        return f"field {self.path!r}: {problem}" if self.path else problem


def _walk(value: Any, schema: Schema, place: _Place) -> Iterator[str]:
    if place.depth > _MAX_DEPTH:
        yield place.says("nested too deeply")
        return
    problem = mismatch(value, schema)
    if problem is not None:
        yield place.says(problem)
        return
    if not isinstance(schema, Mapping):
        return
    known = cast("Mapping[str, Any]", schema)
    yield from _bounds(value, known, place)
    yield from _combined(value, known, place)
    if isinstance(value, dict):
        yield from _object(cast("dict[str, Any]", value), known, place)
    elif isinstance(value, list):
        items = known.get("items", True)
        for index, item in enumerate(cast("list[Any]", value)):
            yield from _walk(item, items, place.at(index))


def _object(value: dict[str, Any], schema: Mapping[str, Any], place: _Place) -> Iterator[str]:
    properties = cast("Mapping[str, Any]", schema.get("properties", {}))
    others = schema.get("additionalProperties", True)
    for name in cast("list[str]", schema.get("required", [])):
        if name not in value:
            yield f"missing field {place.at(name).path!r}"
    for name, item in value.items():
        if name in properties:
            yield from _walk(item, properties[name], place.at(name))
        elif others is False:
            yield f"unknown field {place.at(name).path!r}"
        else:
            yield from _walk(item, others, place.at(name))


def _combined(value: Any, schema: Mapping[str, Any], place: _Place) -> Iterator[str]:
    if "$ref" in schema:
        yield from _walk(value, _resolve(schema["$ref"], place.root), place.same())
    for part in schema.get("allOf", ()):
        yield from _walk(value, part, place.same())
    for keyword in ("anyOf", "oneOf"):
        choices: list[Schema] = schema.get(keyword, [])
        found = [tuple(_walk(value, choice, place.same())) for choice in choices]
        if found and all(found):
            reasons = " / ".join(", ".join(texts) for texts in found)
            yield place.says(f"fits none of the {len(found)} allowed forms ({reasons})")


def _resolve(reference: str, root: Schema) -> Schema:
    """The schema at a local reference; one that leads nowhere allows everything."""
    target: Any = root
    for step in reference.removeprefix("#").split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(target, Mapping) or name not in target:
            return True
        target = cast("Mapping[str, Any]", target)[name]
    return target


def _matches(text: str, pattern: str) -> bool:
    try:
        return re.search(pattern, text) is not None
    except re.error:  # a pattern of another dialect
        return True


_NUMBERS: dict[str, tuple[_Check, str]] = {
    "minimum": (lambda value, bound: value >= bound, "must be at least {}"),
    "maximum": (lambda value, bound: value <= bound, "must be at most {}"),
    "exclusiveMinimum": (lambda value, bound: value > bound, "must be above {}"),
    "exclusiveMaximum": (lambda value, bound: value < bound, "must be below {}"),
}
_TEXTS: dict[str, tuple[_Check, str]] = {
    "minLength": (lambda value, bound: len(value) >= bound, "needs at least {} characters"),
    "maxLength": (lambda value, bound: len(value) <= bound, "may have at most {} characters"),
    "pattern": (_matches, "must match {}"),
}
_LISTS: dict[str, tuple[_Check, str]] = {
    "minItems": (lambda value, bound: len(value) >= bound, "needs at least {} items"),
    "maxItems": (lambda value, bound: len(value) <= bound, "may have at most {} items"),
}


def _bounds(value: Any, schema: Mapping[str, Any], place: _Place) -> Iterator[str]:
    if "const" in schema and value != schema["const"]:
        yield place.says(f"must be {schema['const']!r}")
    for keyword, (fits, text) in _checks_for(value).items():
        if keyword in schema and not fits(value, schema[keyword]):
            yield place.says(text.format(schema[keyword]))


def _checks_for(value: Any) -> dict[str, tuple[_Check, str]]:
    if isinstance(value, str):
        return _TEXTS
    if isinstance(value, list):
        return _LISTS
    return _NUMBERS if isinstance(value, int | float) and not isinstance(value, bool) else {}
