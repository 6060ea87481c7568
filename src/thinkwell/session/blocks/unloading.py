"""Which documents the model has before it, and how one is taken away (pure).

There is no list of loaded documents beside the conversation: what `load_context` gave and nobody
has unloaded is loaded. Unloading puts a mark in the place of the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

from thinkwell.messages.message import Part, UIMessage, is_settled, tool_name, tool_parts
from thinkwell.messages.model_messages import (
    AssistantMessage,
    ModelMessage,
    ToolCallContent,
    ToolMessage,
)

LOAD, UNLOAD = "load_context", "unload_context"
NOT_LOADED = ("Not found: ", "Error: ", "[skill unloaded: ")
UNLOADED = "Unloaded "
"""How the answer to a successful unload begins."""
Document = tuple[str, str]
"""Label and key."""


def mark_of(key: str) -> str:
    """What stands where a document was."""
    return f"[skill unloaded: {key}]"


def loaded_in(messages: Iterable[UIMessage]) -> set[Document]:
    """The documents that stored messages show."""
    found: set[Document] = set()
    for message in messages:
        for part in tool_parts(message):
            _apply(found, tool_name(part), part.get("input"), part.get("output"))
    return found


def loaded_for_model(messages: Iterable[ModelMessage]) -> set[Document]:
    """The documents in a conversation as the model sees it, the running turn included."""
    found: set[Document] = set()
    inputs: dict[str, Any] = {}
    for message in messages:
        if isinstance(message, AssistantMessage):
            calls = (part for part in message.content if isinstance(part, ToolCallContent))
            inputs.update({call.tool_call_id: call.input for call in calls})
        elif isinstance(message, ToolMessage):
            for result in message.content:
                _apply(found, result.tool_name, inputs.get(result.tool_call_id), result.value)
    return found


def unload_from(message: UIMessage, document: Document) -> UIMessage | None:
    """The message without the document; None if it does not show it."""
    if not any(_shows(part, document) for part in tool_parts(message)):
        return None
    return _changed(message, lambda part: _shows(part, document))


def unload_settled(message: UIMessage) -> UIMessage | None:
    """The message without the documents that it unloads itself; None if there are none."""
    parts = list(tool_parts(message))
    later: set[Document] = set()
    gone: list[int] = []
    for part in reversed(parts):
        if (document := _unloaded(part)) is not None:
            later.add(document)
        elif any(_shows(part, document) for document in later):
            gone.append(id(part))
    return _changed(message, lambda part: id(part) in gone) if gone else None


def _changed(message: UIMessage, goes: Callable[[Part], bool]) -> UIMessage:
    def changed(part: Part) -> Part:
        if not goes(part):
            return part
        _, key = cast("Document", _document(part.get("input")))
        return {**part, "output": mark_of(key)}

    return cast("UIMessage", {**message, "parts": [changed(part) for part in message["parts"]]})


def _apply(found: set[Document], name: str, given: Any, output: Any) -> None:
    document = _document(given)
    if document is None or not isinstance(output, str):
        return
    if name == LOAD and not output.startswith(NOT_LOADED):
        found.add(document)
    elif (name == LOAD and output == mark_of(document[1])) or (
        name == UNLOAD and output.startswith(UNLOADED)
    ):
        found.discard(document)


def _shows(part: Part, document: Document) -> bool:
    output = part.get("output")
    return (
        tool_name(part) == LOAD
        and is_settled(part)
        and isinstance(output, str)
        and not output.startswith(NOT_LOADED)
        and _document(part.get("input")) == document
    )


def _unloaded(part: Part) -> Document | None:
    output = part.get("output")
    if tool_name(part) != UNLOAD or not isinstance(output, str) or not output.startswith(UNLOADED):
        return None
    return _document(part.get("input"))


def _document(given: Any) -> Document | None:
    if not isinstance(given, dict):
        return None
    said = cast("dict[str, Any]", given)
    label, key = said.get("label"), said.get("key")
    return (label, key) if isinstance(label, str) and isinstance(key, str) else None


def listed(documents: Iterable[Document]) -> Iterator[str]:
    """Documents as people and models name them."""
    for label, key in sorted(documents):
        yield f"{label}:{key}"
