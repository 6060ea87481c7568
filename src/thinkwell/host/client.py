"""The one way between edge and host.

The edge owns sockets and HTTP; the host owns agents. Everything that crosses is JSON-safe: frame
texts, small records, JSON values. On one machine `LocalHostClient` is a direct call; on a cluster
another client reaches a host in another process through the same few verbs.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Protocol, cast

import msgspec

from thinkwell.core.errors import ConfigurationError
from thinkwell.host.figures import HostFigures
from thinkwell.live.watchers import Sink
from thinkwell.wire.http import HttpRequest, HttpResponse


class ConversationEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One agent as a list shows it."""

    name: str
    title: str
    """The beginning of the first question; empty if there is none."""
    updated_at: float
    """When its latest turn was accepted, in seconds since the epoch."""


class AgentAddress(msgspec.Struct, frozen=True):
    """One agent: its class in kebab case and its name, both as they stand in the URL."""

    class_name: str
    name: str

    @classmethod
    def of(cls, agent_id: str) -> AgentAddress:
        """The address of an agent by its id."""
        class_name, _, name = agent_id.partition("/")
        return cls(class_name, name)

    @property
    def id(self) -> str:
        """The agent's id in the store."""
        return f"{self.class_name}/{self.name}"


def check_agent_name(name: str, call: Callable[[str], str]) -> None:
    """The name of an agent is a text: it stands in URLs and in the store. `call` is what to write
    with a right one.
    """
    given = cast("object", name)
    if not isinstance(given, str) or not given:
        right = repr(str(given) or "default")
        raise ConfigurationError(
            f"An agent's name is a text, not {given!r:.50}. Write `{call(right)}`."
        )


class EdgeConnection(Protocol):
    """The edge's handle on one open connection."""

    async def receive(self, data: str | bytes) -> None:
        """Hand in one WebSocket message. Never raises for what a client sent."""
        ...

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """The socket is gone. A running turn goes on."""
        ...


class HostClient(Protocol):
    """What an edge may ask of a host."""

    def knows(self, class_name: str) -> bool:
        """Whether there is an agent class with that kebab name."""
        ...

    def not_ready(self) -> str | None:
        """Why the host accepts no work now; None if it does."""
        ...

    async def figures(self) -> HostFigures:
        """How much work there is, and what was done since the start."""
        ...

    async def exists(self, address: AgentAddress) -> bool:
        """Whether the agent has anything stored. Looking at one that has not makes none."""
        ...

    async def open_connection(
        self, address: AgentAddress, connection_id: str, request: HttpRequest, sink: Sink
    ) -> EdgeConnection:
        """Wake the agent, send the connect sequence to `sink`, return the handle.

        `request` is the upgrade: its query, headers and principal.
        """
        ...

    async def handle_request(self, address: AgentAddress, request: HttpRequest) -> HttpResponse:
        """Pass an HTTP request to an agent. The stream of the answer has `aclose`."""
        ...

    async def conversations(
        self, class_name: str, limit: int, offset: int = 0
    ) -> Sequence[ConversationEntry]:
        """The agents of a class that have been talked to, the latest first."""
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
