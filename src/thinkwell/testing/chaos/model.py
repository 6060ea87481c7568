"""The model of a scripted chaos run: it keeps nothing in memory and reads what it has said.

Like a real one it goes on from partial text when it is asked to continue, calls a tool again whose
input was cut off, and does not repeat a call whose outcome is unknown. Everything it does follows
from the question (`plan.py`), the seed and the tools on offer, so every process of a run agrees.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Sequence

import msgspec

from thinkwell.core import json
from thinkwell.core.ids import new_id
from thinkwell.core.signal import AbortSignal
from thinkwell.messages.model_messages import (
    AssistantMessage,
    ModelMessage,
    TextContent,
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
    ToolSpec,
)
from thinkwell.testing.chaos.plan import REHEARSED, Script, ScriptStep, pieces, read_script
from thinkwell.testing.chaos.values import value_for

PAUSE = 0.001
"""Seconds between two deltas: a real model suspends, and a kill needs a moment to fall into."""
_CUT_OFF = "before the input of this call was complete"
"""What the result of a call says that never ran because its input was cut off."""
_SMALL_TALK = "There is no question of a chaos run in this conversation. "


class Standing(msgspec.Struct, frozen=True):
    """How far the reply has come: the step to say, its words so far, its calls with a result."""

    script: Script
    step: int = 0
    said: str = ""
    called: frozenset[int] = frozenset()


class ChaosModel:
    """See the module docstring."""

    provider = "chaos"
    model_id = "scripted"

    def __init__(self, seed: int) -> None:
        self._seed = seed

    async def stream(self, request: ModelRequest, signal: AbortSignal) -> AsyncIterator[ModelEvent]:
        """Say what is still to be said of this step."""
        stands = standing(request.messages)
        if stands is None:
            async for event in _speak(_SMALL_TALK):
                yield event
            yield Finish(reason="stop", usage=Usage(output_tokens=1))
            return
        step, tools = stands.script.steps[stands.step], _by_name(request.tools)
        if not stands.said and not stands.called:
            async for event in _think(f"What do I say to {stands.script.label}.{step.number}? "):
                yield event
        async for event in _speak(_rest(stands, alone=not tools)):
            if signal.aborted:
                return
            yield event
        missing = [n for n in range(step.calls) if n not in stands.called] if tools else []
        for number in missing:
            async for event in self._call(stands.script, step, number, tools):
                yield event
        reason = "tool-calls" if missing else "stop"
        yield Finish(reason=reason, usage=Usage(output_tokens=len(step.text)))

    async def _call(
        self, script: Script, step: ScriptStep, number: int, tools: Sequence[ToolSpec]
    ) -> AsyncIterator[ModelEvent]:
        place = f"{script.label}.{step.number}.{number}"
        chance = random.Random(f"{self._seed}/{place}")
        # A rehearsal goes through the tools one by one, so that each is seen.
        rehearses = step.calls == REHEARSED
        tool = tools[number % len(tools)] if rehearses else chance.choice(tools)
        arguments = json.dumps(value_for(tool.input_schema, chance))
        call_id = f"{place}~{new_id()}"
        yield ToolInputStart(call_id, tool.name)
        for piece in pieces(arguments):
            yield ToolInputDelta(call_id, piece)
            await asyncio.sleep(PAUSE)
        yield ToolCall(call_id, tool.name, arguments)


def place_of(call_id: str) -> str | None:
    """Which planned call an id stands for, whatever process asked for it."""
    place, mark, _ = call_id.partition("~")
    return place if mark else None


def standing(messages: Sequence[ModelMessage]) -> Standing | None:
    """Where the reply to the last question stands; None without a question."""
    for index in reversed(range(len(messages))):
        message = messages[index]
        script = read_script(_text(message)) if isinstance(message, UserMessage) else None
        if script is not None:
            return _read(script, messages[index + 1 :])
    return None


def _read(script: Script, replied: Sequence[ModelMessage]) -> Standing:
    stands = Standing(script)
    for message in replied:
        if isinstance(message, AssistantMessage):
            stands = msgspec.structs.replace(stands, said=stands.said + _text(message))
        elif isinstance(message, ToolMessage):
            stands = _with_results(stands, message)
    return stands


def _with_results(stands: Standing, message: ToolMessage) -> Standing:
    script, step = stands.script, stands.script.steps[stands.step]
    answered = {
        place_of(result.tool_call_id)
        for result in message.content
        if _CUT_OFF not in str(result.value)
    }
    here = {n for n in range(step.calls) if f"{script.label}.{step.number}.{n}" in answered}
    called = stands.called | here
    if len(called) == step.calls and stands.step + 1 < len(script.steps):
        return Standing(script, stands.step + 1)
    return msgspec.structs.replace(stands, called=called)


def _rest(stands: Standing, *, alone: bool) -> str:
    """The words that are missing. Without tools there is one step, and it says everything."""
    steps = stands.script.steps[stands.step :]
    whole = "".join(step.text for step in steps) if alone else steps[0].text
    if whole.startswith(stands.said):
        return whole[len(stands.said) :]
    return ""  # a hook has rewritten it: whatever was said stands for the step


async def _think(thought: str) -> AsyncIterator[ModelEvent]:
    part = new_id()
    yield ReasoningStart(part)
    for piece in pieces(thought):
        yield ReasoningDelta(part, piece)
        await asyncio.sleep(PAUSE)
    yield ReasoningEnd(part)


async def _speak(text: str) -> AsyncIterator[ModelEvent]:
    if not text:
        return
    part = new_id()
    yield TextStart(part)
    for piece in pieces(text):
        yield TextDelta(part, piece)
        await asyncio.sleep(PAUSE)
    yield TextEnd(part)


def _by_name(tools: Sequence[ToolSpec]) -> list[ToolSpec]:
    return sorted(tools, key=lambda tool: tool.name)


def _text(message: UserMessage | AssistantMessage) -> str:
    return "".join(item.text for item in message.content if isinstance(item, TextContent))
