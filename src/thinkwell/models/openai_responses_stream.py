"""The events of an OpenAI response as model events.

Owns what lies between the payloads of one call: the open output items, the usage and how it ended.
`answer_stream.py` has the reading loop. Kinds of events and items that are not known here are
passed over and logged once: the API grows by adding them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from thinkwell.messages.usage import Usage
from thinkwell.models.answer_stream import AnswerStream
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
)
from thinkwell.models.openai_responses_events import (
    ResponseEvent,
    ResponseFrame,
    ResponseUsage,
)
from thinkwell.models.openai_responses_request import PROVIDER
from thinkwell.models.openai_server_tools import SERVER_CALLS, server_call
from thinkwell.models.provider_errors import cut_stream, stream_error
from thinkwell.models.unknown_kinds import note_unknown

_INCOMPLETE: dict[str, FinishReason] = {
    "max_output_tokens": "length",
    "content_filter": "content-filter",
}
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


class ResponseStream(AnswerStream):
    """The state of one streamed response."""

    frame = ResponseEvent

    def __init__(self) -> None:
        super().__init__(PROVIDER)
        self._open: dict[int, _Open] = {}
        self._response = ResponseFrame()
        self._ended = ""
        self._began = False
        self._called = False
        self._refused = False
        self._cited: set[str] = set()

    def _end(
        self, events: list[ModelEvent], headers: Mapping[str, str], warnings: tuple[str, ...]
    ) -> None:
        if not self._ended:
            events.append(Failure(cut_stream(PROVIDER, empty=not self._began)))
            return
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

    def _kept_state(self) -> dict[str, Any]:
        """What the rest of the answer cannot be read without, as JSON data."""
        state: dict[str, Any] = {}
        if self._open:
            state["open"] = [
                [index, each.kind, each.id, each.name, each.text]
                for index, each in self._open.items()
            ]
        if self._called or self._refused:
            state["called"], state["refused"] = self._called, self._refused
        if self._cited:
            state["cited"] = sorted(self._cited)
        return state

    def _take_up(self, state: Mapping[str, Any]) -> None:
        """Go on from what `_kept_state` said."""
        for index, kind, item_id, name, text in state.get("open", ()):
            self._open[index] = opened = _Open(kind, item_id, name)
            opened.text = text
        self._called, self._refused = state.get("called", False), state.get("refused", False)
        self._cited.update(state.get("cited", ()))

    def _take(self, event: ResponseEvent, events: list[ModelEvent]) -> None:
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
            case "response.failed" | "response.cancelled" | "error":
                self._fail(stream_error(PROVIDER, _said_error(event)), events)
            case kind:
                self._pass_over(kind, event)

    def _pass_over(self, kind: str, event: ResponseEvent) -> None:
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
            case kind if kind in SERVER_CALLS:
                self._open[index] = called = _Open(kind, item_id, kind.removesuffix("_call"))
                events.append(ToolInputStart(called.id, called.name, provider_executed=True))
            case kind:
                note_unknown(PROVIDER, "output item", kind)

    def _say(self, event: ResponseEvent, events: list[ModelEvent]) -> None:
        opened = self._open.get(event.output_index)
        if opened is None:  # servers that leave the item out begin with its text
            opened = self._open[event.output_index] = _Open("message", f"item-{event.output_index}")
        if not opened.text:
            opened.text = True
            events.append(TextStart(opened.id))
        if event.delta:
            events.append(TextDelta(opened.id, event.delta))

    def _write(self, event: ResponseEvent, events: list[ModelEvent]) -> None:
        opened = self._open.get(event.output_index)
        if opened is not None and event.delta:
            opened.input.append(event.delta)
            events.append(ToolInputDelta(opened.id, event.delta))

    def _think(self, event: ResponseEvent, events: list[ModelEvent]) -> None:
        opened = self._open.get(event.output_index)
        if opened is not None and event.delta:
            opened.text = True
            events.append(ReasoningDelta(opened.id, event.delta))

    def _next_summary(self, event: ResponseEvent, events: list[ModelEvent]) -> None:
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
                events.extend(server_call(opened.kind, opened.id, item))

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

    def _raw_reason(self) -> str:
        details = self._response.incomplete_details
        return details.reason if details and details.reason else self._ended.partition(".")[2]

    def _reason(self) -> FinishReason:
        if self._ended == "response.incomplete":
            return _INCOMPLETE.get(self._raw_reason(), "other")
        if self._called:
            return "tool-calls"
        return "content-filter" if self._refused else "stop"


def _said_error(event: ResponseEvent) -> Any:
    if event.response is not None and event.response.error:
        return event.response.error
    return event.error or {"code": event.code, "message": event.message or event.type}


def _read_usage(usage: ResponseUsage | None) -> Usage:
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
