"""What every event of the bus is (spec/04 §17)."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from thinkwell.core import json

Problem: TypeAlias = BaseException | str | None
"""What went wrong: what was raised, or the text that took its place."""


class BusEvent(msgspec.Struct, frozen=True, kw_only=True):
    """What every event is. Subclass it to tell something of yours, with a `type` of your own:
    `shop:sold`.
    """

    type: str
    agent: str | None = None
    """The agent as `class/name`; None if it is about the whole process."""

    def to_dict(self) -> dict[str, Any]:
        """Its type and fields as JSON data: errors as their text, for a log, a file or a span."""
        fields = (*self.__struct_fields__,)
        return {name: _plain(getattr(self, name)) for name in fields}


def _plain(value: Any) -> Any:
    if isinstance(value, BaseException):
        return f"{type(value).__name__}: {json.error_text(value)}"
    try:
        return json.to_jsonable(value)
    except ValueError:
        return repr(value)


class TurnEvent(BusEvent, frozen=True, kw_only=True):
    """Something about one turn."""

    request_id: str
    """The turn's id."""


class CallEvent(TurnEvent, frozen=True, kw_only=True):
    """Something about one tool call."""

    tool_call_id: str
    tool_name: str


class JobEvent(BusEvent, frozen=True, kw_only=True):
    """Something about one job."""

    job: str
    """Its id."""
    name: str
    attempt: int


class FiberEvent(BusEvent, frozen=True, kw_only=True):
    """Something about one fiber."""

    fiber: str
    """Its id."""
    name: str


def type_of(event: type[BusEvent]) -> str:
    """The name of an event, as its class has it."""
    fields = {field.name: field for field in msgspec.structs.fields(event)}
    return str(fields["type"].default)
