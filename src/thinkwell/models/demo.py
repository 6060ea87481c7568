"""The model behind the first command: no key, no network, the same answer every time.

It thinks aloud, streams word by word and calls the tools that fit. What it will do follows from the
request alone (`demo_plan.py`), so a call that is repeated after a crash gives the same words, and a
conversation that ends in the beginning of an answer is continued from there.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import cast

import msgspec

from thinkwell.core import json
from thinkwell.core.errors import ModelError
from thinkwell.core.ids import new_id
from thinkwell.core.signal import AbortSignal
from thinkwell.messages.convert import without_closing_word
from thinkwell.messages.model_messages import AssistantMessage, ModelMessage
from thinkwell.messages.usage import Usage
from thinkwell.models.base import (
    Failure,
    Finish,
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
from thinkwell.models.demo_plan import DemoPlan, PlannedCall, plan, texts_of

_WORDS = re.compile(r"\s*\S+|\s+$")
_PIECE = 12
"""Characters of a tool's input per delta."""


class DemoModel:
    """A deterministic model for the demo and for trying things out."""

    def __init__(
        self, *, delay: float = 0.03, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    ) -> None:
        """`delay` is the pause between two words, in seconds."""
        self._delay = delay
        self._sleep = sleep

    @property
    def provider(self) -> str:
        """Always `demo`."""
        return "demo"

    @property
    def model_id(self) -> str:
        """Always `demo`."""
        return "demo"

    async def stream(self, request: ModelRequest, signal: AbortSignal) -> AsyncIterator[ModelEvent]:
        """Run one call. See `base.py` for the contract."""
        conversation = without_closing_word(request.messages)
        for event in _events(msgspec.structs.replace(request, messages=conversation)):
            if isinstance(event, TextDelta | ReasoningDelta | ToolInputDelta):
                await self._sleep(self._delay)
            if signal.aborted:
                return
            yield event


def _events(request: ModelRequest) -> Iterable[ModelEvent]:
    planned = plan(request)
    said = _beginning(request.messages)
    # Plain thoughts are not sent back, so only a text shows that an answer has begun.
    thought = [] if said else _words(planned.thought)
    words = _words(planned.text.removeprefix(said))
    yield from _reasoning(thought)
    yield from _text(words)
    for call in planned.calls:
        yield from _call(call)
    if planned.failure:
        yield Failure(ModelError(planned.failure, provider="demo"))
        return
    heard = sum(len(_words(text)) for text in texts_of(request.messages))
    yield _finish(planned, heard=heard, spoken=len(thought) + len(words))


def _reasoning(words: list[str]) -> Iterable[ModelEvent]:
    if words:
        yield ReasoningStart("rsn-0")
        yield from (ReasoningDelta("rsn-0", word) for word in words)
        yield ReasoningEnd("rsn-0")


def _text(words: list[str]) -> Iterable[ModelEvent]:
    if words:
        yield TextStart("txt-1")
        yield from (TextDelta("txt-1", word) for word in words)
        yield TextEnd("txt-1")


def _call(call: PlannedCall) -> Iterable[ModelEvent]:
    call_id = f"call_{new_id()}"
    arguments = json.dumps(call.arguments)
    yield ToolInputStart(call_id, call.tool_name)
    for start in range(0, len(arguments), _PIECE):
        yield ToolInputDelta(call_id, arguments[start : start + _PIECE])
    yield ToolCall(call_id, call.tool_name, arguments)


def _finish(planned: DemoPlan, *, heard: int, spoken: int) -> Finish:
    return Finish(
        reason="tool-calls" if planned.calls else "stop",
        usage=Usage(input_tokens=heard, output_tokens=spoken, total_tokens=heard + spoken),
        model_id="demo",
    )


def _beginning(messages: tuple[ModelMessage, ...]) -> str:
    """The part of the answer that is there already, when an interrupted call is repeated."""
    last = messages[-1] if messages else None
    return "".join(texts_of([last])) if isinstance(last, AssistantMessage) else ""


def _words(text: str) -> list[str]:
    return cast("list[str]", _WORDS.findall(text))
