"""Which tool the model has to call, in the forms people write it (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from thinkwell.hooks.values import ValueKind
from thinkwell.models.base import NamedTool, ToolChoice

_WORDS: Final = ("auto", "none", "required")
_FORMS: Final = (
    '"auto", "none", "required", `NamedTool("search")` or `{"type": "tool", "tool_name": "search"}`'
)


def read_choice(given: object) -> ToolChoice:
    """A tool choice: one of three words, a `NamedTool`, or the AI SDK's dict of one."""
    choice = _read(given)
    if choice is None:
        raise TypeError(f"tool_choice is {given!r}; write {_FORMS}.")
    return choice


def _read(given: object) -> ToolChoice | None:
    if isinstance(given, NamedTool):
        return given
    if isinstance(given, str):
        return given if given in _WORDS else None
    if isinstance(given, Mapping):
        fields = cast("Mapping[str, Any]", given)
        name = fields.get("tool_name", fields.get("toolName"))
        if isinstance(name, str) and fields.get("type", "tool") == "tool":
            return NamedTool(name)
    return None


TOOL_CHOICE: Final = ValueKind(lambda value: _read(value) is not None, _FORMS, _WORDS)
