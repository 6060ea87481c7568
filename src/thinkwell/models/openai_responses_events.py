"""What OpenAI streams of a response, as far as it is read here (stored nowhere)."""

from __future__ import annotations

from typing import Any

import msgspec


class InputDetails(msgspec.Struct, gc=False):
    """Which input tokens were cached."""

    cached_tokens: int | None = None


class OutputDetails(msgspec.Struct, gc=False):
    """Which output tokens were thoughts."""

    reasoning_tokens: int | None = None


class ResponseUsage(msgspec.Struct, gc=False):
    """Token counts."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    input_tokens_details: InputDetails | None = None
    output_tokens_details: OutputDetails | None = None


class IncompleteDetails(msgspec.Struct, gc=False):
    """Why an answer is not whole."""

    reason: str = ""


class ResponseFrame(msgspec.Struct):
    """The response as a whole."""

    id: str | None = None
    model: str | None = None
    usage: ResponseUsage | None = None
    error: Any = None
    incomplete_details: IncompleteDetails | None = None
    service_tier: str | None = None


class ResponseEvent(msgspec.Struct):
    """Anything in the stream."""

    type: str
    delta: str | None = None
    sequence_number: int = -1
    output_index: int = 0
    item: dict[str, Any] | None = None
    annotation: dict[str, Any] | None = None
    response: ResponseFrame | None = None
    summary_index: int = 0
    error: Any = None
    code: Any = None
    message: str | None = None
