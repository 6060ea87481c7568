"""The bridge: a pydantic-ai model behind our Protocol, for every provider without a native adapter.

Owns the calls into pydantic-ai (its model layer, never its `Agent`) and the translation of its
stream events; `pydantic_ai_messages.py` translates the request. A model object is recognised by the
modules of its classes, so that nobody pays for the import who does not use it. Its errors become a
`Failure`; an abort cancels the stream and then it simply ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, cast

from thinkwell.core import json
from thinkwell.core.errors import MissingExtraError, ModelError
from thinkwell.core.signal import AbortSignal
from thinkwell.messages.usage import Usage
from thinkwell.models.base import (
    Failure,
    FilePart,
    Finish,
    FinishReason,
    ModelEvent,
    ModelRequest,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputStart,
)
from thinkwell.models.provider_errors import is_retryable

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse, ModelResponsePart, ModelResponseStreamEvent
    from pydantic_ai.models import Model as PydanticModel
    from pydantic_ai.models import StreamedResponse

_FINISH_REASONS: dict[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "content_filter": "content-filter",
    "tool_call": "tool-calls",
    "error": "error",
}


def infer(name: str) -> PydanticAIModel:
    """The model that pydantic-ai knows by this `provider:name`. Raises what pydantic-ai raises."""
    try:
        from pydantic_ai.models import infer_model
    except ImportError as error:
        raise MissingExtraError(f"The model {name!r}", "pydantic-ai") from error
    return PydanticAIModel(infer_model(name))


class PydanticAIModel:
    """A pydantic-ai model that speaks our Protocol."""

    def __init__(self, model: PydanticModel[Any]) -> None:
        self._model = model

    @property
    def provider(self) -> str:
        """The provider as pydantic-ai calls it."""
        return self._model.system

    @property
    def model_id(self) -> str:
        """The provider's name for the model."""
        return self._model.model_name

    async def stream(self, request: ModelRequest, signal: AbortSignal) -> AsyncIterator[ModelEvent]:
        """Run one call. See `base.py` for the contract."""
        if signal.aborted:
            return
        # Their stream is a context manager bound to one task, and an abort must be able to end it
        # while it waits; so it runs in a task of its own that hands the events over.
        events: asyncio.Queue[ModelEvent | None] = asyncio.Queue(maxsize=1)
        task = asyncio.get_running_loop().create_task(self._run(request, events))
        dispose = signal.add_listener(lambda _: cast("None", task.cancel()))
        task.add_done_callback(lambda _: _wake_after_cancel(task, events))
        try:
            while (event := await events.get()) is not None and not signal.aborted:
                yield event
                if isinstance(event, Finish | Failure):
                    return
        finally:
            dispose()
            task.cancel()
            await asyncio.wait([task])

    async def _run(self, request: ModelRequest, events: asyncio.Queue[ModelEvent | None]) -> None:
        from thinkwell.models.pydantic_ai_messages import build_call

        try:
            messages, settings, parameters = build_call(request, self.provider)
            prepared = self._model.prepare_messages(messages, parameters)
            async with self._model.request_stream(prepared, settings, parameters) as response:
                parts = _Parts()
                async for event in response:
                    for translated in parts.translate(event):
                        await events.put(translated)
                await events.put(_finish(response, made_calls=parts.made_calls))
        except Exception as error:  # noqa: BLE001 - told as the terminal event
            await events.put(Failure(_wrap(error, self.provider)))


def _wake_after_cancel(task: asyncio.Task[None], events: asyncio.Queue[ModelEvent | None]) -> None:
    """Only a cancelled task ends without a terminal event; its reader must not wait for one."""
    if task.cancelled():
        if events.full():
            events.get_nowait()
        events.put_nowait(None)


class _Parts:
    """Translates the events of one call. Parts are told apart by pydantic-ai's index."""

    def __init__(self) -> None:
        self.made_calls = False

    def translate(self, event: ModelResponseStreamEvent) -> list[ModelEvent]:
        """Our events for one of theirs; none for those that carry nothing."""
        match event.event_kind:
            case "part_start":
                return self._start(event.index, event.part)
            case "part_delta":
                return self._delta(event.index, event.delta)
            case "part_end":
                return self._end(event.index, event.part)
            case _:
                return []

    def _start(self, index: int, part: ModelResponsePart) -> list[ModelEvent]:
        match part.part_kind:
            case "text":
                first = [TextDelta(f"txt-{index}", part.content)] if part.content else []
                return [TextStart(f"txt-{index}"), *first]
            case "thinking":
                first = [ReasoningDelta(f"rsn-{index}", part.content)] if part.content else []
                return [ReasoningStart(f"rsn-{index}"), *first]
            case "tool-call":
                return self._start_call(part.tool_call_id, part.tool_name, part.args)
            case "file":
                return [FilePart(part.content.data_uri, part.content.media_type)]
            case _:
                return []

    def _start_call(self, call_id: str, name: str, arguments: Any) -> list[ModelEvent]:
        self.made_calls = True
        start = ToolInputStart(call_id, name)
        written = _arguments_text(arguments)
        return [start, ToolInputDelta(call_id, written)] if written else [start]

    def _delta(self, index: int, delta: Any) -> list[ModelEvent]:
        match delta.part_delta_kind:
            case "text" if delta.content_delta:
                return [TextDelta(f"txt-{index}", delta.content_delta)]
            case "thinking" if delta.content_delta:
                return [ReasoningDelta(f"rsn-{index}", delta.content_delta)]
            case "tool_call" if delta.args_delta and delta.tool_call_id:
                written = _arguments_text(delta.args_delta)
                return [ToolInputDelta(delta.tool_call_id, written)]
            case _:
                return []

    def _end(self, index: int, part: ModelResponsePart) -> list[ModelEvent]:
        match part.part_kind:
            case "text":
                return [TextEnd(f"txt-{index}", _metadata(part))]
            case "thinking":
                return [ReasoningEnd(f"rsn-{index}", _metadata(part))]
            case "tool-call":
                arguments = _arguments_text(part.args)
                return [ToolCall(part.tool_call_id, part.tool_name, arguments, _metadata(part))]
            case _:
                return []


def _arguments_text(arguments: Any) -> str:
    if not arguments:
        return ""
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def _metadata(part: Any) -> dict[str, Any] | None:
    """What the provider wants to see again, under one key so that it is only given back here."""
    kept = {
        name: value
        for name in ("id", "signature", "provider_name", "provider_details")
        if (value := getattr(part, name, None))
    }
    return {"pydanticAi": kept} if kept else None


def _finish(response: StreamedResponse, *, made_calls: bool) -> Finish:
    whole: ModelResponse = response.get()
    raw = whole.finish_reason or ""
    assumed: FinishReason = "tool-calls" if made_calls else "stop"
    reason = _FINISH_REASONS.get(raw, "other") if raw else assumed
    return Finish(
        reason="tool-calls" if made_calls and reason == "stop" else reason,
        raw_reason=raw,
        usage=_usage(whole.usage),
        response_id=whole.provider_response_id,
        model_id=whole.model_name,
    )


def _usage(usage: Any) -> Usage:
    if not usage.has_values():
        return Usage()
    return Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        total_tokens=usage.input_tokens + usage.output_tokens,
        reasoning_tokens=usage.output_reasoning_tokens or None,
        cached_input_tokens=usage.cache_read_tokens or None,
        cache_write_tokens=usage.cache_write_tokens or None,
    )


def _wrap(error: Exception, provider: str) -> Exception:
    from pydantic_ai.exceptions import ModelAPIError, ModelConnectionError

    lost = isinstance(error, ModelConnectionError) or _is_transport(error)
    if not isinstance(error, ModelAPIError) and not lost:
        return error
    status = getattr(error, "status_code", None)
    wrapped = ModelError(
        str(error) or type(error).__name__,
        provider=provider,
        status=status,
        body=str(getattr(error, "body", None) or ""),
        retryable=is_retryable(status) or lost,
        retry_after=getattr(error, "retry_after", None),
        cut=lost,
    )
    wrapped.__cause__ = error
    return wrapped


def _is_transport(error: Exception) -> bool:
    """A lost connection that comes as its library raised it, which we do not import."""
    return isinstance(error, ConnectionError) or any(
        base.__name__ == "TransportError" and base.__module__.partition(".")[0] in _TRANSPORTS
        for base in type(error).__mro__
    )


_TRANSPORTS = frozenset({"httpx", "httpx2"})
