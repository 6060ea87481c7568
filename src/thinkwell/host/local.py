"""The `HostClient` of one machine: direct calls."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from thinkwell.agent.wiring import Activation
from thinkwell.core.errors import ConfigurationError
from thinkwell.host.client import AgentAddress, Connection, FrameSink, HttpRequest, HttpResponse


class LocalHostClient:
    """Reaches agents in the same process."""

    def __init__(
        self, agent: Callable[[AgentAddress], Awaitable[Activation]], classes: frozenset[str]
    ) -> None:
        self._agent = agent
        self._classes = classes

    def knows(self, class_name: str) -> bool:
        """See `HostClient`."""
        return class_name in self._classes

    async def open_connection(
        self, address: AgentAddress, connection_id: str, sink: FrameSink
    ) -> Connection:
        """See `HostClient`."""
        return await (await self._agent(address)).connect(connection_id, sink)

    async def handle_request(self, address: AgentAddress, request: HttpRequest) -> HttpResponse:
        """See `HostClient`."""
        if request.path.rsplit("/", 1)[-1] != "get-messages":
            return HttpResponse(status=404, body=b"Not implemented")
        messages = await (await self._agent(address)).turns.transcript()
        return HttpResponse(
            status=200,
            body=f"[{','.join(messages)}]".encode(),
            content_type="application/json",
        )

    async def call(
        self, address: AgentAddress, method: str, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        """See `HostClient`."""
        function = await self._method(address, method)
        result = function(*args, **kwargs)
        if not inspect.isawaitable(result):
            raise ConfigurationError(f"{method} is not async; only async methods can be called.")
        return await result

    async def iterate(
        self, address: AgentAddress, method: str, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> AsyncIterator[Any]:
        """See `HostClient`."""
        function = await self._method(address, method)
        async with aclosing(function(*args, **kwargs)) as items:
            async for item in items:
                yield item

    async def _method(self, address: AgentAddress, method: str) -> Callable[..., Any]:
        agent = (await self._agent(address)).agent
        function = getattr(agent, method, None)
        if method.startswith("_") or not callable(function):
            raise ConfigurationError(f"{type(agent).__name__} has no public method {method!r}.")
        return function
