"""Values that fit a JSON schema, chosen by a seed: what the scripted model calls tools with.

Covers what pydantic makes of Python types and what people write by hand: types, enums, constants,
bounds, lengths, formats, arrays, objects, references, unions. A pattern is tried with a few likely
texts; a tool that refuses them answers with an error, which is an answer too. Pure.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

DEEPEST = 6
"""Below this only what is required is filled in: a schema may refer to itself."""
_WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "harbor")
_FORMATS = {
    "date": "2026-03-{n:02}",
    "date-time": "2026-03-{n:02}T09:30:00Z",
    "time": "09:{n:02}:00",
    "duration": "PT{n}M",
    "email": "chaos-{n}@example.com",
    "uuid": "00000000-0000-4000-8000-0000000000{n:02}",
    "uri": "https://example.com/{n}",
    "ipv4": "192.0.2.{n}",
    "ipv6": "2001:db8::{n}",
    "binary": "Y2hhb3M=",
}
_PATTERNED = ("a", "abc", "A1", "42", "2026-03-01", "a-b", "a_b", "ABC-123", "x@example.com")

Schema = Mapping[str, Any]


def value_for(schema: Schema, chance: random.Random) -> Any:
    """A value that fits `schema`."""
    return _Maker(schema, chance).make(schema, 0)


class _Maker:
    """Makes one value; knows where references lead."""

    def __init__(self, root: Schema, chance: random.Random) -> None:
        self._root = root
        self._chance = chance

    def make(self, schema: Any, depth: int) -> Any:
        if not isinstance(schema, Mapping):  # `true`: anything goes
            return "anything"
        schema = self._resolved(cast("Schema", schema))
        if "const" in schema:
            return schema["const"]
        if schema.get("enum"):
            return self._chance.choice(cast("Sequence[Any]", schema["enum"]))
        for union in ("anyOf", "oneOf"):
            if schema.get(union):
                return self.make(self._branch(schema[union], depth), depth)
        if schema.get("allOf"):
            return self.make(_merged(self._resolved(part) for part in schema["allOf"]), depth)
        return self._typed(schema, depth)

    def _resolved(self, schema: Schema) -> Schema:
        for _ in range(DEEPEST):
            reference = schema.get("$ref")
            if not isinstance(reference, str) or not reference.startswith("#/"):
                return schema
            place: Any = self._root
            for name in reference[2:].split("/"):
                place = place[name.replace("~1", "/").replace("~0", "~")]
            schema = cast("Schema", place)
        return {}

    def _branch(self, branches: Sequence[Any], depth: int) -> Any:
        """One of a union; far down the simplest, which ends a schema that refers to itself."""
        if depth < DEEPEST:
            return self._chance.choice(branches)
        null = {"type": "null"}
        return null if null in branches else branches[0]

    def _typed(self, schema: Schema, depth: int) -> Any:
        kind = schema.get("type", "object" if "properties" in schema else "string")
        if isinstance(kind, list):
            kind = self._chance.choice(cast("list[str]", kind))
        match kind:
            case "object":
                return self._object(schema, depth)
            case "array":
                return self._array(schema, depth)
            case "integer" | "number":
                return self._number(schema, whole=kind == "integer")
            case "boolean":
                return self._chance.random() < 0.5
            case "null":
                return None
            case _:
                return self._text(schema)

    def _object(self, schema: Schema, depth: int) -> dict[str, Any]:
        required = set(cast("Sequence[str]", schema.get("required", ())))
        made: dict[str, Any] = {}
        for name, inner in cast("Schema", schema.get("properties", {})).items():
            optional = name not in required
            if optional and (depth >= DEEPEST or self._chance.random() < 0.5):
                continue
            made[name] = self.make(inner, depth + 1)
        return made

    def _array(self, schema: Schema, depth: int) -> list[Any]:
        fixed = cast("Sequence[Any]", schema.get("prefixItems", ()))
        made = [self.make(inner, depth + 1) for inner in fixed]
        least = int(schema.get("minItems", 0 if depth >= DEEPEST else 1))
        most = int(schema.get("maxItems", max(least, 2)))
        if fixed and "items" not in schema:
            return made
        while len(made) < self._chance.randint(min(least, most), most):
            item = self.make(schema.get("items", {}), depth + 1)
            if schema.get("uniqueItems") and item in made:
                break
            made.append(item)
        return made

    def _number(self, schema: Schema, *, whole: bool) -> float:
        step = schema.get("multipleOf") or (1 if whole else 0.5)
        low = _bound(schema, "minimum", "exclusiveMinimum", step)
        high = _bound(schema, "maximum", "exclusiveMaximum", -step)
        if low is None:
            low = 0 if high is None else high - 10 * step
        if high is None:
            high = low + 10 * step
        first, last = -(-low // step), high // step
        made = self._chance.randint(int(first), max(int(first), int(last))) * step
        return int(made) if whole else float(made)

    def _text(self, schema: Schema) -> str:
        if "pattern" in schema:
            return _matching(str(schema["pattern"]))
        form = _FORMATS.get(str(schema.get("format", "")))
        if form is not None:
            return form.format(n=self._chance.randint(1, 28))
        made = self._chance.choice(_WORDS)
        made = made.ljust(int(schema.get("minLength", 0)), "x")
        return made[: int(schema.get("maxLength", len(made)))]


def _bound(schema: Schema, inclusive: str, exclusive: str, step: float) -> float | None:
    if exclusive in schema and not isinstance(schema[exclusive], bool):
        return float(schema[exclusive]) + step
    return float(schema[inclusive]) if inclusive in schema else None


def _matching(pattern: str) -> str:
    for text in _PATTERNED:
        try:
            if re.search(pattern, text):
                return text
        except re.error:  # another dialect: the tool will say what it thinks of it
            break
    return _PATTERNED[0]


def _merged(parts: Any) -> Schema:
    """Several schemas that must all hold, as one: good enough for what pydantic writes."""
    made: dict[str, Any] = {}
    for part in parts:
        for key, value in cast("Schema", part).items():
            if key == "properties":
                made[key] = {**made.get(key, {}), **value}
            elif key == "required":
                made[key] = [*made.get(key, []), *value]
            else:
                made[key] = value
    return made
