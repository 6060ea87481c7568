"""Chat-completion chunks as model events.

Owns the bookkeeping between the payloads of one call: which text or reasoning part is open, which
tool calls are being written, the usage and the finish reason. `answer_stream.py` has the reading
loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from thinkwell.core.ids import new_id
from thinkwell.messages.usage import Usage
from thinkwell.models import chat_extras
from thinkwell.models.answer_stream import AnswerStream
from thinkwell.models.base import (
    Failure,
    Finish,
    FinishReason,
    ModelEvent,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    SourceUrl,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputStart,
)
from thinkwell.models.provider_errors import cut_stream, stream_error

_FINISH_REASONS: dict[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "content_filter": "content-filter",
    "tool_calls": "tool-calls",
    "function_call": "tool-calls",
    # What servers say that only speak the protocol: Together, Mistral, DeepSeek and OpenRouter.
    "eos": "stop",
    "model_length": "length",
    "insufficient_system_resource": "error",
    "error": "error",
}


class _Function(msgspec.Struct, gc=False):
    name: str | None = None
    arguments: str | None = None


class _ToolDelta(msgspec.Struct, gc=False):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Delta(msgspec.Struct, gc=False):
    content: str | list[Any] | None = None
    """A list from Mistral's models that think: pieces of text and of thought."""
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: list[_ToolDelta] | None = None
    images: list[Any] | None = None
    """From OpenRouter, for models that draw."""
    annotations: list[Any] | None = None
    """From models that search."""


class _Choice(msgspec.Struct, gc=False):
    delta: _Delta | None = None
    finish_reason: str | None = None


class _InputDetails(msgspec.Struct, gc=False):
    cached_tokens: int | None = None


class _OutputDetails(msgspec.Struct, gc=False):
    reasoning_tokens: int | None = None


class _Usage(msgspec.Struct, gc=False):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    prompt_cache_hit_tokens: int | None = None
    """What DeepSeek says instead of details."""
    prompt_tokens_details: _InputDetails | None = None
    completion_tokens_details: _OutputDetails | None = None


class _Chunk(msgspec.Struct, gc=False):
    id: str | None = None
    model: str | None = None
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    citations: list[Any] | None = None
    """Pages, from xAI and Perplexity: all of them, again and again."""
    error: Any = None


class _OpenCall:
    """A tool call whose arguments are still coming."""

    __slots__ = ("arguments", "id", "name", "started")

    def __init__(self, call_id: str) -> None:
        self.id = call_id
        self.name = ""
        self.arguments: list[str] = []
        self.started = False


class ChatStream(AnswerStream):
    """The state of one streamed call."""

    frame = _Chunk
    mark_ends = True

    def __init__(self, provider: str) -> None:
        super().__init__(provider)
        self._text_id = ""
        self._reasoning_id = ""
        self._parts = 0
        self._calls: list[_OpenCall] = []
        self._call_at: dict[int, _OpenCall] = {}
        self._raw_reason: str | None = None
        self._usage: _Usage | None = None
        self._response_id: str | None = None
        self._model_id: str | None = None
        self._saw_choice = False
        self._sources: dict[str, SourceUrl] = {}

    def _end(
        self, events: list[ModelEvent], headers: Mapping[str, str], warnings: tuple[str, ...]
    ) -> None:
        if not self._saw_choice or (not self.done and self._raw_reason is None):
            events.append(Failure(cut_stream(self._provider, empty=not self._saw_choice)))
            return
        self._close_part(events)
        for call in self._calls:
            self._start_call(call, events)
            events.append(ToolCall(call.id, call.name, "".join(call.arguments)))
        events.append(
            Finish(
                reason=self._reason(),
                raw_reason=self._raw_reason or "",
                usage=_usage(self._usage),
                response_id=self._response_id,
                model_id=self._model_id,
                headers=headers,
                warnings=warnings,
            )
        )

    def _take(self, event: _Chunk, events: list[ModelEvent]) -> None:
        if event.error is not None:
            self._fail(stream_error(self._provider, event.error), events)
            return
        if event.choices:
            choice = event.choices[0]
            self._saw_choice = True
            if choice.delta is not None:
                self._take_delta(choice.delta, events)
            if choice.finish_reason:
                self._raw_reason = choice.finish_reason
        if event.usage is not None:
            self._usage = event.usage
        if event.citations:
            self._cite(chat_extras.urls_in(event.citations), events)
        if self._response_id is None:
            self._response_id = event.id
            self._model_id = event.model

    def _take_delta(self, delta: _Delta, events: list[ModelEvent]) -> None:
        if thought := delta.reasoning_content or delta.reasoning:
            if not self._reasoning_id:
                self._open_reasoning(events)
            events.append(ReasoningDelta(self._reasoning_id, thought))
        content = delta.content
        if isinstance(content, list):
            self._take_pieces(content, events)
        elif text := content or delta.refusal:
            if not self._text_id:
                self._open_text(events)
            events.append(TextDelta(self._text_id, text))
        for call in delta.tool_calls or ():
            self._take_call(call, events)
        if delta.images:
            events.extend(chat_extras.files_in(delta.images))
        if delta.annotations:
            self._cite(chat_extras.citations_in(delta.annotations), events)

    def _take_pieces(self, pieces: list[Any], events: list[ModelEvent]) -> None:
        for text, thought in chat_extras.pieces_in(pieces):
            said = _Delta(reasoning=text) if thought else _Delta(content=text)
            self._take_delta(said, events)

    def _cite(self, pages: Iterable[tuple[str, str | None]], events: list[ModelEvent]) -> None:
        for url, title in pages:
            if url not in self._sources:
                source = SourceUrl(f"src-{len(self._sources) + 1}", url, title)
                self._sources[url] = source
                events.append(source)

    def _open_text(self, events: list[ModelEvent]) -> None:
        self._close_part(events)
        self._text_id = f"txt-{self._parts}"
        self._parts += 1
        events.append(TextStart(self._text_id))

    def _open_reasoning(self, events: list[ModelEvent]) -> None:
        self._close_part(events)
        self._reasoning_id = f"rsn-{self._parts}"
        self._parts += 1
        events.append(ReasoningStart(self._reasoning_id))

    def _close_part(self, events: list[ModelEvent]) -> None:
        if self._text_id:
            events.append(TextEnd(self._text_id))
            self._text_id = ""
        elif self._reasoning_id:
            events.append(ReasoningEnd(self._reasoning_id))
            self._reasoning_id = ""

    def _take_call(self, delta: _ToolDelta, events: list[ModelEvent]) -> None:
        self._close_part(events)
        call = self._find_call(delta)
        function = delta.function or _Function()
        if function.name and not call.name:
            call.name = function.name
            self._start_call(call, events)
        if function.arguments:
            call.arguments.append(function.arguments)
            if call.started:
                events.append(ToolInputDelta(call.id, function.arguments))

    def _find_call(self, delta: _ToolDelta) -> _OpenCall:
        index = delta.index
        if index is None:
            # Providers that leave the index out send an id with each new call.
            index = len(self._calls) if delta.id or not self._calls else len(self._calls) - 1
        call = self._call_at.get(index)
        # Some providers give every parallel call the index 0; a new id tells them apart.
        if call is None or (delta.id and delta.id != call.id):
            call = self._call_at[index] = _OpenCall(delta.id or f"call_{new_id()}")
            self._calls.append(call)
        return call

    def _start_call(self, call: _OpenCall, events: list[ModelEvent]) -> None:
        if call.started:
            return
        call.started = True
        events.append(ToolInputStart(call.id, call.name))
        events.extend(ToolInputDelta(call.id, piece) for piece in call.arguments)

    def _reason(self) -> FinishReason:
        reason = _FINISH_REASONS.get(self._raw_reason or "", "other")
        return "tool-calls" if self._calls and reason == "stop" else reason


def _usage(usage: _Usage | None) -> Usage:
    if usage is None:
        return Usage()
    inputs, outputs = usage.prompt_tokens_details, usage.completion_tokens_details
    cached = inputs.cached_tokens if inputs else None
    return Usage(
        input_tokens=usage.prompt_tokens,
        output_tokens=usage.completion_tokens,
        total_tokens=usage.total_tokens,
        reasoning_tokens=outputs.reasoning_tokens if outputs else None,
        cached_input_tokens=usage.prompt_cache_hit_tokens if cached is None else cached,
    )
