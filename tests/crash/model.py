"""A model that keeps nothing in memory: what it has said it reads from the conversation.

Like a real one it goes on from partial text when it is asked to continue, calls a tool again whose
input was cut off, and does not repeat a call whose outcome is unknown. Unlike a real one it is loud:
a conversation that does not fit its plan (text doubled, lost, or out of order) fails the call, and
every call is written down in `calls.jsonl`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.crash.plan import Plan, PlannedCall, PlannedStep, is_question, pieces, read_plan
from thinkwell.core.ids import new_id
from thinkwell.core.signal import AbortSignal
from thinkwell.messages.model_messages import (
    AssistantMessage,
    ModelMessage,
    TextContent,
    ToolCallContent,
    ToolMessage,
    UserMessage,
)
from thinkwell.messages.usage import Usage
from thinkwell.models.base import (
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
from thinkwell.turn.tool_calls import INPUT_CUT

PAUSE = 0.001


@dataclass
class Said:
    """How far a step has come."""

    text: str = ""
    calls: set[str] = field(default_factory=set)

    def ends(self, step: PlannedStep) -> bool:
        return bool(self.calls) and self.calls == {call.note for call in step.calls}


class PlannedModel:
    """See the module docstring."""

    provider = "planned"
    model_id = "planned"

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def stream(self, request: ModelRequest, signal: AbortSignal) -> AsyncIterator[ModelEvent]:
        plan, number, said = where_it_stands(request.messages)
        step = plan.steps[number]
        assert step.text.startswith(said.text), f"{said.text!r} is no beginning of {step.text!r}"
        write_line(self._folder / "calls.jsonl", {"label": plan.label, "step": number})
        if step.thought and not said.text and not said.calls:
            async for event in self._think(step.thought):
                yield event
        async for event in self._talk(step, len(said.text)):
            yield event
        missing = [call for call in step.calls if call.note not in said.calls]
        for call in missing:
            async for event in self._call(call):
                yield event
        yield Finish(reason="tool-calls" if missing else "stop", usage=Usage(output_tokens=1))

    async def _think(self, thought: str) -> AsyncIterator[ModelEvent]:
        part = new_id()
        yield ReasoningStart(part)
        for piece in pieces(thought):
            yield ReasoningDelta(part, piece)
            await asyncio.sleep(PAUSE)
        yield ReasoningEnd(part)

    async def _talk(self, step: PlannedStep, begin: int) -> AsyncIterator[ModelEvent]:
        holds = [hold for hold in step.holds if hold[0] >= begin]
        if begin == len(step.text) and not holds:
            return
        part = new_id()
        yield TextStart(part)
        for upto, hold in [*holds, (len(step.text), "")]:
            for piece in pieces(step.text[begin:upto]):
                yield TextDelta(part, piece)
                await asyncio.sleep(PAUSE)
            begin = upto
            while hold and (self._folder / hold).exists():
                await asyncio.sleep(PAUSE)
        yield TextEnd(part)

    async def _call(self, call: PlannedCall) -> AsyncIterator[ModelEvent]:
        call_id, arguments = new_id(), json.dumps({"note": call.note})
        yield ToolInputStart(call_id, call.tool)
        for piece in pieces(arguments):
            yield ToolInputDelta(call_id, piece)
            await asyncio.sleep(PAUSE)
        yield ToolCall(call_id, call.tool, arguments)


def where_it_stands(messages: Sequence[ModelMessage]) -> tuple[Plan, int, Said]:
    """The plan of the last question, the step to say, and what of it was said."""
    asked = max(i for i, m in enumerate(messages) if isinstance(m, UserMessage) and is_asked(m))
    plan, number, said = read_plan(text_of(messages[asked])), 0, Said()
    for message in messages[asked + 1 :]:
        if isinstance(message, AssistantMessage):
            said.text += text_of(message)
            notes = [c.input.get("note") for c in message.content if isinstance(c, ToolCallContent)]
            said.calls |= {note for note in notes if note is not None}
        elif isinstance(message, ToolMessage):
            assert not any(r.value == INPUT_CUT and r.kind != "error-text" for r in message.content)
            if said.ends(plan.steps[number]):
                assert said.text == plan.steps[number].text, f"lost text: {said.text!r}"
                number, said = number + 1, Said()
    return plan, number, said


def is_asked(message: UserMessage) -> bool:
    return is_question(text_of(message))


def text_of(message: ModelMessage) -> str:
    assert isinstance(message, UserMessage | AssistantMessage)
    return "".join(item.text for item in message.content if isinstance(item, TextContent))


def write_line(file: Path, value: object) -> None:
    """One write call, so that a kill leaves whole lines."""
    with file.open("a") as out:
        out.write(json.dumps(value) + "\n")
