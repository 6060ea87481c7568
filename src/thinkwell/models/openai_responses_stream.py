"""The events of an OpenAI response as model events.

Owns the decoding of the payloads of one call and what lies between them: the open output items, the
usage and how it ended. Pure (bytes in, events out); connections, aborts and HTTP errors are
`provider_http.py`'s. Kinds of events and items that are not known here are passed over and logged
once: the API grows by adding them.
"""

from __future__ import annotations

import json as stdlib_json
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from thinkwell.core import json
from thinkwell.messages.usage import Usage
from thinkwell.models.base import (
    Failure,
    FilePart,
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
from thinkwell.models.openai_responses_request import PROVIDER
from thinkwell.models.provider_errors import cut_stream, stream_error, unreadable
from thinkwell.models.sse import SsePayloads
from thinkwell.models.unknown_kinds import note_unknown

_INCOMPLETE: dict[str, FinishReason] = {
    "max_output_tokens": "length",
    "content_filter": "content-filter",
}
_SERVER_CALLS = {
    "web_search_call": ("action",),
    "file_search_call": ("queries",),
    "code_interpreter_call": ("code", "container_id"),
    "image_generation_call": ("revised_prompt",),
    "mcp_call": ("name", "arguments", "server_label"),
    "local_shell_call": ("action",),
}
"""Items of tools that OpenAI runs, and which of their fields are the input."""
_PASSED_OVER = frozenset(
    {
        *("response.created", "response.in_progress", "response.queued", "keepalive"),
        *("response.content_part.added", "response.content_part.done"),
        *("response.output_text.done", "response.refusal.done"),
        *("response.function_call_arguments.done", "response.reasoning_summary_text.done"),
        *("response.reasoning_summary_part.done", "response.reasoning_text.done"),
        *("response.mcp_call_arguments.delta", "response.mcp_call_arguments.done"),
        *("response.code_interpreter_call_code.delta", "response.code_interpreter_call_code.done"),
        *("response.image_generation_call.partial_image",),
    }
)
"""Events that say again what another one says, or what nobody waits for."""


class _InputDetails(msgspec.Struct, gc=False):
    cached_tokens: int | None = None


class _OutputDetails(msgspec.Struct, gc=False):
    reasoning_tokens: int | None = None


class _Usage(msgspec.Struct, gc=False):
    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    input_tokens_details: _InputDetails | None = None
    output_tokens_details: _OutputDetails | None = None


class _Incomplete(msgspec.Struct, gc=False):
    reason: str = ""


class _Response(msgspec.Struct):
    id: str | None = None
    model: str | None = None
    usage: _Usage | None = None
    error: Any = None
    incomplete_details: _Incomplete | None = None
    service_tier: str | None = None


class _Event(msgspec.Struct):
    type: str
    delta: str | None = None
    output_index: int = 0
    item: dict[str, Any] | None = None
    annotation: dict[str, Any] | None = None
    response: _Response | None = None
    summary_index: int = 0
    error: Any = None
    code: Any = None
    message: str | None = None


class _Open:
    """An output item that is being written."""

    __slots__ = ("id", "input", "kind", "name", "summaries", "text")

    def __init__(self, kind: str, item_id: str, name: str = "") -> None:
        self.kind = kind
        self.id = item_id
        self.name = name
        self.input: list[str] = []
        self.text = False
        """A text part is open."""
        self.summaries = 0


_decode = msgspec.json.Decoder(_Event).decode


class ResponseStream:
    """The state of one streamed response. `done` is true once nothing more is to be read."""

    def __init__(self) -> None:
        self._payloads = SsePayloads()
        self._open: dict[int, _Open] = {}
        self._response = _Response()
        self._ended = ""
        self._began = False
        self._called = False
        self._refused = False
        self._cited: set[str] = set()
        self.done = False
        self.failed = False

    def feed(self, chunk: bytes) -> list[ModelEvent]:
        """The events of one socket chunk."""
        return self._take_all(self._payloads.feed(chunk))

    def end(self, headers: Mapping[str, str], warnings: tuple[str, ...]) -> list[ModelEvent]:
        """The last events, once the stream is over; the final one is terminal."""
        events = self._take_all(self._payloads.flush())
        if self.failed:
            return events
        if not self._ended:
            return [*events, Failure(cut_stream(PROVIDER, empty=not self._began))]
        for index in list(self._open):
            self._close(index, {}, events)
        response = self._response
        tier = response.service_tier
        events.append(
            Finish(
                reason=self._reason(),
                raw_reason=self._raw_reason(),
                usage=_read_usage(response.usage),
                response_id=response.id,
                model_id=response.model,
                headers=headers,
                provider_metadata={PROVIDER: {"serviceTier": tier}} if tier else None,
                warnings=warnings,
            )
        )
        return events

    def _take_all(self, payloads: list[bytes]) -> list[ModelEvent]:
        events: list[ModelEvent] = []
        for payload in payloads:
            if self.done:
                break
            if not payload or payload == b"[DONE]":
                continue
            try:
                event = _decode_event(payload)
            except ValueError as error:
                self._fail(unreadable(PROVIDER, payload, error), events)
                break
            self._take(event, events)
        return events

    def _take(self, event: _Event, events: list[ModelEvent]) -> None:
        match event.type:
            case "response.output_text.delta" | "response.refusal.delta":
                self._refused = self._refused or event.type == "response.refusal.delta"
                self._say(event, events)
            case "response.function_call_arguments.delta":
                self._write(event, events)
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                self._think(event, events)
            case "response.output_item.added":
                self._start(event.output_index, event.item or {}, events)
            case "response.output_item.done":
                self._close(event.output_index, event.item or {}, events)
            case "response.output_text.annotation.added":
                self._cite(event.annotation or {}, events)
            case "response.reasoning_summary_part.added":
                self._next_summary(event, events)
            case "response.completed" | "response.incomplete":
                self._ended = event.type
                self._response = event.response or self._response
                self.done = True
            case "response.failed" | "error":
                self._fail(stream_error(PROVIDER, _said_error(event)), events)
            case kind:
                self._pass_over(kind, event)

    def _pass_over(self, kind: str, event: _Event) -> None:
        self._began = True
        if event.response is not None:
            self._response = event.response
        if kind not in _PASSED_OVER and "_call." not in kind:
            note_unknown(PROVIDER, "event", kind)

    def _start(self, index: int, item: dict[str, Any], events: list[ModelEvent]) -> None:
        self._began = True
        kind = str(item.get("type"))
        item_id = str(item.get("id") or f"item-{index}")
        match kind:
            case "message":
                self._open[index] = _Open(kind, item_id)
            case "reasoning":
                self._open[index] = _Open(kind, item_id)
                events.append(ReasoningStart(item_id))
            case "function_call":
                called = _Open(kind, str(item.get("call_id") or item_id), str(item.get("name")))
                self._open[index] = called
                self._called = True
                events.append(ToolInputStart(called.id, called.name))
            case kind if kind in _SERVER_CALLS:
                self._open[index] = called = _Open(kind, item_id, kind.removesuffix("_call"))
                events.append(ToolInputStart(called.id, called.name, provider_executed=True))
            case kind:
                note_unknown(PROVIDER, "output item", kind)

    def _say(self, event: _Event, events: list[ModelEvent]) -> None:
        opened = self._open.get(event.output_index)
        if opened is None:  # servers that leave the item out begin with its text
            opened = self._open[event.output_index] = _Open("message", f"item-{event.output_index}")
        if not opened.text:
            opened.text = True
            events.append(TextStart(opened.id))
        if event.delta:
            events.append(TextDelta(opened.id, event.delta))

    def _write(self, event: _Event, events: list[ModelEvent]) -> None:
        opened = self._open.get(event.output_index)
        if opened is not None and event.delta:
            opened.input.append(event.delta)
            events.append(ToolInputDelta(opened.id, event.delta))

    def _think(self, event: _Event, events: list[ModelEvent]) -> None:
        opened = self._open.get(event.output_index)
        if opened is not None and event.delta:
            opened.text = True
            events.append(ReasoningDelta(opened.id, event.delta))

    def _next_summary(self, event: _Event, events: list[ModelEvent]) -> None:
        """Several summaries of one thought become its paragraphs."""
        opened = self._open.get(event.output_index)
        if opened is not None and opened.text and event.summary_index:
            events.append(ReasoningDelta(opened.id, "\n\n"))

    def _close(self, index: int, item: dict[str, Any], events: list[ModelEvent]) -> None:
        opened = self._open.pop(index, None)
        if opened is None:
            return
        match opened.kind:
            case "message":
                if opened.text:
                    events.append(TextEnd(opened.id))
            case "reasoning":
                kept = {"itemId": opened.id}
                if encrypted := item.get("encrypted_content"):
                    kept["encryptedContent"] = encrypted
                events.append(ReasoningEnd(opened.id, {PROVIDER: kept}))
            case "function_call":
                arguments = item.get("arguments") or "".join(opened.input)
                events.append(ToolCall(opened.id, opened.name, cast("str", arguments)))
            case _:
                events.extend(_server_call(opened, item))

    def _cite(self, annotation: dict[str, Any], events: list[ModelEvent]) -> None:
        """One source for everything that is cited from it."""
        url, file_id = annotation.get("url"), annotation.get("file_id")
        key = str(url or file_id or annotation.get("filename"))
        if key in self._cited:
            return
        self._cited.add(key)
        source_id = f"{self._response.id or 'source'}-{len(self._cited)}"
        title = annotation.get("title")
        if isinstance(url, str):
            events.append(SourceUrl(source_id, url, cast("str | None", title)))
        else:
            name = cast("str | None", annotation.get("filename"))
            document = SourceDocument(source_id, "application/octet-stream", name or key, name)
            events.append(document)

    def _fail(self, error: Exception, events: list[ModelEvent]) -> None:
        self.done = self.failed = True
        events.append(Failure(error))

    def _raw_reason(self) -> str:
        details = self._response.incomplete_details
        return details.reason if details and details.reason else self._ended.partition(".")[2]

    def _reason(self) -> FinishReason:
        if self._ended == "response.incomplete":
            return _INCOMPLETE.get(self._raw_reason(), "other")
        if self._called:
            return "tool-calls"
        return "content-filter" if self._refused else "stop"


def _server_call(opened: _Open, item: dict[str, Any]) -> list[ModelEvent]:
    """A call that OpenAI ran: its item holds input and result."""
    asked = {name: item[name] for name in _SERVER_CALLS[opened.kind] if item.get(name) is not None}
    given = {"id", "type", *_SERVER_CALLS[opened.kind]}
    found = {name: value for name, value in item.items() if name not in given}
    events: list[ModelEvent] = []
    image = found.pop("result", None) if opened.kind == "image_generation_call" else None
    if isinstance(image, str) and image:
        kind = str(item.get("output_format") or "png")
        events.append(FilePart(f"data:image/{kind};base64,{image}", f"image/{kind}"))
    # A picture is too large to be kept twice; its call is told as text when it is sent back.
    kept = {} if opened.kind == "image_generation_call" else {"item": item}
    call = ToolCall(
        opened.id, opened.name, json.dumps(asked), {PROVIDER: kept}, provider_executed=True
    )
    error = item.get("error")
    if error or item.get("status") == "failed":
        return [call, *events, ToolResult(opened.id, error=_error_text(error))]
    return [call, *events, ToolResult(opened.id, output=found)]


def _error_text(error: object) -> str:
    return error if isinstance(error, str) else json.dumps(error) if error else "The call failed."


def _said_error(event: _Event) -> Any:
    if event.response is not None and event.response.error:
        return event.response.error
    return event.error or {"code": event.code, "message": event.message or event.type}


def _decode_event(payload: bytes) -> _Event:
    try:
        return _decode(payload)
    except ValueError:
        # Half of a surrogate pair, when an emoji was cut between two deltas: msgspec refuses it.
        return msgspec.convert(json.to_jsonable(stdlib_json.loads(payload)), _Event)


def _read_usage(usage: _Usage | None) -> Usage:
    if usage is None:
        return Usage()
    inputs, outputs = usage.input_tokens_details, usage.output_tokens_details
    return Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        total_tokens=usage.total_tokens,
        reasoning_tokens=outputs.reasoning_tokens if outputs else None,
        cached_input_tokens=inputs.cached_tokens if inputs else None,
    )
