"""The model behind the first command: no key, no network, the same answer every time.

It thinks aloud, streams word by word, and calls a tool when one fits (weather or time). What it
will say follows from the request alone (`plan`), so a call that is repeated after a crash gives the
same words, and a conversation that ends in the beginning of an answer is continued from there.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from typing import Any, cast

import msgspec

from thinkwell.core import json
from thinkwell.core.ids import new_id
from thinkwell.core.signal import AbortSignal
from thinkwell.messages.convert import without_closing_word
from thinkwell.messages.model_messages import (
    AssistantMessage,
    ModelMessage,
    TextContent,
    ToolMessage,
    ToolResultContent,
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

ABILITIES = """\
I am a small model built into Thinkwell. I need no key, and I always give the same answer. Try:

- **Streaming**: ask me anything and watch the words arrive.
- **Reasoning**: unfold the thought above this answer.
- **A tool call**: ask "What is the weather in Paris?" or "What time is it?", \
if this agent has such a tool.
- **Stop**: ask me to "count to 300" and press stop. What I said so far is kept.
- **Recovery**: ask me to "count to 300", `kill -9` the server in the middle, start it again, \
and watch the answer go on.
"""

_WORDS = re.compile(r"\s*\S+|\s+$")
_COUNT = re.compile(r"\bcount (?:up )?to (\d+)", re.IGNORECASE)
_PLACE = re.compile(r"\b(?:in|for|at) ([A-Z][\w'-]*(?: [A-Z][\w'-]*)*)")
_HELP = re.compile(r"what can (?:you|i) do|\bhelp\b|\bwho are you\b", re.IGNORECASE)
_TOPICS = {
    "weather": re.compile(r"\b(?:weather|rain|sunny|temperature|forecast)", re.IGNORECASE),
    "time": re.compile(r"\b(?:time|clock|date|day is it)\b", re.IGNORECASE),
}
_MAX_COUNT = 1000


class Plan(msgspec.Struct, frozen=True):
    """What the model will do in one call: think, then call a tool or say a text."""

    thought: str
    text: str = ""
    tool_name: str = ""
    arguments: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])


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


def plan(request: ModelRequest) -> Plan:
    """What to do about this request."""
    text, results = _question(request.messages)
    if results:
        return Plan("The tool has answered. I put its result into words.", _report(results))
    if _HELP.search(text):
        return Plan("I am asked what I can do, so I list what can be tried here.", ABILITIES)
    if match := _COUNT.search(text):
        last = min(int(match.group(1)), _MAX_COUNT)
        numbers = ", ".join(str(number) for number in range(1, last + 1))
        return Plan(f"I am asked to count, so I count up to {last}.", f"{numbers}. Done.")
    for topic, words in _TOPICS.items():
        spec = _tool_about(topic, request.tools) if words.search(text) else None
        if spec is not None:
            thought = f"This is about the {topic}, and the tool {spec.name} can tell."
            return Plan(thought, tool_name=spec.name, arguments=_arguments(spec, text))
    answer = f'You said: "{text}". That is all I know about it. Ask me "What can you do?"'
    return Plan("None of my tools fits this, so I answer at once.", answer)


def _events(request: ModelRequest) -> Iterable[ModelEvent]:
    planned = plan(request)
    spoken = 0
    said = _beginning(request.messages)
    if not said:
        yield ReasoningStart("rsn-0")
        for word in _words(planned.thought):
            spoken += 1
            yield ReasoningDelta("rsn-0", word)
        yield ReasoningEnd("rsn-0")
    if planned.tool_name:
        call_id = f"call_{new_id()}"
        arguments = json.dumps(planned.arguments)
        yield ToolInputStart(call_id, planned.tool_name)
        yield ToolInputDelta(call_id, arguments)
        yield ToolCall(call_id, planned.tool_name, arguments)
    else:
        yield TextStart("txt-1")
        for word in _words(planned.text.removeprefix(said)):
            spoken += 1
            yield TextDelta("txt-1", word)
        yield TextEnd("txt-1")
    heard = sum(len(_words(text)) for text in _texts(request.messages))
    yield Finish(
        reason="tool-calls" if planned.tool_name else "stop",
        usage=Usage(input_tokens=heard, output_tokens=spoken, total_tokens=heard + spoken),
        model_id="demo",
    )


def _words(text: str) -> list[str]:
    return cast("list[str]", _WORDS.findall(text))


def _texts(messages: Iterable[ModelMessage]) -> Iterable[str]:
    for message in messages:
        if isinstance(message, UserMessage | AssistantMessage):
            yield from (part.text for part in message.content if isinstance(part, TextContent))


def _question(messages: tuple[ModelMessage, ...]) -> tuple[str, list[ToolResultContent]]:
    """The last thing a person said, and what tools have answered since."""
    results: list[ToolResultContent] = []
    for message in reversed(messages):
        if isinstance(message, ToolMessage):
            results = [*message.content, *results]
        elif isinstance(message, UserMessage):
            return " ".join(_texts([message])).strip(), results
    return "", results


def _beginning(messages: tuple[ModelMessage, ...]) -> str:
    """The part of the answer that is there already, when an interrupted call is repeated."""
    last = messages[-1] if messages else None
    return "".join(_texts([last])) if isinstance(last, AssistantMessage) else ""


def _report(results: list[ToolResultContent]) -> str:
    return "\n\n".join(_report_one(result) for result in results)


def _report_one(result: ToolResultContent) -> str:
    value = result.value if isinstance(result.value, str) else json.dumps(result.value)
    if result.kind == "error-text":
        return f"The tool `{result.tool_name}` failed: {value}"
    if result.kind == "execution-denied":
        return f"I was not allowed to use `{result.tool_name}`, so I cannot tell."
    return f"The tool `{result.tool_name}` says: {value}"


def _tool_about(topic: str, tools: Iterable[ToolSpec]) -> ToolSpec | None:
    offered = list(tools)
    named = (spec for spec in offered if topic in spec.name.lower())
    described = (spec for spec in offered if topic in spec.description.lower())
    return next(named, None) or next(described, None)


def _arguments(spec: ToolSpec, text: str) -> dict[str, Any]:
    """Values for what the tool requires, and the place if it takes one."""
    properties = cast("Mapping[str, Mapping[str, Any]]", spec.input_schema.get("properties", {}))
    required = cast("list[str]", spec.input_schema.get("required", []))
    place = match.group(1) if (match := _PLACE.search(text)) else ""
    values: dict[str, Any] = {}
    for name, schema in properties.items():
        takes_place = any(word in name.lower() for word in ("city", "place", "location"))
        if name in required or (takes_place and place):
            values[name] = _value(schema, (place or "Berlin") if takes_place else text)
    return values


def _value(schema: Mapping[str, Any], text: str) -> Any:
    if "default" in schema:
        return schema["default"]
    if choices := schema.get("enum"):
        return choices[0]
    samples: dict[Any, Any] = {
        "integer": 1,
        "number": 1,
        "boolean": True,
        "array": [],
        "object": {},
    }
    return samples.get(schema.get("type"), text)
