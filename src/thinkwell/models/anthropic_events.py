"""What Anthropic streams, as far as it is read here (stored nowhere)."""

from __future__ import annotations

from typing import Any

import msgspec


class MessageUsage(msgspec.Struct, gc=False):
    """Token counts; cached ones come apart."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None


class MessageContainer(msgspec.Struct, gc=False):
    """Where Anthropic's tools have worked; a request that goes on names it."""

    id: str


class MessageFrame(msgspec.Struct, gc=False):
    """The frame of an answer."""

    id: str | None = None
    model: str | None = None
    usage: MessageUsage | None = None
    container: MessageContainer | None = None


class MessageBlock(msgspec.Struct):
    """A piece of content that begins."""

    type: str = ""
    id: str | None = None
    name: str | None = None
    text: str | None = None
    thinking: str | None = None
    data: str | None = None
    input: Any = None
    tool_use_id: str | None = None
    content: Any = None


class MessageDelta(msgspec.Struct, gc=False):
    """A piece of content that grows, or how the answer ended."""

    type: str = ""
    text: str | None = None
    partial_json: str | None = None
    thinking: str | None = None
    signature: str | None = None
    citation: dict[str, Any] | None = None
    stop_reason: str | None = None
    container: MessageContainer | None = None


class MessageEvent(msgspec.Struct):
    """Anything in the stream."""

    type: str
    index: int = 0
    delta: MessageDelta | None = None
    content_block: MessageBlock | None = None
    message: MessageFrame | None = None
    usage: MessageUsage | None = None
    error: Any = None
