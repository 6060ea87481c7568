"""Does a call still mean what its model meant, if the tool's schema has changed since?

A call can wait while the code changes: for a person, for a client, for the start after a crash. It
may run if the new schema reads its input as the old one did; what changed elsewhere is nothing to
it. `what_changed` decides, by three rules for each object:

- Every argument that was given has the same type in both schemas, down to the last field. Limits
  (`maximum`, `enum`, ...) may have changed, as long as the value keeps the new ones.
- Every argument that was left out has the same default in both, unless it is gone.
- Nothing is required now that was not given.

So texts, the order of keys, added optional arguments, and removed or changed ones that this call
does not use are compatible. Everything in doubt is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from thinkwell.core import json
from thinkwell.tools.fingerprint import bare_schema, schema_fingerprint
from thinkwell.tools.json_check import problems

_LIMITS = frozenset(
    (
        *("additionalProperties", "const", "default", "enum", "exclusiveMaximum"),
        *("exclusiveMinimum", "maxItems", "maxLength", "maxProperties", "maximum", "minItems"),
        *("minLength", "minProperties", "minimum", "multipleOf", "pattern", "required"),
        "uniqueItems",
    )
)
"""Keywords that say which values are allowed, not what a value means."""
_DEEPEST = 32
_MISSING = object()


def what_changed(
    shown: Mapping[str, Any], now: Mapping[str, Any], call_input: Mapping[str, Any]
) -> str | None:
    """What keeps a call that was made for the schema `shown` from running with `now`, in words.

    None if the input means the same in both and fits the new one.
    """
    if schema_fingerprint(shown) == schema_fingerprint(now):
        return None
    found = next(_changes(_Schema(shown, shown), _Schema(now, now), call_input, 0), None)
    if found is not None:
        return found
    wrong = problems(dict(call_input), now)
    return wrong[0] if wrong else None


class _Schema:
    """A schema and the whole it is part of, in which its references are looked up."""

    __slots__ = ("plain", "root")

    def __init__(self, schema: Any, root: Mapping[str, Any]) -> None:
        self.root = root
        self.plain = _resolved(schema, root)

    def under(self, keyword: str, name: str) -> _Schema | None:
        """The schema of a property, or None if there is none."""
        named = self.plain.get(keyword)
        if not isinstance(named, Mapping) or name not in named:
            return None
        return _Schema(cast("Mapping[str, Any]", named)[name], self.root)

    @property
    def names(self) -> Mapping[str, Any]:
        """Its properties."""
        found = self.plain.get("properties")
        return cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else {}

    def readings(self, value: Any) -> list[_Schema]:
        """The alternatives by which the value can be read."""
        choices = self.plain.get("anyOf") or self.plain.get("oneOf")
        kinds = self.plain.get("type")
        several = [self]
        if isinstance(choices, list):
            several = [_Schema(each, self.root) for each in cast("list[Any]", choices)]
        elif isinstance(kinds, list):
            several = [
                _Schema({**self.plain, "type": kind}, self.root)
                for kind in cast("list[Any]", kinds)
            ]
        return [one for one in several if not problems(value, one.meaning())]

    def meaning(self) -> Any:
        """What says how a value is read, with all that it refers to."""
        plain = _without_limits(bare_schema(self.plain))
        if '"$ref"' not in json.dumps(plain):
            return plain
        return {**plain, "$defs": _without_limits(bare_schema(self.root.get("$defs") or {}))}


def _changes(old: _Schema, new: _Schema, given: Mapping[str, Any], depth: int) -> Iterator[str]:
    """What is different for an object, one text per argument."""
    for name, value in given.items():
        before, after = old.under("properties", name), new.under("properties", name)
        if after is None and before is not None:
            yield f"there is no {name!r} any more"
        elif after is not None and (before is None or not _same(before, after, value, depth)):
            yield f"{name!r} is another value now"
    for name in old.names.keys() & new.names.keys() - given.keys():
        before, after = old.under("properties", name), new.under("properties", name)
        if before is not None and after is not None and _default(before) != _default(after):
            yield f"{name!r}, which was left out, has another default now"
    for name in cast("list[str]", new.plain.get("required") or []):
        if name not in given:
            yield f"{name!r} is required now"


def _same(old: _Schema, new: _Schema, value: Any, depth: int) -> bool:
    """Whether both schemas read the value in the same way."""
    if depth > _DEEPEST:
        return False
    readings = new.readings(value)
    return any(
        _reads_alike(one, other, value, depth) for one in old.readings(value) for other in readings
    )


def _reads_alike(old: _Schema, new: _Schema, value: Any, depth: int) -> bool:
    if isinstance(value, dict) and (old.names or new.names):
        given = cast("dict[str, Any]", value)
        return next(_changes(old, new, given, depth + 1), None) is None
    if isinstance(value, list) and "items" in old.plain and "items" in new.plain:
        before = _Schema(old.plain["items"], old.root)
        after = _Schema(new.plain["items"], new.root)
        items = cast("list[Any]", value)
        return all(_same(before, after, item, depth + 1) for item in items)
    return old.meaning() == new.meaning()


def _default(schema: _Schema) -> Any:
    value = schema.plain.get("default", _MISSING)
    return value if value is _MISSING else json.canonical(value)


def _resolved(schema: Any, root: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with what it refers to; True and False are schemas as well."""
    seen = 0
    while isinstance(schema, Mapping) and "$ref" in schema and seen < _DEEPEST:
        plain = cast("Mapping[str, Any]", schema)
        target = str(plain["$ref"]).rpartition("/")[2]
        beside = {key: value for key, value in plain.items() if key != "$ref"}
        defs = cast("Mapping[str, Any]", root.get("$defs") or {})
        schema = {**defs.get(target, {"unknown": target}), **beside}
        seen += 1
    if isinstance(schema, Mapping):
        return dict(cast("Mapping[str, Any]", schema))
    return {} if schema is True else {"not": {}}


def _without_limits(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_limits(each) for each in cast("list[Any]", schema)]
    if not isinstance(schema, Mapping):
        return schema
    plain = cast("Mapping[str, Any]", schema)
    return {key: _kept(key, value) for key, value in plain.items() if key not in _LIMITS}


def _kept(key: str, value: Any) -> Any:
    if key in ("properties", "$defs") and isinstance(value, Mapping):
        named = cast("Mapping[str, Any]", value)  # a property may have the name of a keyword
        return {name: _without_limits(each) for name, each in named.items()}
    return _without_limits(value)
