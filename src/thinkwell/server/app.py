"""`App`: agent classes become one ASGI application.

It owns the host and the edge around it. The host starts with the server's lifespan, with
`async with app:`, or with the first request when another app mounts this one and runs no lifespan
for it. Each request is sent to the right place; what agents do is the host's business.
Invariant: a stopped app does not start again by itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from thinkwell.core.errors import ConfigurationError, HostClosedError, ThinkwellError
from thinkwell.host.client import AgentAddress, HostClient
from thinkwell.server.asgi import Call, Receive, Scope, Send, local_path
from thinkwell.server.routing import NotOurs, Route, RouteMatch, UnknownChild, match_route
from thinkwell.server.stub import AgentStub

if TYPE_CHECKING:
    from typing import Self

    from thinkwell.agent.think import Think
    from thinkwell.host.host import Host
    from thinkwell.server.pages import Page

log = logging.getLogger("thinkwell.server")
AgentT = TypeVar("AgentT")

DEFAULT_STORE = "sqlite:///.thinkwell/thinkwell.db"


class App:
    """An ASGI app that serves agents: run it with a server, mount it, or use `async with app:`.

    Args:
        agents: The agent classes to serve.
        store: Where everything durable lives: `sqlite:///path/to/file.db` or `sqlite://:memory:`.
        prefix: The first part of every agent's URL path.
        allowed_origins: Pages of other hosts that may open WebSockets, e.g. `https://example.com`.
    """

    def __init__(
        self,
        agents: Sequence[type[Think]],
        *,
        store: str = DEFAULT_STORE,
        prefix: str = "agents",
        allowed_origins: Collection[str] = (),
    ) -> None:
        self.agents = tuple(agents)
        self.store = store
        self.prefix = prefix.strip("/")
        self._names = _names_of(self.agents)
        self._allowed_origins = frozenset(origin.rstrip("/") for origin in allowed_origins)
        self._phase: Literal["new", "running", "stopped"] = "new"
        self._changing = asyncio.Lock()
        self._host: Host | None = None
        self._client: HostClient | None = None
        self._page: Page | None = None

    async def __aenter__(self) -> Self:
        """Run the app without a server."""
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop it."""
        await self.stop()

    async def start(self) -> None:
        """Open the store and wake what has unfinished work. Idempotent."""
        from thinkwell.host.host import Host
        from thinkwell.server.pages import Page
        from thinkwell.store.open import store_from_url

        async with self._changing:
            if self._phase == "running":
                return
            host = Host(self.agents, store_from_url(self.store))
            await host.start()
            self._host, self._client = host, host.client()
            self._page = Page(agents=self.agent_names, prefix=self.prefix)
            self._phase = "running"

    async def stop(self) -> None:
        """Stop the host. Unfinished turns go on at the next start. Idempotent."""
        async with self._changing:
            host, self._host, self._client = self._host, None, None
            self._phase = "stopped"
            if host is not None:
                await host.stop()

    @property
    def agent_names(self) -> tuple[str, ...]:
        """The names of the agent classes in URLs, in the order they were given."""
        return tuple(self._names.values())

    @property
    def client(self) -> HostClient:
        """The way to the running host."""
        if self._client is None:
            raise HostClosedError(
                "The app is not running. Serve it with `thinkwell serve`, or use `async with app:`."
            )
        return self._client

    def agent(self, cls: type[AgentT], name: str = "default") -> AgentT:
        """A stub of one agent: its public async methods can be called, the rest stays inside."""
        class_name = self._names.get(cls)
        if class_name is None:
            known = ", ".join(known.__name__ for known in self._names)
            raise ConfigurationError(
                f"This app does not serve {cls.__name__}; it serves {known}. "
                f"Write `App(agents=[..., {cls.__name__}])`."
            )
        stub = AgentStub(cls, AgentAddress(class_name, name), lambda: self.client)
        return cast("AgentT", stub)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one HTTP request, one WebSocket, or the server's lifespan."""
        call = Call(scope, receive, send)
        if scope["type"] == "lifespan":
            await self._lifespan(call)
            return
        if self._phase == "new":
            log.info("the app starts with its first request, because no lifespan was run for it")
            await self.start()
        client = self.client
        match = match_route(local_path(scope), prefix=self.prefix, knows=client.knows)
        if scope["type"] == "websocket":
            await self._websocket(client, match, call)
        else:
            from thinkwell.server.http import serve_http

            await serve_http(client, match, cast("Page", self._page), call)

    async def _websocket(self, client: HostClient, match: RouteMatch, call: Call) -> None:
        from thinkwell.server.websocket import origin_allowed, refuse, serve_websocket

        if not origin_allowed(call.scope, self._allowed_origins):
            await refuse(call, 403, "Origin not allowed")
        elif isinstance(match, Route):
            await serve_websocket(client, match, call)
        elif isinstance(match, NotOurs | UnknownChild):
            await refuse(call, 404, "Not found")
        else:
            await refuse(call, 400, "Invalid request")

    async def _lifespan(self, call: Call) -> None:
        await call.receive()
        try:
            await self.start()
        except ThinkwellError as error:
            await call.send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        await call.send({"type": "lifespan.startup.complete"})
        await call.receive()
        await self.stop()
        await call.send({"type": "lifespan.shutdown.complete"})


def _names_of(agents: Sequence[type[Think]]) -> dict[type, str]:
    """Each class with its name in URLs; two classes with one name are an error."""
    names: dict[type, str] = {}
    for cls in agents:
        if not _is_agent_class(cls):
            raise ConfigurationError(
                f"App(agents=[...]) takes agent classes, not {cls!r}. "
                "Write `App(agents=[Assistant])`, where `class Assistant(Think)`."
            )
        name = cls.agent_class
        other = next((known for known, taken in names.items() if taken == name), None)
        if other is not None:
            raise ConfigurationError(
                f"{other.__name__} and {cls.__name__} are both reached as {name!r}. "
                f'Give one another name: `class {cls.__name__}(Think, name="...")`.'
            )
        names[cls] = name
    return names


def _is_agent_class(value: Any) -> bool:
    from thinkwell.agent.think import Think

    return isinstance(value, type) and issubclass(value, Think)
