"""`create_agent`: a host with one agent, without a class and without a server (spec/02 §12.14,
§12.17).

It starts with the first use; hooks, scopes and plugins can be registered before. Defaults are those
of a plain loop: 20 steps, then an error, tools one after the other. Agents that are served, or
share their store with others, are classes in an `App`.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Coroutine,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import ExitStack, aclosing, asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, Unpack, overload

from thinkwell.agent.entry import RunOptions
from thinkwell.agent.instance import Instance
from thinkwell.agent.think import DEFAULT_PROMPT, Think
from thinkwell.core.errors import ConfigurationError, HostClosedError
from thinkwell.core.spelling import spelled
from thinkwell.hooks.brought import listed
from thinkwell.hooks.class_names import instead_of, settings_of_class
from thinkwell.hooks.feature import Feature
from thinkwell.hooks.former_names import hint
from thinkwell.hooks.plugins import Cleanup, use
from thinkwell.hooks.seats import features_of
from thinkwell.host.client import AgentAddress, check_agent_name
from thinkwell.host.host import Host
from thinkwell.host.local import LocalHostClient
from thinkwell.host.own_loop import OwnLoop, refuse_running_loop
from thinkwell.host.stub import NamespaceStub, is_iterator, namespaces_of
from thinkwell.store.open import store_from_url
from thinkwell.tools.output import Output
from thinkwell.tools.scope import Scope
from thinkwell.turn.ask.admission import MessageInput
from thinkwell.turn.ask.run_options import tools_by_name
from thinkwell.turn.end.ending import TurnResult

T = TypeVar("T")


@spelled("create_agent()")
def create_agent(
    *,
    model: Any,
    tools: Iterable[Any] | Mapping[str, Any] = (),
    system_prompt: str | None = None,
    scopes: Sequence[Scope] = (),
    features: Sequence[Feature] = (),
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
            instead = instead_of(setting, Think, _ARGUMENTS)
            raise TypeError(f"create_agent() has no setting {setting!r}. {instead}")
    check_agent_name(name, lambda text: f"create_agent(name={text})")
    chosen = {
        "model": model,
        "system_prompt": DEFAULT_PROMPT if system_prompt is None else system_prompt,
        "max_steps": max_steps,
        "on_max_steps": on_max_steps,
        "tool_execution": tool_execution,
        "features": listed(features, "features"),
        **settings,
    }
    instance = Instance(
        type("InlineAgent", (Think,), chosen), name, tools=tools_by_name(tools, "create_agent")
    )
    for scope in scopes:
        instance.scopes.register(scope)
    return InlineAgent(instance, store)


CLOSED = "The agent is closed. Make a new one with create_agent()."
_SETTINGS = settings_of_class(Think)
_ARGUMENTS = [
    parameter.name
    for parameter in inspect.signature(create_agent).parameters.values()
    if parameter.kind is not parameter.VAR_KEYWORD  # its name is none that can be given
]


if TYPE_CHECKING:
    # It has every member of `Think`, each passed on to the instance by `__getattr__`.
    _Members = Think
else:
    _Members = object


class InlineAgent(_Members):
    """An agent in this process, with all verbs of `Think`.

    It starts with its first use, that is with the first call of an async method, of its own or
    of a namespace (`agent.storage.get`); close it, or use `async with`.
    """

    def __init__(self, instance: Instance, store: str) -> None:
        self._instance = instance
        self._address = AgentAddress(instance.agent.agent_class, instance.agent.name)
        self._store = store_from_url(store)
        cls = type(instance.agent)
        seated = {feature.name for feature in features_of(cls) if feature.namespace}
        self._namespaces = namespaces_of(cls) | seated
        self._host: Host | None = None
        self._awake = ExitStack()
        self._closed = False
        self._changing = asyncio.Lock()
        self._sync: OwnLoop | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def __getattr__(self, member: str) -> Any:
        if member.startswith("_"):
            raise AttributeError(member)
        agent = self._instance.agent
        function = getattr(type(agent), member, None)
        if is_iterator(function):
            return self._iterator(member)
        if inspect.iscoroutinefunction(function):
            return self._call(member)
        if member in self._namespaces:
            return self._namespace(member)
        try:
            return getattr(agent, member)
        except AttributeError:
            if self._host is None and hasattr(Think, member):  # a property of what the start makes
                raise ConfigurationError(
                    f"The agent has not started, so it has no {member}. Call an async method, or "
                    "use `async with agent:`, first."
                ) from None
            name = type(agent).__name__
            raise AttributeError(
                f"{name!r} object has no attribute {member!r}.{hint(member)}"
            ) from None

    def _namespace(self, name: str) -> Any:
        if self._closed:
            raise HostClosedError(CLOSED)
        found = self._instance.agent.__dict__.get(name)
        # Before the start there are only those that can be used then (`Feature.on_made`); the
        # others are made by the start, which the first call of one of their methods brings about.
        return NamespaceStub(self._call, name, self._together) if found is None else found

    @asynccontextmanager
    async def _together(self) -> AsyncGenerator[None]:
        """`storage.together()` of an agent that may not have started."""
        await self._start()
        async with self._instance.agent.storage.together():
            yield

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

    # Without async

    @overload
    def run_sync(
        self, input: MessageInput, *, output: type[T] | Output[T], **options: Unpack[RunOptions]
    ) -> TurnResult[T]: ...
    @overload
    def run_sync(
        self, input: MessageInput, *, output: Any = None, **options: Unpack[RunOptions]
    ) -> TurnResult: ...
    def run_sync(self, input: MessageInput, **options: Any) -> TurnResult[Any]:
        """`run` for code that is not async: a script, a test, a shell. It waits in this thread.

        Between two calls nothing of the agent runs. Use `with create_agent(...) as agent:` to close
        it, or leave that to the end of the program. Raises `ConfigurationError` where an event loop
        runs already: there it is `await agent.run(...)`.
        """
        refuse_running_loop("agent.run_sync(...)", "await agent.run(...)")
        return self._own_loop().run(self.run(input, **options))

    def __enter__(self) -> Self:
        """Start it, for `run_sync`."""
        refuse_running_loop("with agent:", "async with agent:")
        self._own_loop().run(self.__aenter__())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it."""
        if not self._closed:
            loop = self._own_loop()
            loop.run(self.close())
            loop.close()

    def _own_loop(self) -> OwnLoop:
        if self._closed:
            raise HostClosedError(CLOSED)
        if self._sync is None:
            self._sync = OwnLoop()
        return self._sync

    async def use(self, plugin: Callable[[Self], Any]) -> Cleanup | None:
        """Let a plugin add hooks and scopes. See `Think.use`."""
        return await use(self, plugin)

    async def close(self) -> None:
        """Let a running turn end for a while, then stop. Idempotent; it does not start again."""
        async with self._changing:
            self._refuse_other_loop()  # its tasks could not be ended from here
            self._closed = True
            self._awake.close()
            host, self._host, self._loop = self._host, None, None
            if host is not None:
                await host.stop()

    def _refuse_other_loop(self) -> None:
        if self._loop not in (None, asyncio.get_running_loop()):
            raise ConfigurationError(
                "The agent was started in another event loop and works only there. Use either "
                "`await agent.run(...)` and `close()` in one `asyncio.run(...)`, or "
                "`agent.run_sync(...)` inside `with create_agent(...) as agent:`."
            )

    def _call(self, method: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            return await (await self._start()).call(self._address, method, args, kwargs)

        call.__qualname__ = f"InlineAgent.{method}"  # read when an await was forgotten
        return call

    def _iterator(self, method: str) -> Callable[..., AsyncIterator[Any]]:
        async def iterate(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
            host = await self._start()
            async with aclosing(host.iterate(self._address, method, args, kwargs)) as items:
                async for item in items:
                    yield item

        return iterate

    async def _start(self) -> LocalHostClient:
        async with self._changing:
            if self._closed:
                raise HostClosedError(CLOSED)
            self._refuse_other_loop()
            if self._host is None:
                self._loop = asyncio.get_running_loop()
                host = Host([type(self._instance.agent)], self._store, instance=self._instance)
                await host.start()
                try:
                    activation = await host.agent(self._address)
                except BaseException:
                    await host.stop()
                    raise
                # What was registered lasts for one activation: it must not sleep when idle.
                self._awake.enter_context(activation.in_use())
                self._host = host
            return self._host.client()
