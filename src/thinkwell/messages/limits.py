"""A message that fits a row, or an error before anything is written (spec/01 §7.7, spec/03 §11).

An answer is stored whole: what clients saw is not lost. Its limit is far away, and a turn ends
before it (`turn/run/model_call.py`); what Python code adds beyond it is made to fit. What is given
up comes in order of how little it is missed: tool outputs, long texts, tool inputs, error texts,
reasoning. Files are not touched. The metadata of the message says which outputs and texts are no
longer whole. Warning about it is the caller's: a message that changed is not the same object.
What anybody else says is refused when it is too large: nobody wants half a question answered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

from thinkwell.core import json
from thinkwell.core.errors import MessageTooLargeError
from thinkwell.messages.message import Part, UIMessage, is_tool_part
from thinkwell.messages.shorten import cut_text, truncate_tool_output

MAX_ROW_BYTES = 1_800_000
"""Largest question in UTF-8 bytes of its JSON. A model reads longer answers shortened."""
MAX_REPLY_BYTES = 256 * 1024 * 1024
"""Largest answer."""

_KEPT_CHARS = 1000
_KEPT_TEXT = 500


def enforce_row_size_limit(message: UIMessage, max_bytes: int | None = None) -> UIMessage:
    """The message, made to fit. Raises `MessageTooLargeError` when it cannot be."""
    is_reply = message["role"] == "assistant"
    if max_bytes is None:
        max_bytes = MAX_REPLY_BYTES if is_reply else MAX_ROW_BYTES
    size = _size(message)
    if size <= max_bytes:
        return message
    if is_reply:
        shrinking = _Shrinking(message, size - max_bytes)
        # One kind after the other, and no further than needed: most answers fit again after the
        # first.
        for give_up in (_outputs, _texts, _inputs, _error_texts, _reasonings):
            result = shrinking.without(give_up)
            if _size(result) <= max_bytes:
                return result
    raise MessageTooLargeError(
        f"Message {message['id']!r} has {size} bytes as JSON and at most {max_bytes} fit a row. "
        "Send large files as http URLs. Long texts fit in pieces."
    )


class _Shrinking:
    """A message on its way to less: its parts, what was given up, and how much is still over."""

    def __init__(self, message: UIMessage, excess: int) -> None:
        self.message = message
        self.parts = list(message["parts"])
        self.excess = excess
        self.outputs: list[str] = []
        self.texts: list[int] = []

    def without(self, give_up: Callable[[_Shrinking], None]) -> UIMessage:
        give_up(self)
        metadata = dict(self.message.get("metadata") or {})
        if self.outputs:
            metadata["compactedToolOutputs"] = self.outputs
        if self.texts:
            metadata["compactedTextParts"] = self.texts
        result: dict[str, Any] = {**self.message, "parts": self.parts}
        if metadata:
            result["metadata"] = metadata
        return cast("UIMessage", result)

    def tool_parts(self) -> Iterator[tuple[int, Part]]:
        return ((i, part) for i, part in enumerate(self.parts) if is_tool_part(part))

    def replace(self, index: int, part: Part) -> None:
        self.excess -= _size(self.parts[index]) - _size(part)
        self.parts[index] = part


def _outputs(shrinking: _Shrinking) -> None:
    for index, part in shrinking.tool_parts():
        call_id = part.get("toolCallId")
        if part.get("state") != "output-available" or not isinstance(call_id, str):
            continue
        short = truncate_tool_output(part.get("output"), _KEPT_CHARS)
        if short.truncated:
            shrinking.replace(index, {**part, "output": short.value})
            shrinking.outputs.append(call_id)


def _texts(shrinking: _Shrinking) -> None:
    for index, part in enumerate(shrinking.parts):
        # The list of indexes in the metadata takes room too: a handful of bytes for each.
        if shrinking.excess + 64 + 8 * len(shrinking.texts) <= 0:
            return
        text = part.get("text")
        if part.get("type") == "text" and isinstance(text, str) and len(text) > _KEPT_CHARS:
            shrinking.replace(index, {**part, "text": _stored_text(text)})
            shrinking.texts.append(index)


def _inputs(shrinking: _Shrinking) -> None:
    for index, part in shrinking.tool_parts():
        short = truncate_tool_output(part.get("input"), _KEPT_CHARS)
        if short.truncated:
            shrinking.replace(index, {**part, "input": short.value})


def _error_texts(shrinking: _Shrinking) -> None:
    for index, part in shrinking.tool_parts():
        text = part.get("errorText")
        if isinstance(text, str) and len(text) > _KEPT_CHARS:
            shrinking.replace(index, {**part, "errorText": cut_text(text, _KEPT_CHARS)})


def _reasonings(shrinking: _Shrinking) -> None:
    for index, part in enumerate(shrinking.parts):
        if part.get("type") == "reasoning":
            # A provider signs its reasoning: without the whole text the signature is worthless.
            kept = {k: v for k, v in part.items() if k != "providerMetadata"}
            kept["text"] = cut_text(str(part.get("text", "")), _KEPT_CHARS)
            shrinking.replace(index, kept)


def _stored_text(text: str) -> str:
    start = text[:_KEPT_TEXT]
    return f"[Text truncated for storage ({len(text)} chars). First {_KEPT_TEXT} chars: {start}...]"


def _size(value: Any) -> int:
    return len(json.dump_bytes(value))
