"""Messages for a model in the forms applications write them, read as `ModelMessage`s (pure).

A hook may give our own classes, the AI SDK's `{"role": ..., "content": ...}` with keys in either
spelling, or a stored message with its `parts`. What cannot be read raises a `TypeError` that says
which message it is and what to write.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import msgspec

from thinkwell.messages.convert import to_model_messages
from thinkwell.messages.message import UIMessage, normalize_input
from thinkwell.messages.model_messages import (
    AssistantMessage,
    FileContent,
    ModelMessage,
    ReasoningContent,
    SystemMessage,
    TextContent,
    ToolCallContent,
    ToolMessage,
    ToolResultContent,
    UserMessage,
)

_CLASSES = (SystemMessage, UserMessage, AssistantMessage, ToolMessage)
_PARTS = (TextContent, ReasoningContent, FileContent, ToolCallContent, ToolResultContent)
_ALLOWED: dict[str, tuple[type, ...]] = {
    "user": (TextContent, FileContent),
    "assistant": (TextContent, ReasoningContent, FileContent, ToolCallContent),
    "tool": (ToolResultContent,),
}
RIGHT_FORM = (
    'Write {"role": "user", "content": "..."}, UserMessage((TextContent("..."),)), or a stored '
    "message as get_messages() gives it."
)


def read_messages(given: object) -> tuple[ModelMessage, ...]:
    """The messages a hook gave, as models are sent them."""
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        kind = type(cast("object", given)).__name__
        raise TypeError(f"messages is a {kind}, not a list. {RIGHT_FORM}")
    result: list[ModelMessage] = []
    for place, message in enumerate(cast("Iterable[object]", given)):
        try:
            result.extend(_read(message))
        except (KeyError, TypeError, ValueError) as error:
            problem = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise TypeError(f"messages[{place}] cannot be read: {problem}. {RIGHT_FORM}") from error
    return tuple(result)


def _read(message: object) -> tuple[ModelMessage, ...]:
    if isinstance(message, _CLASSES):
        if isinstance(message, SystemMessage) or type(message.content) is tuple:
            return (message,)
        return (_message(message.role, message.content),)
    if not isinstance(message, Mapping):
        raise TypeError(f"a {type(message).__name__} is no message")
    fields = cast("Mapping[str, Any]", message)
    if "parts" in fields:
        return to_model_messages(cast("UIMessage", fields))
    return (_message(fields["role"], fields["content"]),)


def _message(role: Any, content: Any) -> ModelMessage:
    if role == "system":
        return SystemMessage(_checked(content, str, "the content of a system message"))
    if role not in _ALLOWED:
        raise ValueError(f"the role {role!r} is none of system, {', '.join(_ALLOWED)}")
    if isinstance(content, str) and role != "tool":
        parts: tuple[Any, ...] = (TextContent(content),)
    else:
        given = _checked(content, Sequence, f"the content of a message with the role {role!r}")
        parts = tuple(_part(part) for part in given)
    for part in parts:
        if not isinstance(part, _ALLOWED[role]):
            raise TypeError(f"a message with the role {role!r} cannot hold a {_kind(part)} part")
    made = {"user": UserMessage, "assistant": AssistantMessage, "tool": ToolMessage}
    return cast("ModelMessage", made[role](parts))


def _part(part: object) -> object:
    if isinstance(part, _PARTS):
        return part
    fields = {_snake(key): value for key, value in _checked(part, Mapping, "a part").items()}
    match fields.get("type"):
        case "text":
            return TextContent(_checked(fields["text"], str, "text"))
        case "reasoning":
            return ReasoningContent(_checked(fields["text"], str, "text"), _metadata(fields))
        case "file" | "image":
            return _file(fields)
        case "tool-call":
            return ToolCallContent(
                tool_call_id=fields["tool_call_id"],
                tool_name=fields["tool_name"],
                input=normalize_input(fields.get("input", fields.get("args"))),
                provider_metadata=_metadata(fields),
            )
        case "tool-result":
            return _result(fields)
        case kind:
            known = "text, reasoning, file, image, tool-call, tool-result"
            raise ValueError(f"there is no part of the type {kind!r}; types are {known}")


def _file(fields: Mapping[str, Any]) -> FileContent:
    url = next((fields[key] for key in ("url", "data", "image") if key in fields), None)
    media_type = fields.get("media_type") or ("image/*" if fields["type"] == "image" else None)
    return FileContent(
        _checked(url, str, "the url of a file"),
        _checked(media_type, str, "the media_type of a file"),
        fields.get("filename"),
    )


def _result(fields: Mapping[str, Any]) -> ToolResultContent:
    """The AI SDK's `output: {type, value}`, or the bare value that a tool returned."""
    value: Any = fields["output"] if "output" in fields else fields["result"]
    kind: Any = "text" if isinstance(value, str) else "json"
    if isinstance(value, Mapping):
        tagged = cast("Mapping[str, Any]", value)
        if set(tagged) == {"type", "value"}:
            kind, value = tagged["type"], tagged["value"]
    return msgspec.convert(
        {
            "type": "tool-result",
            "tool_call_id": fields["tool_call_id"],
            "tool_name": fields["tool_name"],
            "kind": kind,
            "value": value,
        },
        ToolResultContent,
    )


def _metadata(fields: Mapping[str, Any]) -> dict[str, Any] | None:
    return fields.get("provider_metadata") or fields.get("provider_options")


def _checked(value: Any, kind: type, what: str) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"{what} is a {type(value).__name__}")
    return value


def _kind(part: Any) -> str:
    return str(part.__struct_config__.tag)


def _snake(key: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in key)
