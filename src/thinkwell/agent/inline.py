"""`create_agent`: an agent without a class and without a server (spec/02 §12.14, §12.17).

It runs in this process on a store of its own, opened with the first use; hooks, scopes and plugins
can be registered before. Defaults are those of a plain loop: 20 steps, then an error, tools one
after the other. An agent that is served, or shares its store with others, is a class in an `App`.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing, suppress
from types import TracebackType
from typing import Any, Literal, Self, Unpack

from thinkwell.agent.agent_events import AgentEvent
from thinkwell.agent.callbacks import ChatCallback
from thinkwell.agent.entry import ChatOptions, OnEvent
from thinkwell.agent.history_view import HistoryView
from thinkwell.agent.making import Made
from thinkwell.agent.plugins import Cleanup, use
from thinkwell.agent.think import DEFAULT_PROMPT, Think
from thinkwell.agent.wiring import Activation, Surroundings, wake
from thinkwell.core.bus import EventBus
from thinkwell.core.clock import SystemClock
from thinkwell.core.errors import ConfigurationError, HostClosedError, ToolDefinitionError
from thinkwell.core.signal import AbortSignal, Disposer
from thinkwell.store.open import store_from_url
from thinkwell.tools.scope import Scope
from thinkwell.tools.scope_registry import ScopeRegistry
from thinkwell.tools.tool import Tool, as_tool
from thinkwell.turn.ask.inputs import MessageInput
from thinkwell.turn.end.ending import TurnResult

DRAIN_TIMEOUT = 5.0
"""Seconds a running turn gets to end when the agent is closed."""


def create_agent(
    *,
    model: Any,
    tools: Iterable[Any] = (),
    system_prompt: str | None = None,
    scopes: Sequence[Scope] = (),
    max_steps: int = 20,
    on_max_steps: Literal["stop", "error", "answer"] = "error",
    tool_execution: Literal["parallel", "sequential"] = "sequential",
    store: str = "sqlite://:memory:",
    name: str = "default",
    **settings: Any,
) -> InlineAgent:
    """An agent to use at once: `await create_agent(model=...).chat("hello")`.

    `settings` are more settings of `Think`.
    """
    for setting in settings:
        if setting not in _SETTINGS:
            raise TypeError(
                f"create_agent() has no setting {setting!r}. Settings are: {', '.join(_SETTINGS)}."
            )
    chosen = {
        "model": model,
        "system_prompt": DEFAULT_PROMPT if system_prompt is None else system_prompt,
        "max_steps": max_steps,
        "on_max_steps": on_max_steps,
        "tool_execution": tool_execution,
        **settings,
    }
    made = Made(type("InlineAgent", (Think,), chosen), name, tools=_by_name(tools))
    for scope in scopes:
        made.scopes.register(scope)
    return InlineAgent(made, store)


_SETTINGS = tuple(
    name
    for name in inspect.get_annotations(Think)
    if not name.startswith("_") and hasattr(Think, name)
)


def _by_name(tools: Iterable[Any]) -> dict[str, Tool]:
    found: dict[str, Tool] = {}
    for tool in map(as_tool, tools):
        if tool.name in found:
            raise ToolDefinitionError(
                f"create_agent() was given two tools named {tool.name!r}. Rename one of them."
            )
        found[tool.name] = tool
    return found


class InlineAgent:
    """An agent in this process. Starts with its first use; close it, or use `async with`."""

    def __init__(self, made: Made, store: str) -> None:
        self._made = made
        self._store = store_from_url(store)
        self._around: Surroundings | None = None
        self._awake: Activation | None = None
        self._closed = False
        self._changing = asyncio.Lock()

    async def __aenter__(self) -> Self:
        """Start it."""
        await self._start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it."""
        await self.close()

    @property
    def scopes(self) -> ScopeRegistry:
        """Groups of tools and context that come and go."""
        return self._made.scopes

    @property
    def history(self) -> HistoryView:
        """The conversation as a flat list of model messages. There once the agent has started."""
        if self._awake is None:
            raise ConfigurationError(
                "The agent has not started, so it has no history. Use `async with agent:` first."
            )
        return self._made.agent.history

    def add_hook(
        self,
        event: Any,
        call: Callable[..., Any],
        *,
        name: str | None = None,
        timeout: float | None = None,
    ) -> Disposer:
        """Register a hook. See `Think.add_hook`."""
        return self._made.agent.add_hook(event, call, name=name, timeout=timeout)

    async def use(self, plugin: Callable[[Self], Any]) -> Cleanup | None:
        """Let a plugin add hooks and scopes. See `Think.use`."""
        return await use(self, plugin)

    async def run(self, input: MessageInput, *, signal: AbortSignal | None = None) -> TurnResult:
        """Run a turn and wait for its result. See `Think.run`."""
        return await (await self._start()).run(input, signal=signal)

    async def chat(
        self,
        message: str,
        callback: ChatCallback | None = None,
        *,
        on_event: OnEvent | None = None,
        **options: Unpack[ChatOptions],
    ) -> Any:
        """Run a turn for a message. See `Think.chat`."""
        agent = await self._start()
        if callback is not None:
            return await agent.chat(message, callback, **options)
        return await agent.chat(message, on_event=on_event, **options)

    async def chat_stream(
        self, message: str, *, signal: AbortSignal | None = None
    ) -> AsyncGenerator[AgentEvent]:
        """Run a turn and yield its events. See `Think.chat_stream`."""
        agent = await self._start()
        async with aclosing(agent.chat_stream(message, signal=signal)) as events:
            async for event in events:
                yield event

    async def close(self) -> None:
        """Let a running turn end for a while, then stop. Idempotent; it does not start again."""
        async with self._changing:
            self._closed = True
            awake, self._awake = self._awake, None
            if awake is None or self._around is None:
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(DRAIN_TIMEOUT):
                    await awake.wait_until_idle()
            await awake.stop()
            await self._around.commits.close()
            await self._around.models.aclose()
            await self._store.close()

    async def _start(self) -> Think:
        async with self._changing:
            if self._closed:
                raise HostClosedError("The agent is closed. Make a new one with create_agent().")
            if self._awake is None:
                await self._store.open()
                self._around = Surroundings(self._store, SystemClock(), EventBus())
                agent = self._made.agent
                try:
                    self._awake = await wake(type(agent), agent.name, self._around, self._made)
                except BaseException:
                    await self._store.close()
                    raise
        return self._made.agent
