"""The agents the reference was recorded with, written for Thinkwell."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from thinkwell import Think, rpc, tool
from thinkwell.hooks.answers import Allow, Block, Substitute
from thinkwell.messages.message import user_message
from thinkwell.messages.model_messages import AssistantMessage, TextContent, UserMessage
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
    expose_errors = True
    """The reference always shows what a tool raises (06-tool-throws); we only if asked to."""

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

    @tool(needs_approval=True)
    async def dangerous(self, target: str) -> str:
        """Must be allowed."""
        return f"destroyed {target}"

    @rpc
    async def echo(self, value: Any) -> dict[str, Any]:
        return {"echoed": value}

    @rpc
    async def boom(self) -> None:
        raise RuntimeError("callable exploded")

    async def notCallable(self) -> None:  # noqa: N802 - the recorded name
        """Clients may not call it."""

    @rpc(name="streamNumbers", streaming=True)
    async def stream_numbers(self, stream: Any, n: int) -> None:
        for i in range(n):
            stream.send({"i": i})
        stream.end({"total": n})

    @rpc(name="streamFail", streaming=True)
    async def stream_fail(self, stream: Any) -> None:
        stream.send(1)
        raise RuntimeError("stream exploded")

    @rpc
    async def bump(self) -> int:
        state = {**self.state, "counter": self.state["counter"] + 1}
        await self.set_state(state)
        return state["counter"]

    @rpc
    async def say(self, said: str) -> dict[str, str]:
        result = await self.save_messages([user_message("made-by-say", said)])
        return {"requestId": result.request_id, "status": result.status}

    def validate_state_change(self, state: Any, source: Any) -> None:
        if state["note"] == "bad":
            raise ValueError("this note is refused")

    async def before_tool_call(self, ctx: Any) -> Any:
        if ctx.tool_name == "blocked":
            return Block("blocked by policy")
        if ctx.tool_name == "substituted":
            return Substitute({"cached": True})
        if ctx.tool_name == "rewritten":
            return Allow({"x": "rewritten-input"})
        return None


class MaxStepAgent(RefAgent):
    """May take two steps."""

    max_steps = 2


def _echo(request: base.ModelRequest) -> Iterator[base.ModelEvent]:
    (said,) = request.messages[-1].content
    assert isinstance(said, TextContent)
    yield base.TextStart("t1")
    yield from (base.TextDelta("t1", delta) for delta in ("Hello", ", you said: ", said.text))
    yield base.TextEnd("t1")


class Pace:
    """Lets a recorded stream say each of its repeated deltas when the player wants to hear it."""

    def __init__(self) -> None:
        self._allowed = 0
        self._gates: list[Gate] = []

    def gate(self) -> Gate:
        """The gate before the next delta."""
        gate = Gate()
        self._gates.append(gate)
        if len(self._gates) <= self._allowed:
            gate.open()
        return gate

    def allow(self) -> None:
        """One more delta may be said."""
        self._allowed += 1
        if len(self._gates) >= self._allowed:
            self._gates[self._allowed - 1].open()


def scripted(trace: dict[str, Any], pace: Pace) -> ScriptedModel:
    """The model that streams what the recorded one streamed; one without a script echoes."""
    (recorded,) = trace.get("model_script") or [{"script": {}}]
    script = recorded["script"]

    def play(request: base.ModelRequest) -> Any:
        said, done = _question(request)
        steps = script.get("byText", {}).get(said) or script.get("default")
        return [*_echo(request)] if steps is None else [*_events(steps[done], pace)]

    return ScriptedModel([play] * MODEL_CALLS)


MODEL_CALLS = 10


def _question(request: base.ModelRequest) -> tuple[str, int]:
    """The last question and how many steps have answered it."""
    done = 0
    for message in reversed(request.messages):
        if isinstance(message, UserMessage):
            (said,) = message.content
            assert isinstance(said, TextContent)
            return said.text, done
        done += isinstance(message, AssistantMessage)
    raise AssertionError("no question")


def _events(parts: list[dict[str, Any]], pace: Pace) -> Iterator[base.ModelEvent | Gate]:
    for part in parts:
        if part["type"] == "repeat":
            for i in range(part["n"]):
                yield pace.gate()
                yield base.TextDelta(part["part"]["id"], part["part"]["delta"].format(i=i))
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
