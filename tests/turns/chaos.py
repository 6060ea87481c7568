"""Everything that can go wrong in a turn, as values that Hypothesis can combine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from hypothesis import strategies as st

from thinkwell import Think, ToolContext, tool
from thinkwell.core.errors import AbortTurn, FailTurn
from thinkwell.models.base import (
    Failure,
    Finish,
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
from thinkwell.tools.scope import Scope

SAID = [TextStart("t"), TextDelta("t", "some "), TextDelta("t", "text"), TextEnd("t")]
THOUGHT = [ReasoningStart("r"), ReasoningDelta("r", "hm"), ReasoningEnd("r")]
TOOLS = (
    "good",
    "raises",
    "gives_no_json",
    "cancelled",
    "breaks_half_way",
    "plain",
    "plain_raises",
    "stops_the_turn",
    "throws_if_aborted",
    "aborts",
    "fails",
    "unknown",
    "_scoped",
)
INPUTS = ("{}", "", "{not json", "[1]", '{"n":"x"}')


def make_call(number: int, name: str, arguments: str) -> list[Any]:
    """The events of one tool call."""
    call_id = f"c{number}"
    return [
        ToolInputStart(call_id, name),
        ToolInputDelta(call_id, arguments),
        ToolCall(call_id, name, arguments),
    ]


@st.composite
def tool_steps(draw: st.DrawFn) -> list[Any]:
    """A step that asks for one to three tools."""
    number = draw(st.integers(0, 10_000)) * 10
    events = list(draw(st.sampled_from([[], SAID, THOUGHT])))
    for index in range(draw(st.integers(1, 3))):
        name, arguments = draw(st.sampled_from(TOOLS)), draw(st.sampled_from(INPUTS))
        events += make_call(number + index, name, arguments)
    reason: Any = draw(st.sampled_from(["tool-calls", "tool-calls", "stop", "length", "other"]))
    return [*events, Finish(reason=reason, raw_reason=reason)]


END = Finish(reason="stop", raw_reason="stop")
BOOM = RuntimeError("the model broke")
bad_steps = st.sampled_from(
    [
        [END],
        [*SAID, END],
        [*THOUGHT, *SAID, END],
        [Failure(BOOM)],
        [*SAID, Failure(BOOM)],
        [*SAID[:2], Failure(BOOM)],
        [],
        SAID[:3],
        [BOOM],
        [*SAID, BOOM],
        [asyncio.CancelledError()],
        [ToolInputStart("cut", "good"), ToolInputDelta("cut", '{"a'), Failure(BOOM)],
        [ToolInputStart("cut", "good"), END],
        [TextDelta("nobody", "lost"), END],
        [*SAID[:2], TextDelta("t", "\ud83d"), END],
        [*make_call(1, "good", "{}"), *make_call(1, "good", "{}"), END],
        [*SAID[:2], END],
        [*SAID, Finish(reason="content-filter", raw_reason="filtered")],
    ]
)
steps = st.lists(st.one_of(tool_steps(), bad_steps), min_size=1, max_size=3)


class ChaosModel:
    """Plays steps; an exception in one is raised; afterwards it just answers."""

    provider = model_id = "chaos"

    def __init__(self, script: list[list[Any]]) -> None:
        self._script = list(script)

    async def stream(self, request: ModelRequest, signal: Any) -> AsyncIterator[Any]:
        step = self._script.pop(0) if self._script else [*SAID, END]
        for event in step:
            await asyncio.sleep(0)
            if isinstance(event, BaseException):
                raise event
            yield event

    def behave(self) -> None:
        """From now on only answer."""
        self._script.clear()


class Chaos(Think):
    """Tools that do what tools should not do."""

    time_limits = {"grace": 0.0}
    max_steps = 4
    chaos: Any = None

    def get_model(self) -> Any:
        return self.chaos

    @tool
    async def good(self, n: int = 0) -> int:
        """Works."""
        return n

    @tool
    async def raises(self) -> int:
        """Raises."""
        raise RuntimeError("the tool broke")

    @tool
    async def gives_no_json(self) -> Any:
        """Returns what JSON cannot hold."""
        return object()

    @tool
    async def cancelled(self) -> Any:
        """Raises what a cancelled task raises."""
        raise asyncio.CancelledError

    @tool
    async def breaks_half_way(self) -> AsyncIterator[int]:
        """A generator that raises."""
        yield 1
        await asyncio.sleep(0)
        yield 2
        raise RuntimeError("half-way")

    @tool(inline=True)
    def plain(self, n: int = 0) -> int:
        """An ordinary function."""
        return n

    @tool(inline=True)
    def plain_raises(self) -> int:
        """An ordinary function that raises."""
        raise ValueError("plain")

    @tool
    async def stops_the_turn(self) -> str:
        """Stops its own turn and goes on working."""
        await self.cancel_chat(reason="a tool stopped it")
        await asyncio.sleep(0)
        return "still here"

    @tool
    async def throws_if_aborted(self, ctx: ToolContext) -> str:
        """Looks at the signal."""
        await asyncio.sleep(0)
        ctx.abort_signal.throw_if_aborted()
        return "not aborted"

    @tool
    async def aborts(self) -> str:
        """Ends the turn."""
        raise AbortTurn("a tool")

    @tool
    async def fails(self) -> str:
        """Fails the turn."""
        raise FailTurn("a tool")


ANSWERS: dict[str, Any] = {
    "before_turn": {"max_steps": 2, "send_reasoning": False, "tool_execution": "sequential"},
    "before_step": {"response": {"content": "from a hook"}},
    "on_response": {"response": {"content": "rewritten", "reasoning": "because"}},
    "before_tool_call": {"result": "substituted"},
    "on_tool_result": {"result": "***"},
    "on_tool_error": {"result": "recovered"},
    "classify_chat_error": "transient",
    "on_chat_error": "another text",
}
"""What a hook of each moment may answer to change what happens."""


def _register_scope(ctx: Any) -> None:
    scopes = ctx.agent.scopes
    scopes.unregister("chaos")
    scopes.register(Scope("chaos", tools=[_scoped], context="chaos"))


async def _scoped() -> str:
    """A tool that comes and goes."""
    return "scoped"


def _register_hook(ctx: Any) -> None:
    ctx.agent.add_hook("on_chunk", lambda _: None)


async def _stop(ctx: Any) -> None:
    await ctx.agent.cancel_chat()


async def _stop_this(ctx: Any) -> None:
    await ctx.agent.cancel_chat(ctx.request_id, "a hook")


async def _slow(_: Any) -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def _cancelled_later(_: Any) -> None:
    await asyncio.sleep(0)
    raise asyncio.CancelledError


def _raiser(error: BaseException) -> Callable[[Any], None]:
    def hook(_: Any) -> None:
        raise error

    return hook


BEHAVIOURS: dict[str, Callable[[Any], Any]] = {
    "raises": _raiser(RuntimeError("the hook broke")),
    "raises cancelled": _raiser(asyncio.CancelledError()),
    "raises cancelled later": _cancelled_later,
    "aborts": _raiser(AbortTurn("a hook")),
    "fails": _raiser(FailTurn("a hook")),
    "returns junk": lambda _: object(),
    "returns a dict": lambda _: {"nonsense": True},
    "is slow": _slow,
    "stops": _stop,
    "stops this": _stop_this,
    "throws if aborted": lambda ctx: ctx.abort_signal.throw_if_aborted(),
    "registers a scope": _register_scope,
    "registers a hook": _register_hook,
}
BY_THE_TEST = ("answers", "disposes of itself", "waits at a gate")
"""What needs more than the context: see `test_one_end.add`."""
