"""The `HostClient` of one machine: direct calls."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any, Protocol

import msgspec

from thinkwell.agent.agent import Agent
from thinkwell.agent.wiring import Activation
from thinkwell.core.errors import ConfigurationError
from thinkwell.core.spelling import did_you_mean, misspelt_keyword
from thinkwell.host.client import AgentAddress, ConversationEntry, EdgeConnection
from thinkwell.host.figures import HostFigures
from thinkwell.live.watchers import Sink
from thinkwell.messages.message import text_of
from thinkwell.messages.validate import read_stored
from thinkwell.store.base import Store
from thinkwell.wire.http import HttpRequest, HttpResponse

TITLE_LENGTH = 80


class HostServices(Protocol):
    """What a host does for its client."""

    @property
    def figures(self) -> Callable[[], Awaitable[HostFigures]]:
        """How much work there is."""
        ...

    async def agent(self, address: AgentAddress, *, create: bool = True) -> Activation:
        """The agent, awake; unless `create`, it is made only when something is stored for it."""
        ...

    def not_ready(self) -> str | None:
        """Why no work is accepted now; None if it is."""
        ...


class LocalHostClient:
    """Reaches agents in the same process."""

    def __init__(
        self,
        host: HostServices,
        classes: frozenset[str],
        store: Store,
    ) -> None:
        self._host = host
        self._agent = host.agent
        self._look_at = partial(host.agent, create=False)
        self._store = store
        self._classes = classes

    def knows(self, class_name: str) -> bool:
        """See `HostClient`."""
        return class_name in self._classes

    def not_ready(self) -> str | None:
        """See `HostClient`."""
        return self._host.not_ready()

    async def figures(self) -> HostFigures:
        """See `HostClient`."""
        return await self._host.figures()

    async def exists(self, address: AgentAddress) -> bool:
        """See `HostClient`."""
        return await self._store.fetch_one("agent_epoch", {"id": address.id}) is not None

    async def open_connection(
        self, address: AgentAddress, connection_id: str, request: HttpRequest, sink: Sink
    ) -> EdgeConnection:
        """See `HostClient`."""
        activation = await self._look_at(address)
        with activation.in_use():
            return await activation.connect(connection_id, request, sink)

    async def handle_request(self, address: AgentAddress, request: HttpRequest) -> HttpResponse:
        """See `HostClient`."""
        activation = await self._look_at(address)  # a POST may be refused as well
        with activation.in_use():
            answer = await activation.handle_request(request)
        if answer.stream is None:
            return answer
        return msgspec.structs.replace(answer, stream=_awake(activation, answer.stream))

    async def conversations(
        self, class_name: str, limit: int, offset: int = 0
    ) -> list[ConversationEntry]:
        """See `HostClient`."""
        rows = await self._store.fetch_in_background(
            "conversations", {"class": class_name, "limit": limit, "offset": offset}
        )
        return [
            ConversationEntry(
                name=row["name"], title=_title(row["first"]), updated_at=row["updated_at"]
            )
            for row in rows
        ]

    async def call(
        self, address: AgentAddress, method: str, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        """See `HostClient`."""
        with (await self._agent(address)).in_use() as agent:
            result = _called(agent, method, args, kwargs)
            if not inspect.isawaitable(result):
                raise ConfigurationError(
                    f"{method} is not async; only async methods can be called."
                )
            return await result

    async def iterate(
        self, address: AgentAddress, method: str, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> AsyncGenerator[Any]:
        """See `HostClient`."""
        with (await self._agent(address)).in_use() as agent:
            async with aclosing(_called(agent, method, args, kwargs)) as items:
                async for item in items:
                    yield item


def _called(agent: Agent, path: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """What a method gives. An async one only takes its arguments here: its code runs later."""
    method = _method(agent, path)
    try:
        return method(*args, **kwargs)
    except TypeError:
        wrong = misspelt_keyword(f"{path}()", method, kwargs)
        if wrong is None:
            raise
        raise TypeError(wrong) from None


def _method(agent: Agent, path: str) -> Callable[..., Any]:
    """A public method by its name, or one of a namespace: `session.get_history`."""
    namespace, _, method = path.rpartition(".")
    owner = getattr(agent, namespace, None) if namespace else agent
    function = getattr(owner, method, None)
    if namespace.startswith("_") or method.startswith("_") or not callable(function):
        # A namespace is known by its agent only: the stub outside could not say which it has.
        known = [name for name in dir(owner) if not name.startswith("_")]
        prefix = f"{namespace}." if namespace else ""
        near = did_you_mean(path, [f"{prefix}{name}" for name in known])
        raise ConfigurationError(f"{type(agent).__name__} has no public method {path!r}.{near}")
    return function


async def _awake(activation: Activation, stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The stream; its agent stays awake until it is read or left."""
    with activation.in_use():
        try:
            async for piece in stream:
                yield piece
        finally:
            close = getattr(stream, "aclose", None)  # an app's own stream may be any iterator
            if close is not None:
                await close()


def _title(first: str | None) -> str:
    """The beginning of the first question."""
    message = None if first is None else read_stored(first)[0]
    text = "" if message is None else " ".join(text_of(message).split())
    return text if len(text) <= TITLE_LENGTH else text[: TITLE_LENGTH - 1].rstrip() + "…"
