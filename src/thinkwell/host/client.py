"""The one way between edge and host.

The edge owns sockets and HTTP; the host owns agents. Everything that crosses is JSON-safe: frame
texts, small records, JSON values. On one machine `LocalHostClient` is a direct call; on a cluster
another client reaches a host in another process through the same four verbs.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec


class AgentAddress(msgspec.Struct, frozen=True):
    """One agent: its class in kebab case and its name, both as they stand in the URL."""

    class_name: str
    name: str

    @property
    def id(self) -> str:
        """The agent's id in the store."""
        return f"{self.class_name}/{self.name}"


class HttpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """An HTTP request for one agent; `path` is what follows the agent's address (`get-messages`,
    or empty).
    """

    method: str
    path: str
    query: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    headers: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    body: bytes = b""


class HttpResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to an `HttpRequest`."""

    status: int
    body: bytes = b""
    content_type: str = "text/plain;charset=UTF-8"


FrameSink = Callable[[Sequence[str]], None]
"""Takes frame texts for one connection, in order.

Contract: never blocks, never raises; called on the host's loop.
"""


class Connection(Protocol):
    """The edge's handle on one open connection."""

    async def receive(self, data: str | bytes) -> None:
        """Hand in one WebSocket message. Never raises for what a client sent."""
        ...

    async def close(self) -> None:
        """The socket is gone. A running turn goes on."""
        ...


class HostClient(Protocol):
    """What an edge may ask of a host."""

    def knows(self, class_name: str) -> bool:
        """Whether there is an agent class with that kebab name."""
        ...

    async def open_connection(
        self, address: AgentAddress, connection_id: str, sink: FrameSink
    ) -> Connection:
        """Wake the agent, send the connect sequence to `sink`, return the handle."""
        ...

    async def handle_request(self, address: AgentAddress, request: HttpRequest) -> HttpResponse:
        """Pass an HTTP request to an agent."""
        ...

    async def call(
        self, address: AgentAddress, method: str, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        """Call an async method of an agent."""
        ...

    def iterate(
        self, address: AgentAddress, method: str, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> AsyncIterator[Any]:
        """Follow an async generator method of an agent."""
        ...
