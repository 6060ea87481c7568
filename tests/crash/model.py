"""A model that keeps nothing in memory: what it has said it reads from the conversation.

Like a real one it goes on from partial text when it is asked to continue, calls a tool again whose
input was cut off, and does not repeat a call whose outcome is unknown. Unlike a real one it is
loud: a conversation that does not fit its plan (text doubled, lost, or out of order) fails the
call, and every call is written down in `calls.jsonl`.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGKILL
from typing import Any

import msgspec

from tests.crash.plan import (
    Plan,
    PlannedCall,
    PlannedStep,
    is_question,
    pieces,
    read_plan,
    without_aside,
)
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

PAUSE = 0.001
CUT_OFF = "before the input of this call was complete"
"""What the result of a call says whose input was cut off."""


def as_json(request: ModelRequest) -> Any:
    """A request as data that can be written down and compared."""
    return json.loads(msgspec.json.encode(request))


@dataclass
class Said:
    """How far a step has come."""

    text: str = ""
    calls: set[str] = field(default_factory=set)
    unknown: set[str] = field(default_factory=set)

    def hear(self, note: str, result: str, label: str) -> None:
        """A result came. A cut call has none; a stubborn model asks twice for an unknown one."""
        insists = label == "stubborn" and "unknown" in result and note not in self.unknown
        if insists:
            self.unknown.add(note)
        elif CUT_OFF not in result:
            self.calls.add(note)

    def ends(self, step: PlannedStep) -> bool:
        return bool(self.calls) and self.calls == {call.note for call in step.calls}


class PlannedModel:
    """See the module docstring."""

    provider = "planned"

    def __init__(self, folder: Path, model_id: str = "planned") -> None:
        self.model_id = model_id
        self._folder = folder

    async def stream(self, request: ModelRequest, signal: AbortSignal) -> AsyncIterator[ModelEvent]:
        plan, number, said = where_it_stands(request.messages)
        step = plan.steps[number]
        assert step.text.startswith(said.text), f"{said.text!r} is no beginning of {step.text!r}"
        line = {"label": plan.label, "step": number, "request": as_json(request)}
        write_line(self._folder / "calls.jsonl", line)
        if (self._folder / f"always-die-in-model-{plan.label}").exists():
            os.kill(os.getpid(), SIGKILL)
        if not said.text and not said.calls:
            await self._hold([name for place, name in step.holds if place == 0])
            async for event in self._think(step.thought):
                yield event
        async for event in self._talk(step, len(said.text)):
            yield event
        missing = [call for call in step.calls if call.note not in said.calls]
        for call in missing:
            async for event in self._call(call):
                yield event
        if missing:
            async for event in self._speak(step.aside):
                yield event
        yield Finish(reason="tool-calls" if missing else "stop", usage=Usage(output_tokens=1))

    async def _hold(self, names: Sequence[str]) -> None:
        while any((self._folder / name).exists() for name in names):
            await asyncio.sleep(PAUSE)

    async def _think(self, thought: str) -> AsyncIterator[ModelEvent]:
        if not thought:
            return
        part = new_id()
        yield ReasoningStart(part)
        for piece in pieces(thought):
            yield ReasoningDelta(part, piece)
            await asyncio.sleep(PAUSE)
        yield ReasoningEnd(part)

    async def _talk(self, step: PlannedStep, begin: int) -> AsyncIterator[ModelEvent]:
        if begin == len(step.text):
            return
        part = new_id()
        yield TextStart(part)
        for upto, names in step.stretches(begin):
            for piece in pieces(step.text[begin:upto]):
                yield TextDelta(part, piece)
                await asyncio.sleep(PAUSE)
            begin = upto
            await self._hold(names)
        yield TextEnd(part)

    async def _speak(self, aside: str) -> AsyncIterator[ModelEvent]:
        if not aside:
            return
        part = new_id()
        yield TextStart(part)
        for piece in pieces(aside):
            yield TextDelta(part, piece)
            await asyncio.sleep(PAUSE)
        yield TextEnd(part)

    async def _call(self, call: PlannedCall) -> AsyncIterator[ModelEvent]:
        (tool, given), call_id = spelled(call), new_id()
        arguments = json.dumps(given)
        yield ToolInputStart(call_id, tool)
        for piece in pieces(arguments):
            yield ToolInputDelta(call_id, piece)
            await asyncio.sleep(PAUSE)
        yield ToolCall(call_id, tool, arguments)


def spelled(call: PlannedCall) -> tuple[str, dict[str, str]]:
    """A call as the model makes it: the tools of context blocks have arguments of their own."""
    match call.tool:
        case "remember":
            return "set_context", {"label": "memory", "content": call.note, "action": "append"}
        case "load" | "unload":
            return f"{call.tool}_context", {"label": "skills", "key": "doc"}
        case _:
            return call.tool, {"note": call.note}


def where_it_stands(messages: Sequence[ModelMessage]) -> tuple[Plan, int, Said]:
    """The plan of the last question, the step to say, and what of it was said."""
    asked = max(i for i, m in enumerate(messages) if isinstance(m, UserMessage) and is_asked(m))
    plan, number, said = read_plan(text_of(messages[asked])), 0, Said()
    notes: dict[str, str] = {}
    for message in messages[asked + 1 :]:
        if isinstance(message, AssistantMessage):
            said.text += text_of(message)
            calls = [item for item in message.content if isinstance(item, ToolCallContent)]
            usual = f"{plan.label}.{number}.0"  # documents are not named after their calls
            for call in calls:
                note = call.input.get("note") or call.input.get("content") or usual
                notes[call.tool_call_id] = note
        elif isinstance(message, ToolMessage):
            for result in message.content:
                said.hear(notes[result.tool_call_id], str(result.value), plan.label)
            if said.ends(plan.steps[number]):
                assert said.text == plan.steps[number].text, f"lost text: {said.text!r}"
                number, said = number + 1, Said()
    return plan, number, said


def is_asked(message: UserMessage) -> bool:
    return is_question(text_of(message))


def text_of(message: ModelMessage) -> str:
    assert isinstance(message, UserMessage | AssistantMessage)
    texts = [item.text for item in message.content if isinstance(item, TextContent)]
    return "".join(map(without_aside, texts))


def write_line(file: Path, value: object) -> None:
    """One write call, so that a kill leaves whole lines."""
    with file.open("a") as out:
        out.write(json.dumps(value) + "\n")
