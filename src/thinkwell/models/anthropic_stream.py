"""The events of an Anthropic message as model events.

Owns what lies between the payloads of one call: the open content blocks, the usage and the stop
reason. `answer_stream.py` has the reading loop. Kinds of events, blocks and deltas that are not
known here are passed over and logged once: the API grows by adding them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from thinkwell.core import json
from thinkwell.messages.usage import Usage
from thinkwell.models.answer_stream import AnswerStream
from thinkwell.models.anthropic_events import (
    MessageBlock,
    MessageContainer,
    MessageDelta,
    MessageEvent,
    MessageFrame,
    MessageUsage,
)
from thinkwell.models.anthropic_messages import PROVIDER
from thinkwell.models.base import (
    Failure,
    Finish,
    FinishReason,
    ModelEvent,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    SourceDocument,
    SourceUrl,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputStart,
    ToolResult,
)
from thinkwell.models.provider_errors import cut_stream, stream_error
from thinkwell.models.unknown_kinds import note_unknown

_FINISH_REASONS: dict[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool-calls",
    "refusal": "content-filter",
}
_PAUSED = "pause_turn"
_RESULT = "_tool_result"


class _Open:
    """A content block that is being written."""

    __slots__ = ("id", "input", "kind", "name", "signature")

    def __init__(self, kind: str, part_id: str, name: str = "") -> None:
        self.kind = kind
        self.id = part_id
        self.name = name
        self.input: list[str] = []
        self.signature = ""


class MessageStream(AnswerStream):
    """The state of one streamed message."""

    frame = MessageEvent

    def __init__(self) -> None:
        super().__init__(PROVIDER)
        self._open: dict[int, _Open] = {}
        self._message = MessageFrame()
        self._usage = MessageUsage()
        self._stop_reason: str | None = None
        self._container: MessageContainer | None = None
        self._began = False
        self._cited: set[str] = set()
        self._parts = 0

    def _end(
        self, events: list[ModelEvent], headers: Mapping[str, str], warnings: tuple[str, ...]
    ) -> None:
        if not self.done and self._stop_reason is None:
            events.append(Failure(cut_stream(PROVIDER, empty=not self._began)))
            return
        for index in list(self._open):
            self._close(index, events)
        reason = self._stop_reason or ""
        events.append(
            Finish(
                reason=_FINISH_REASONS.get(reason, "other"),
                raw_reason=reason,
                usage=_read_usage(self._usage),
                response_id=self._message.id,
                model_id=self._message.model,
                headers=headers,
                warnings=warnings,
                paused=self._pause() if reason == _PAUSED else None,
            )
        )

    def _take(self, event: MessageEvent, events: list[ModelEvent]) -> None:
        if event.delta is not None and event.type == "content_block_delta":
            self._grow(event.index, event.delta, events)
        elif event.content_block is not None:
            self._start(event.index, event.content_block, events)
        elif event.type == "content_block_stop":
            self._close(event.index, events)
        else:
            self._take_frame(event, events)

    def _take_frame(self, event: MessageEvent, events: list[ModelEvent]) -> None:
        """What is said around the content."""
        match event.type:
            case "message_start":
                self._began = True
                self._message = event.message or self._message
                self._container = self._message.container
                self._count(self._message.usage)
            case "message_delta":
                if event.delta is not None:
                    self._stop_reason = event.delta.stop_reason
                    self._container = event.delta.container or self._container
                self._count(event.usage)
            case "message_stop":
                self.done = True
            case "error":
                self._fail(stream_error(PROVIDER, event.error), events)
            case kind if kind != "ping":
                note_unknown(PROVIDER, "event", kind)
            case _:
                pass

    def _start(self, index: int, block: MessageBlock, events: list[ModelEvent]) -> None:
        self._began = True
        match block.type:
            case "text":
                self._open[index] = opened = self._part("text", "txt")
                events.append(TextStart(opened.id))
                if block.text:
                    events.append(TextDelta(opened.id, block.text))
            case "thinking":
                self._open[index] = opened = self._part("thinking", "rsn")
                events.append(ReasoningStart(opened.id))
                if block.thinking:
                    events.append(ReasoningDelta(opened.id, block.thinking))
            case "redacted_thinking":
                part_id = self._part("thinking", "rsn").id
                kept = {PROVIDER: {"redactedData": block.data or ""}}
                events.extend([ReasoningStart(part_id), ReasoningEnd(part_id, kept)])
            case "tool_use" | "server_tool_use" | "mcp_tool_use":
                self._start_call(index, block, events)
            case kind if kind.endswith(_RESULT):
                events.append(_server_result(block))
            case kind:
                note_unknown(PROVIDER, "content block", kind)

    def _part(self, kind: str, prefix: str) -> _Open:
        self._parts += 1
        return _Open(kind, f"{prefix}-{self._parts - 1}")

    def _start_call(self, index: int, block: MessageBlock, events: list[ModelEvent]) -> None:
        opened = _Open(block.type, block.id or f"call-{index}", block.name or "")
        self._open[index] = opened
        # Its input comes in deltas; servers that send it whole put it here.
        if block.input:
            opened.input.append(json.dumps(block.input))
        ours = block.type == "tool_use"
        events.append(ToolInputStart(opened.id, opened.name, provider_executed=not ours))

    def _grow(self, index: int, delta: MessageDelta, events: list[ModelEvent]) -> None:
        opened = self._open.get(index)
        if opened is None:
            return  # a block of an unknown kind
        if delta.text:
            events.append(TextDelta(opened.id, delta.text))
        elif delta.thinking:
            events.append(ReasoningDelta(opened.id, delta.thinking))
        elif delta.partial_json:
            opened.input.append(delta.partial_json)
            events.append(ToolInputDelta(opened.id, delta.partial_json))
        elif delta.signature:
            opened.signature += delta.signature
        elif delta.citation is not None:
            self._cite(delta.citation, events)
        elif delta.type not in _KNOWN_DELTAS:
            note_unknown(PROVIDER, "delta", delta.type)

    def _close(self, index: int, events: list[ModelEvent]) -> None:
        opened = self._open.pop(index, None)
        if opened is None:
            return
        match opened.kind:
            case "text":
                events.append(TextEnd(opened.id))
            case "thinking":
                signed = {PROVIDER: {"signature": opened.signature}} if opened.signature else None
                events.append(ReasoningEnd(opened.id, signed))
            case "tool_use":
                events.append(ToolCall(opened.id, opened.name, "".join(opened.input)))
            case kind:
                kept = {PROVIDER: {"type": kind}}
                text = "".join(opened.input)
                events.append(ToolCall(opened.id, opened.name, text, kept, provider_executed=True))

    def _cite(self, citation: dict[str, Any], events: list[ModelEvent]) -> None:
        """One source for everything that is cited from it."""
        url, title = citation.get("url"), citation.get("title") or citation.get("document_title")
        key = str(url or f"{citation.get('document_index')} {title}")
        if key in self._cited:
            return
        self._cited.add(key)
        source_id = f"{self._message.id or 'source'}-{len(self._cited)}"
        if isinstance(url, str):
            events.append(SourceUrl(source_id, url, cast("str | None", title)))
        else:
            name = str(title or f"Document {citation.get('document_index', 0)}")
            events.append(SourceDocument(source_id, "application/octet-stream", name))

    def _pause(self) -> dict[str, Any]:
        """What the request that goes on must name: the container in which tools have worked."""
        return {"container": self._container.id} if self._container else {}

    def _count(self, usage: MessageUsage | None) -> None:
        """Counts are told at the beginning and again, whole, at the end."""
        if usage is not None:
            told = {n: v for n in usage.__struct_fields__ if (v := getattr(usage, n)) is not None}
            self._usage = msgspec.structs.replace(self._usage, **told)


_KNOWN_DELTAS = frozenset(
    {"text_delta", "thinking_delta", "input_json_delta", "signature_delta", "citations_delta"}
)


def _server_result(block: MessageBlock) -> ToolResult:
    call_id, content = block.tool_use_id or "", block.content
    kept = {PROVIDER: {"type": block.type}}
    failed = cast("dict[str, Any]", content) if isinstance(content, dict) else {}
    if str(failed.get("type", "")).endswith("_error"):
        code = str(failed.get("error_code") or "failed")
        return ToolResult(call_id, error=code, provider_metadata=kept)
    return ToolResult(call_id, output=content, provider_metadata=kept)


def _read_usage(usage: MessageUsage) -> Usage:
    """All input tokens, cached ones included: what other providers count."""
    read, written = usage.cache_read_input_tokens, usage.cache_creation_input_tokens
    counted = [count for count in (usage.input_tokens, read, written) if count is not None]
    told = sum(counted) if counted else None
    total = None if told is None else told + (usage.output_tokens or 0)
    return Usage(
        input_tokens=told,
        output_tokens=usage.output_tokens,
        total_tokens=total,
        cached_input_tokens=read,
        cache_write_tokens=written,
    )
