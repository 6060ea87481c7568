"""The conversation as Anthropic's messages (pure).

The provider's own rules hold in whatever is made here:
- user and assistant take turns, and the first message is the user's;
- every `tool_use` is answered by a `tool_result` at the beginning of the next user message;
- ids of calls have only letters, digits, `_` and `-`, whichever provider made them;
- a text is never empty, and a thought is sent only with the signature Anthropic gave it.
A tool that Anthropic runs itself (web search, say) is sent as it came. One that another provider
ran is told as text, because Anthropic accepts only its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final, cast

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
from thinkwell.models.data_url import read_data_url
from thinkwell.models.pairs import paired
from thinkwell.models.result_text import (
    file_text,
    foreign_call_text,
    made_file_text,
    result_content,
)

PROVIDER: Final = "anthropic"
_BEGINNING: Final = "(The conversation begins with your answer.)"
_ID: Final = re.compile(r"[^a-zA-Z0-9_-]")
_IMAGES: Final = ("image/jpeg", "image/png", "image/gif", "image/webp")


def build_messages(messages: Iterable[ModelMessage]) -> list[dict[str, Any]]:
    """The conversation in the provider's shape."""
    turns = _Turns()
    for message in paired(messages):
        match message:
            case SystemMessage(content=text):
                turns.say("user", [_text(text)] if text else [])
            case UserMessage():
                turns.say("user", [_user_block(item) for item in message.content])
            case AssistantMessage():
                turns.say("assistant", _assistant_blocks(message))
            case ToolMessage():
                turns.give_results(message)
    return turns.messages


class _Turns:
    """Messages that take turns, with the results of calls where the provider wants them."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []

    def say(self, role: str, blocks: list[dict[str, Any]]) -> None:
        said = [block for block in blocks if block.get("text", "-")]
        if not said:
            return
        if role == "assistant" and not self.messages:
            self._add("user", [_text(_BEGINNING)])
        self._add(role, said)

    def give_results(self, message: ToolMessage) -> None:
        for item in message.content:
            if item.provider_executed:
                self._place_result(item)
            else:
                self._add("user", [_tool_result(item, call_id_of(item.tool_call_id))])

    def _add(self, role: str, blocks: list[dict[str, Any]]) -> None:
        if self.messages and self.messages[-1]["role"] == role:
            self.messages[-1]["content"].extend(blocks)
        else:
            self.messages.append({"role": role, "content": blocks})

    def _place_result(self, item: ToolResultContent) -> None:
        """Put what Anthropic's own tool found behind its call, or tell what another's found."""
        for message in reversed(self.messages):
            if message["role"] == "assistant":
                _join_result(message["content"], item)
                return


def _join_result(content: list[dict[str, Any]], item: ToolResultContent) -> None:
    ids = [block.get("id") for block in content]
    at = ids.index(item.tool_call_id) if item.tool_call_id in ids else -1
    if at < 0:
        content.append(_text(foreign_call_text(item)))
        return
    name = content[at]["name"]
    if item.kind == "error-text":
        found: Any = {"type": f"{name}_tool_result_error", "error_code": item.value}
    else:
        found = item.value
    if isinstance(found, list | dict):
        kind = f"{name}_tool_result"
        result: dict[str, Any] = {"type": kind, "tool_use_id": item.tool_call_id}
        content.insert(at + 1, {**result, "content": cast("Any", found)})
    else:  # an old result that was shortened is not what Anthropic sent any more
        content[at] = _text(foreign_call_text(item))


def _assistant_blocks(message: AssistantMessage) -> list[dict[str, Any]]:
    return [block for item in message.content for block in _assistant_block(item)]


def _assistant_block(
    item: TextContent | ReasoningContent | FileContent | ToolCallContent,
) -> list[dict[str, Any]]:
    match item:
        case TextContent(text=text):
            return [_text(text)]
        case ReasoningContent():
            return _thinking(item)
        case ToolCallContent(provider_executed=True):
            return _server_call(item)
        case ToolCallContent():
            call = {"type": "tool_use", "id": call_id_of(item.tool_call_id)}
            return [{**call, "name": item.tool_name, "input": item.input}]
        case FileContent():
            return [_text(made_file_text(item))]


def _thinking(item: ReasoningContent) -> list[dict[str, Any]]:
    kept = cast("dict[str, Any]", (item.provider_metadata or {}).get(PROVIDER) or {})
    if signature := kept.get("signature"):
        return [{"type": "thinking", "thinking": item.text, "signature": signature}]
    if data := kept.get("redactedData"):
        return [{"type": "redacted_thinking", "data": data}]
    return []


def _server_call(item: ToolCallContent) -> list[dict[str, Any]]:
    kept = cast("dict[str, Any] | None", (item.provider_metadata or {}).get(PROVIDER))
    if kept is None or kept.get("type", "server_tool_use") != "server_tool_use":
        return []  # another provider's, or a connector's: what came of it is told as text
    call = {"type": "server_tool_use", "id": item.tool_call_id}
    return [{**call, "name": item.tool_name, "input": item.input}]


def call_id_of(call_id: str) -> str:
    """The id of a call as Anthropic accepts it; others make ids with dots and bars."""
    return _ID.sub("_", call_id) or "call"


def _tool_result(item: ToolResultContent, call_id: str) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": call_id, "content": _result_content(item)}
    failed = item.kind in ("error-text", "error-json", "execution-denied")
    return {**block, "is_error": True} if failed else block


def _result_content(item: ToolResultContent) -> str | list[dict[str, Any]]:
    found = result_content(item)
    return found if isinstance(found, str) else [_user_block(part) for part in found]


def _user_block(item: TextContent | FileContent) -> dict[str, Any]:
    return _text(item.text) if isinstance(item, TextContent) else _file(item)


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _file(item: FileContent) -> dict[str, Any]:
    name = {"title": item.filename} if item.filename else {}
    data = read_data_url(item.url)
    if item.media_type in _IMAGES:
        return {"type": "image", "source": _source(item)}
    if item.media_type == "application/pdf":
        return {"type": "document", "source": _source(item), **name}
    if item.media_type.startswith("text/") and data is not None:
        source = {"type": "text", "media_type": "text/plain", "data": data.text()}
        return {"type": "document", "source": source, **name}
    return _text(file_text(item))


def _source(item: FileContent) -> dict[str, Any]:
    data = read_data_url(item.url)
    if data is None:
        return {"type": "url", "url": item.url}
    return {"type": "base64", "media_type": item.media_type, "data": data.base64()}
