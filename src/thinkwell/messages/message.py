"""UI messages and their parts: plain JSON-shaped data with typed views.

A message is a dict in the AI SDK's wire shape (camelCase keys), so what is stored is what clients
get. Unknown keys round-trip. The functions here are the only places that know part states by
name.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, NotRequired, TypeAlias, TypedDict, cast

from thinkwell.core import json

Role = Literal["user", "assistant", "system"]
Part: TypeAlias = dict[str, Any]


class UIMessage(TypedDict):
    """One message of the session tree. Stored format: change only with a migration."""

    id: str
    role: Role
    parts: list[Part]
    metadata: NotRequired[dict[str, Any]]


class NewMessage(TypedDict):
    """A message as a program may write it down: an id is made, `content` becomes a text part."""

    id: NotRequired[str]
    role: Role
    content: NotRequired[str]
    parts: NotRequired[list[Part]]
    metadata: NotRequired[dict[str, Any]]


SETTLED_STATES = frozenset({"output-available", "output-error", "output-denied"})
# Our own encoder writes no spaces, so the text can be searched without decoding it.
_HIDDEN = '"hidden":true'


def user_message(message_id: str, text: str) -> UIMessage:
    """A user message with one text part."""
    return {"id": message_id, "role": "user", "parts": [{"type": "text", "text": text}]}


def is_tool_part(part: Part) -> bool:
    """Whether the part is a tool call."""
    kind = part.get("type")
    return isinstance(kind, str) and (kind.startswith("tool-") or kind == "dynamic-tool")


def tool_name(part: Part) -> str:
    """The tool's name: `toolName` if given, else the type without its prefix (F22)."""
    name = part.get("toolName")
    return name if isinstance(name, str) else str(part["type"]).removeprefix("tool-")


def is_settled(part: Part) -> bool:
    """Whether a tool part has its result, error or denial (spec/03 §1)."""
    return part.get("state") in SETTLED_STATES or "output" in part or "result" in part


BUDGET_TOOL = "raise_budget"
"""The name of calls with which the server itself asks for more than a budget allows."""
BUDGET_MARK = {"thinkwell": {"asks": "budget"}}
"""Their metadata. A provider sets its own only, and what a client says of calls is not read."""


def asks_for_budget(part: Part) -> bool:
    """Whether a call is the server's own question about a budget: models are told nothing of it."""
    return part.get("callProviderMetadata") == BUDGET_MARK and tool_name(part) == BUDGET_TOOL


def tool_parts(message: UIMessage) -> Iterable[Part]:
    """The tool parts of a message, in order."""
    return (part for part in message["parts"] if is_tool_part(part))


def text_of(message: UIMessage) -> str:
    """All text parts joined."""
    return "".join(part["text"] for part in message["parts"] if part.get("type") == "text")


def parse_object(text: str) -> dict[str, Any] | None:
    """The JSON object written in `text`, or None if it is anything else."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def normalize_input(value: Any) -> dict[str, Any]:
    """A tool input as an object: its JSON text is parsed, anything else becomes empty."""
    if isinstance(value, str):
        value = parse_object(value)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def approval_of(part: Part) -> dict[str, Any]:
    """What is known of a tool part's approval; empty when none was asked."""
    approval = part.get("approval")
    return cast("dict[str, Any]", approval) if isinstance(approval, dict) else {}


def with_parts(message: UIMessage, parts: list[Part]) -> UIMessage:
    """The message with other parts; the message itself when they are the same objects."""
    old = message["parts"]
    if len(old) == len(parts) and all(a is b for a, b in zip(old, parts, strict=True)):
        return message
    return cast("UIMessage", {**message, "parts": parts})


def count_steps(parts: Iterable[Part]) -> int:
    """How many steps an answer has."""
    return sum(part.get("type") == "step-start" for part in parts)


def visible_message(message: UIMessage) -> UIMessage:
    """What clients may see of a stored message: itself, without its hidden parts.

    A turn that hides its reasoning (`send_reasoning=False`) still stores it, marked `hidden`,
    because the model needs it later. Every view of the transcript that leaves the server goes
    through here.
    """
    shown = [part for part in message["parts"] if part.get("hidden") is not True]
    return message if len(shown) == len(message["parts"]) else with_parts(message, shown)


def visible_text(encoded: str) -> str:
    """The same for an encoded message, decoded only if something may be hidden in it."""
    return json.dumps(visible_message(json.loads(encoded))) if _HIDDEN in encoded else encoded
