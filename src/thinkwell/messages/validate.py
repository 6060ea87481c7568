"""The border where a client's message comes in: is it one at all? (spec/01 §7.2)

Shapes of older clients are brought up to date on the way. What a message says is not judged here,
only that the rest of the program can rely on its shape; unknown keys round-trip.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

from thinkwell.core import json
from thinkwell.messages.message import Part, UIMessage, is_tool_part

ROLES = ("user", "assistant", "system")


class Reference(NamedTuple):
    """A message by its id; what else it says is not looked at."""

    id: str
    role: str


def check_reference(value: Any) -> Reference:
    """Which message a client means. Raises `ValueError` if that cannot be said."""
    if not isinstance(value, dict):
        raise ValueError(f"a message must be an object, not {_kind(value)}")
    message = cast("dict[str, Any]", value)
    message_id, role = message.get("id"), message.get("role")
    if not isinstance(message_id, str) or not message_id:
        raise ValueError("a message needs a non-empty string `id`")
    if role not in ROLES:
        raise ValueError(f"message {message_id!r} needs a `role`: one of {', '.join(ROLES)}")
    return Reference(message_id, role)


def check_message(value: Any) -> UIMessage:
    """The message a client sent. Raises `ValueError` that says what is wrong with it."""
    message_id, _ = check_reference(value)
    message = _upgraded(cast("dict[str, Any]", value))
    _check_parts(message.get("parts"), message_id)
    if "metadata" in message and not isinstance(message["metadata"], dict):
        raise ValueError(f"`metadata` of message {message_id!r} must be an object or left out")
    return cast("UIMessage", message)


def read_stored(text: str) -> tuple[UIMessage | None, bool]:
    """The message in a row, and whether it is as it should be.

    Parts that are none are left out, whatever wrote them (an older version, another program, a
    damaged page): one of them must not cost the rest of the conversation. None: there is no message
    at all; such a row is skipped, never fatal.
    """
    try:
        value: Any = json.loads(text)
    except ValueError:
        return None, False
    if not isinstance(value, dict):
        return None, False
    message = cast("dict[str, Any]", value)
    parts, metadata = message.get("parts"), message.get("metadata", {})
    named = isinstance(message.get("id"), str) and isinstance(message.get("role"), str)
    if not named or not isinstance(parts, list):
        return None, False
    sound = [part for part in cast("list[Any]", parts) if _fault(part) is None]
    if len(sound) == len(cast("list[Any]", parts)) and isinstance(metadata, dict):
        return cast("UIMessage", message), True
    kept: dict[str, Any] = {**message, "parts": sound}
    if not isinstance(metadata, dict):
        del kept["metadata"]
    return cast("UIMessage", kept), False


def _check_parts(parts: Any, message_id: str) -> None:
    if not isinstance(parts, list):
        raise ValueError(f"message {message_id!r} needs a list of `parts`, not {_kind(parts)}")
    for index, part in enumerate(cast("list[Any]", parts)):
        if fault := _fault(part):
            raise ValueError(f"part {index} of message {message_id!r} {fault}")


def _fault(part: Any) -> str | None:
    """What is wrong with a part. Asked for every part of every transcript a client sends."""
    if not isinstance(part, dict):
        return f"must be an object, not {_kind(part)}"
    fields = cast("Part", part)
    kind = fields.get("type")
    if not isinstance(kind, str):
        return "needs a string `type`"
    if kind in ("text", "reasoning"):
        return None if isinstance(fields.get("text"), str) else "needs a string `text`"
    if not is_tool_part(fields):
        return None
    if not isinstance(fields.get("toolCallId"), str):
        return "needs a string `toolCallId`"
    return None if isinstance(fields.get("state"), str) else "needs a string `state`"


def _upgraded(message: dict[str, Any]) -> dict[str, Any]:
    """`content` and `toolInvocations` of older clients as parts. Others come back as they are."""
    if "parts" in message:
        return message
    content, calls = message.get("content"), message.get("toolInvocations")
    if not isinstance(content, str) and not isinstance(calls, list):
        return message
    old_calls = cast("list[Any]", calls if isinstance(calls, list) else [])
    parts: list[Part] = [_upgraded_call(call) for call in old_calls]
    if isinstance(content, str) and content:
        parts.append({"type": "text", "text": content})
    kept = {k: v for k, v in message.items() if k not in ("content", "toolInvocations")}
    return {**kept, "parts": parts}


def _upgraded_call(call: Any) -> Any:
    if not isinstance(call, dict):
        return call
    old = cast("dict[str, Any]", call)
    part: Part = {
        "type": f"tool-{old.get('toolName')}",
        "toolCallId": old.get("toolCallId"),
        "toolName": old.get("toolName"),
        "state": "output-available" if old.get("state") == "result" else "input-available",
        "input": old.get("args"),
    }
    if old.get("state") == "result":
        part["output"] = old.get("result")
    return part


def _kind(value: Any) -> str:
    return "null" if value is None else type(value).__name__
