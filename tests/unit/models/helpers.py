"""What the model tests share."""

from collections.abc import AsyncIterator, Iterable
from typing import Any

from thinkwell.core.signal import AbortController, AbortSignal
from thinkwell.messages.model_messages import TextContent, UserMessage
from thinkwell.models.base import (
    Failure,
    Finish,
    Model,
    ModelEvent,
    ModelRequest,
    ReasoningDelta,
    TextDelta,
    ToolCall,
)


def request(text: str = "hi", **fields: Any) -> ModelRequest:
    """A request with one user message."""
    return ModelRequest(messages=(UserMessage((TextContent(text),)),), **fields)


async def collect(
    model: Model, asked: ModelRequest | None = None, signal: AbortSignal | None = None
) -> list[ModelEvent]:
    """All events of one call."""
    stream: AsyncIterator[ModelEvent] = model.stream(
        asked or request(), signal or AbortController().signal
    )
    return [event async for event in stream]


def text_of(events: Iterable[ModelEvent]) -> str:
    return "".join(event.delta for event in events if isinstance(event, TextDelta))


def reasoning_of(events: Iterable[ModelEvent]) -> str:
    return "".join(event.delta for event in events if isinstance(event, ReasoningDelta))


def calls_of(events: Iterable[ModelEvent]) -> list[tuple[str, str, str]]:
    return [(e.tool_call_id, e.tool_name, e.input) for e in events if isinstance(e, ToolCall)]


def finish_of(events: list[ModelEvent]) -> Finish:
    """The terminal event of a call that ended well; exactly one, and last."""
    terminal = [event for event in events if isinstance(event, Finish | Failure)]
    assert terminal == events[-1:], f"expected one terminal event at the end, got {terminal}"
    assert isinstance(events[-1], Finish), f"expected a Finish, got {events[-1]}"
    return events[-1]


def failure_of(events: list[ModelEvent]) -> Any:
    """The error of a call that failed; the only terminal event, and last."""
    terminal = [event for event in events if isinstance(event, Finish | Failure)]
    assert terminal == events[-1:], f"expected one terminal event at the end, got {terminal}"
    assert isinstance(events[-1], Failure), f"expected a Failure, got {events[-1]}"
    return events[-1].error
