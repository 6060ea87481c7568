"""The agents the reference was recorded with, written for Thinkwell."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from thinkwell import Think, tool
from thinkwell.hooks.answers import Allow, Block, Substitute
from thinkwell.messages.model_messages import TextContent
from thinkwell.models import base
from thinkwell.testing import Gate, ScriptedModel

MODELS: dict[str, ScriptedModel] = {}
"""The model of each agent, by the agent's name."""
ADD_WAS_SEEN = asyncio.Event()
"""Set by the test when a client has the result of `add`; `slowTool` is slower than that."""


class PlainAgent(Think):
    """No state, no tools; answers by repeating the last message."""

    def get_model(self) -> Any:
        return ScriptedModel([lambda request: [*_echo(request)]])


class RefAgent(Think):
    initial_state: ClassVar = {"counter": 0, "note": "init"}

    def get_model(self) -> Any:
        return MODELS.get(self.name) or ScriptedModel([lambda request: [*_echo(request)]])

    @tool(name="getWeather")
    async def get_weather(self, city: str) -> dict[str, Any]:
        """Weather in a city."""
        return {"city": city, "tempC": 21}

    @tool
    async def add(self, a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @tool(name="slowTool")
    async def slow_tool(self, ms: int) -> str:
        """Takes longer than the others."""
        await ADD_WAS_SEEN.wait()
        return f"slept {ms}"

    @tool(name="failTool")
    async def fail_tool(self) -> str:
        """Always fails."""
        raise RuntimeError("tool exploded")

    @tool
    async def blocked(self, x: str) -> str:
        """Never runs."""
        return f"ran {x}"

    @tool
    async def substituted(self, x: str) -> str:
        """Its result is replaced."""
        return f"ran {x}"

    @tool
    async def rewritten(self, x: str) -> str:
        """Its input is replaced."""
        return f"ran {x}"

    async def before_tool_call(self, ctx: Any) -> Any:
        if ctx.tool_name == "blocked":
            return Block("blocked by policy")
        if ctx.tool_name == "substituted":
            return Substitute({"cached": True})
        if ctx.tool_name == "rewritten":
            return Allow({"x": "rewritten-input"})
        return None


def _echo(request: base.ModelRequest) -> Iterator[base.ModelEvent]:
    (said,) = request.messages[-1].content
    assert isinstance(said, TextContent)
    yield base.TextStart("t1")
    yield from (base.TextDelta("t1", delta) for delta in ("Hello", ", you said: ", said.text))
    yield base.TextEnd("t1")


def scripted(trace: dict[str, Any]) -> ScriptedModel | None:
    """The model that streams what the recorded one streamed; None where the echo was used."""
    if "model_script" not in trace:
        return None
    (script,) = trace["model_script"]
    bodies = [str(event.get("json", {}).get("body")) for event in trace["frames"]]
    deltas_seen = sum('"type":"text-delta"' in body for body in bodies)
    return ScriptedModel([[*_events(step, deltas_seen)] for step in script["script"]["default"]])


def _events(parts: list[dict[str, Any]], deltas_seen: int) -> Iterator[base.ModelEvent | Gate]:
    for part in parts:
        if part["type"] == "repeat":
            # The recording was cancelled in here: say what was heard then, and wait for the stop.
            delta = part["part"]
            yield from (
                base.TextDelta(delta["id"], delta["delta"].format(i=i)) for i in range(deltas_seen)
            )
            yield Gate()
        elif (event := _event(part)) is not None:
            yield event


def _event(part: dict[str, Any]) -> base.ModelEvent | None:
    """The event for one recorded part; a kind the test does not know is a `KeyError`."""
    return _MAKERS[part["type"]](part)


_MAKERS: dict[str, Callable[[dict[str, Any]], base.ModelEvent | None]] = {
    "text-start": lambda part: base.TextStart(part["id"]),
    "text-delta": lambda part: base.TextDelta(part["id"], part["delta"]),
    "text-end": lambda part: base.TextEnd(part["id"]),
    "reasoning-start": lambda part: base.ReasoningStart(part["id"]),
    "reasoning-delta": lambda part: base.ReasoningDelta(part["id"], part["delta"]),
    "reasoning-end": lambda part: base.ReasoningEnd(part["id"], part.get("providerMetadata")),
    "tool-input-start": lambda part: base.ToolInputStart(part["id"], part["toolName"]),
    "tool-input-delta": lambda part: base.ToolInputDelta(part["id"], part["delta"]),
    "tool-input-end": lambda _part: None,
    "tool-call": lambda part: base.ToolCall(part["toolCallId"], part["toolName"], part["input"]),
}
