"""The fingerprint of a tool's input schema: whether a call was made for the tool as it is now.

Code changes while calls wait: for a person, for a client, for the next start after a crash. A call
carries the fingerprint of the schema its model was shown. The fingerprint covers everything that
says which input is right and what it means (types, names, limits, defaults), and leaves out what
only describes it (descriptions, titles, examples).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, cast

from thinkwell.core import json

_TEXTS = frozenset(
    ("$comment", "$id", "$schema", "deprecated", "description", "examples", "readOnly", "title")
)
"""Keywords that describe a schema to people."""
_NAMED = frozenset(("$defs", "definitions", "dependentSchemas", "patternProperties", "properties"))
"""Keywords whose value maps names to schemas; a property may well be called `description`."""
_DATA = frozenset(("const", "default", "enum", "required", "type"))
"""Keywords whose value is no schema."""


def schema_fingerprint(input_schema: Mapping[str, Any]) -> str:
    """32 hex digits: the same for schemas that differ only in their texts or in the order of keys.

    It is stored with calls and approvals, so the way it is made never changes.
    """
    text = json.canonical(bare_schema(input_schema))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def tools_fingerprint(schemas: Mapping[str, Mapping[str, Any]]) -> str:
    """The same for several tools, given as input schemas by name."""
    prints = {name: schema_fingerprint(schema) for name, schema in schemas.items()}
    return hashlib.blake2b(json.canonical(prints).encode(), digest_size=16).hexdigest()


def bare_schema(schema: Any) -> Any:
    """The schema without its texts, `required` and lists of types in a fixed order."""
    if isinstance(schema, list):
        return [bare_schema(item) for item in cast("list[Any]", schema)]
    if not isinstance(schema, Mapping):
        return schema
    return {
        key: _bare_value(key, value)
        for key, value in cast("Mapping[str, Any]", schema).items()
        if key not in _TEXTS and not (key == "required" and not value)
    }


def _bare_value(key: str, value: Any) -> Any:
    if key in _NAMED and isinstance(value, Mapping):
        named = cast("Mapping[str, Any]", value)
        return {name: bare_schema(item) for name, item in named.items()}
    if key in ("required", "type") and isinstance(value, list):
        return sorted(cast("list[Any]", value), key=str)
    return value if key in _DATA else bare_schema(value)
