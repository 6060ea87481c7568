"""`App`: agent classes become one ASGI application.

It owns the host and the edge around it. The host starts with the server's lifespan, with
`async with app:`, or with the first request when another app mounts this one and runs no lifespan
for it. Each request is sent to the right place; what agents do is the host's business.
Invariant: a stopped app does not start again by itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from thinkwell.core.bus import EventBus
from thinkwell.core.errors import ConfigurationError, HostClosedError, ThinkwellError
from thinkwell.core.limits import Limits
from thinkwell.core.retention import Retention
from thinkwell.core.spelling import spelled
from thinkwell.core.threads import MOST_PER_OWNER, MOST_THREADS
from thinkwell.hooks.brought import listed
from thinkwell.hooks.seats import features_of
from thinkwell.host.client import AgentAddress, HostClient, check_agent_name
from thinkwell.host.stub import AgentStub
from thinkwell.journal.operating import PAUSED, Which
from thinkwell.models.limits import ModelLimits
from thinkwell.server import options
from thinkwell.server.asgi import AsgiCall, Receive, Scope, Send, local_path
from thinkwell.server.guard import LOCAL_HOSTS
from thinkwell.server.limits import MAX_BODY_BYTES, MAX_FRAME_BYTES
from thinkwell.server.options import at_least, collection
from thinkwell.server.routing import match_route

if TYPE_CHECKING:
    from typing import Self

    from thinkwell.agent.agent import Agent
    from thinkwell.core.budgets import Budget
    from thinkwell.hooks.feature import Feature
    from thinkwell.host.app_turns import AppTurns
    from thinkwell.host.control import Control
    from thinkwell.host.host import Host
    from thinkwell.host.operators import Operators
    from thinkwell.models.prices import Price
    from thinkwell.server.access import Auth, BeforeHook
    from thinkwell.server.edge import Edge
    from thinkwell.server.metrics import MayRead, Metrics
    from thinkwell.store.sqlite import Durability

log = logging.getLogger("thinkwell.server")
AgentT = TypeVar("AgentT")
NumberT = TypeVar("NumberT", int, float)

DEFAULT_STORE = "sqlite:///.thinkwell/thinkwell.db"


class App:
    """An ASGI app that serves agents: run it with a server, mount it, or use `async with app:`.

    Args:
        agents: The agent classes to serve.
        store: Where everything durable lives: `sqlite:///path/to/file.db` or `sqlite://:memory:`.
        durability: What a commit survives: `"process"` a crash of the process, `"power"` a power
            cut as well; it waits for the disk.
        prefix: The first part of every agent's URL path.
        cors: Whether pages of other sites may read answers and send requests: True, or the headers
            that say so. With True, requests that carry cookies change nothing.
        auth: `auth(request, route)` says who asks: a `Principal`, a user id, or None to refuse.
        on_before_connect: Looks at a socket's request after `auth`; may answer it instead.
        on_before_request: The same for plain requests.
        allowed_origins: Pages of other sites that may open sockets and send requests that change
            something, e.g. `https://example.com`.
        allowed_hosts: The names this server answers to. None: any, but without `auth` only
            localhost, 127.0.0.1 and ::1; `["*"]`: any.
        max_frame_bytes: The largest WebSocket message a client may send.
        max_body_bytes: The largest body of a request.
        drain_timeout: Seconds a stop may take, however busy the agents are.
        tool_threads: Threads for sync tools, of all agents together.
        tool_threads_per_agent: How many of them one agent may use at a time.
        limits: How much one principal or address may take; see `Limits`.
        model_limits: How much all agents together may ask of models, by pattern:
            `{"openai:*": ModelLimits(parallel=8)}`; see `ModelLimits`.
        retention: How long the records of finished work are kept; see `Retention`.
        features: What every agent can beside its own features; see `Feature`.
        metrics: Whether there is `/metrics`: True shows it to whom `auth` admits, without `auth` to
            this machine while nobody else can reach the app; False keeps none; a function
            `metrics(request)` decides by itself.
        version: What turns say about the code that accepted them. None: `THINKWELL_APP_VERSION`, or
            the version of the installed package the first agent is from.
        prices: What models cost that the catalog does not know, or not as you pay for them: a
            `Price` by name, e.g. `{"openai:ft:acme": Price(input=3, output=12)}`.
        budget: How much all agents together may cost; see `Budget`.
    """

    _phase: Literal["new", "running", "stopped"] = "new"
    _drain_by: float | None = None
    _host: Host | None = None
    _control: Control | None = None
    _client: HostClient | None = None
    _edge: Edge | None = None
    _counters: Metrics | None = None
    _turns: AppTurns | None = None

    @spelled("App()")
    def __init__(
        self,
        agents: Sequence[type[Agent]],
        *,
        store: str = DEFAULT_STORE,
        durability: Durability = "process",
        prefix: str = "agents",
        cors: bool | Mapping[str, str] = False,
        auth: Auth | None = None,
        on_before_connect: BeforeHook | None = None,
        on_before_request: BeforeHook | None = None,
        allowed_origins: Collection[str] = (),
        allowed_hosts: Collection[str] | None = None,
        max_frame_bytes: int = MAX_FRAME_BYTES,
        max_body_bytes: int = MAX_BODY_BYTES,
        drain_timeout: float = 10.0,
        tool_threads: int = MOST_THREADS,
        tool_threads_per_agent: int = MOST_PER_OWNER,
        limits: Limits = Limits(),  # noqa: B008 - frozen
        model_limits: Mapping[str, ModelLimits] | None = None,
        retention: Retention = Retention(),  # noqa: B008 - frozen
        features: Sequence[Feature] = (),
        metrics: bool | MayRead = True,
        version: str | None = None,
        prices: Mapping[str, Price] | None = None,
        budget: Budget | Sequence[Budget] = (),
    ) -> None:
        self.agents, self.store = options.agent_classes(agents), options.store_url(store)
        self.durability: Durability = options.durability(durability)
        self.prefix, self.cors, self.version = prefix.strip("/"), cors, options.version(version)
        self.auth = options.function("auth", auth)
        self.on_before_connect = options.function("on_before_connect", on_before_connect)
        self.on_before_request = options.function("on_before_request", on_before_request)
        self.allowed_origins = collection("allowed_origins", allowed_origins)
        self.allowed_hosts: Collection[str] | None = collection("allowed_hosts", allowed_hosts)
        self.max_frame_bytes = at_least("max_frame_bytes", max_frame_bytes, 1)
        self.max_body_bytes = at_least("max_body_bytes", max_body_bytes, 1)
        self.drain_timeout = at_least("drain_timeout", drain_timeout, 0)
        self.tool_threads = at_least("tool_threads", tool_threads, 1)
        self.tool_threads_per_agent = at_least("tool_threads_per_agent", tool_threads_per_agent, 1)
        self.limits, self.model_limits = limits, options.model_limits(model_limits or {})
        self.retention, self.metrics = options.retention(retention), options.metrics(metrics)
        self.prices, self.budget = options.prices(prices), options.budgets(budget)
        self._names, self._changing = options.names_of(self.agents), asyncio.Lock()
        self.events = EventBus(served=self.agent_names)
        """What happens inside, for whoever subscribes; also before the start."""
        self.features: Sequence[Feature] = listed(features, "App(features=...)")
        self.problems: Mapping[str, str] = {}
        """Why agents could not answer, by their names in URLs; the page shows it."""

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
        from thinkwell.host.control import control_of
        from thinkwell.host.host import Host
        from thinkwell.store.open import database_file, store_from_url

        async with self._changing:
            if self._phase == "running":
                return
            self._count()
            host = Host(
                self.agents,
                store_from_url(self.store, durability=self.durability),
                bus=self.events,
                drain_timeout=self.drain_timeout,
                tool_threads=self.tool_threads,
                tool_threads_per_agent=self.tool_threads_per_agent,
                limits=self.limits,
                model_limits=self.model_limits,
                retention=self.retention,
                features=self.features,
                version=self.version or options.installed_version(self.agents),
                prices=self.prices,
                budgets=self.budget,
            )
            await host.start()
            try:
                self._edge = self._make_edge(host.client())
                self._control = await control_of(host, database_file(self.store))
            except BaseException:
                await host.stop()  # or its file would stay locked
                raise
            self._host, self._client = host, host.client()
            self._drain_by = None
            self._phase = "running"

    def _count(self) -> None:
        """Begin to count, once: a later start goes on with the same counters."""
        if self._counters is None and self.metrics is not False:
            from thinkwell.server.metrics import Metrics

            may_read = None if self.metrics is True else self.metrics
            self._counters = Metrics(self.events, self.agent_names, self.store, may_read)

    async def stop(self) -> None:
        """Stop the host. Unfinished turns go on at the next start. Idempotent."""
        async with self._changing:
            host, self._host, self._client = self._host, None, None
            control, self._control = self._control, None
            self._phase = "stopped"
            if control is not None:
                control.leave()  # while the store is still ours: the next process makes its own
            if host is not None:
                by = self._drain_by
                await host.stop(None if by is None else by - asyncio.get_running_loop().time())
            if control is not None:
                await control.close()

    def begin_drain(self) -> None:
        """The server stops taking requests: from now on a stop has `drain_timeout` seconds."""
        if self._drain_by is None:
            if self._host is not None:
                self._host.draining = True
            last = min(0.2 * self.drain_timeout, 2.0)  # for the server's own end
            self._drain_by = asyncio.get_running_loop().time() + self.drain_timeout - last

    async def drain(self) -> None:
        """Let turns that run end while clients still see them, within most of `drain_timeout`.

        None begins any more: what is asked meanwhile is accepted, and answered after the restart.
        """
        self.begin_drain()
        if self._host is not None and self._drain_by is not None:
            left = self._drain_by - asyncio.get_running_loop().time()
            await self._host.drain(max(left - min(0.3 * left, 3.0), 0.0))

    @property
    def is_busy(self) -> bool:
        """Whether an agent has a turn, or anything else somebody waits for."""
        return self._host is not None and self._host.status()["busy"] > 0

    @property
    def turns(self) -> AppTurns:
        """Look at the turns of all agents, export them, replay them, fork them."""
        if self._turns is None:
            from thinkwell.host.app_turns import AppTurns

            self._turns = AppTurns(self._running_host)
        return self._turns

    def _running_host(self) -> Host:
        if self._host is None:
            raise HostClosedError("The app is not running. Use `async with app:` or serve it.")
        return self._host

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

    @overload
    def agent(self, cls: type[AgentT], name: str = "default") -> AgentT: ...
    @overload
    def agent(self, cls: str, name: str = "default") -> Any: ...
    def agent(self, cls: type | str, name: str = "default") -> Any:
        """A stub of one agent: its public async methods can be called, the rest stays inside.

        `cls` is its class, or the name of that in URLs.
        """
        served, class_name = self._served(cls)
        check_agent_name(name, lambda text: f"app.agent({served.__name__}, {text})")
        names = [feature.name for feature in features_of(served, self.features)]
        address = AgentAddress(class_name, name)
        return AgentStub(served, address, lambda: self.client, features=names)

    async def delete(self, cls: type[Agent] | str, name: str = "default") -> bool:
        """Delete an agent for good: its conversation, state, jobs and stored values.

        What runs is stopped and who is connected is sent away. False if nothing was stored.
        """
        served, class_name = self._served(cls)
        check_agent_name(name, lambda text: f"app.delete({served.__name__}, {text})")
        address = AgentAddress(class_name, name)
        return await self._running_host().delete(address)

    async def pause(
        self, cls: type[Agent] | str, name: str = "default", *, reason: str = PAUSED
    ) -> bool:
        """Let an agent accept turns and jobs and begin none of them until `resume`.

        What runs goes on to its end. It stays paused over restarts; connected clients are told.
        False if there is no such agent.
        """
        return await self._operators.pause(self._id("pause", cls, name), reason)

    async def resume(self, cls: type[Agent] | str, name: str = "default") -> bool:
        """Let a paused agent go on. False if it was not paused."""
        return await self._operators.resume(self._id("resume", cls, name))

    async def stop_turns(
        self,
        cls: type[Agent] | str | None = None,
        name: str = "default",
        *,
        request_id: str | None = None,
        reason: str = "stopped by an operator",
    ) -> int:
        """Stop turns that run or wait: one, those of one agent, or without arguments all there are.

        Stored first, so that a crash does not bring them back. How many there were.
        """
        agent = None if cls is None else self._id("stop_turns", cls, name)
        return await self._operators.stop_turns(Which(agent=agent, turn=request_id), reason)

    @property
    def _operators(self) -> Operators:
        if self._host is None:
            raise HostClosedError("The app is not running. Use `async with app:` or serve it.")
        return self._host.operators

    def _id(self, call: str, cls: type | str, name: str) -> str:
        served, class_name = self._served(cls)
        check_agent_name(name, lambda text: f"app.{call}({served.__name__}, {text})")
        return AgentAddress(class_name, name).id

    async def erase(self, principal_id: str) -> None:
        """Erase a person: what they asked and were answered, in every agent and every table.

        Agents that nobody else has talked to are deleted whole. It goes on after a crash.
        """
        if self._host is None:
            raise HostClosedError("The app is not running. Use `async with app:` or serve it.")
        await self._host.erase(principal_id)

    def _served(self, cls: type | str) -> tuple[type, str]:
        """A class and its name in URLs, by either of them."""
        for known, class_name in self._names.items():
            if cls in (known, class_name):
                return known, class_name
        title = cls.__name__ if isinstance(cls, type) else repr(cls)
        serves = ", ".join(f"{each.__name__} ({name!r})" for each, name in self._names.items())
        add = f" Write `App(agents=[..., {title}])`." if isinstance(cls, type) else ""
        raise ConfigurationError(f"This app does not serve {title}; it serves {serves}.{add}")

    async def revoke(self, principal_id: str) -> None:
        """Ask `auth` again about every open socket and stream of a principal.

        Those it does not let in any more are closed at once, sockets with 4401. Turns go on.
        """
        if self._edge is not None:
            await self._edge.guests.ask_again(principal_id)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one HTTP request, one WebSocket, or the server's lifespan."""
        call = AsgiCall(scope, receive, send)
        if scope["type"] == "lifespan":
            await self._lifespan(call)
            return
        edge = await self._running_edge()
        if edge is None:
            await _unavailable(call)
            return
        match = match_route(local_path(scope), prefix=self.prefix, knows=edge.host.knows)
        if scope["type"] == "websocket":
            from thinkwell.server.websocket import serve_websocket

            await serve_websocket(edge, match, call)
        else:
            from thinkwell.server.http import serve_http

            await serve_http(edge, match, call)

    async def _running_edge(self) -> Edge | None:
        if self._phase == "new":
            log.info("the app starts with its first request, because no lifespan was run for it")
            try:
                await self.start()
            except ThinkwellError:
                log.exception("the app could not start", extra={"action": "start"})
        return self._edge if self._phase == "running" else None

    def _make_edge(self, client: HostClient) -> Edge:
        from thinkwell.hooks.seats import page_settings
        from thinkwell.server.access import Access
        from thinkwell.server.edge import CORS, Edge
        from thinkwell.server.meter import Meter
        from thinkwell.server.pages import Page

        given = CORS if self.cors is True else self.cors
        return Edge(
            host=client,
            page=Page(
                agents=self.agent_names,
                prefix=self.prefix,
                told={
                    **page_settings({c.agent_class: c for c in self.agents}, self.features),
                    "problems": self.problems,
                },
            ),
            access=Access(
                self.auth,
                before_connect=self.on_before_connect,
                before_request=self.on_before_request,
            ),
            cors={name.lower(): value for name, value in given.items()} if given else None,
            allowed_origins=frozenset(origin.rstrip("/") for origin in self.allowed_origins),
            allowed_hosts=self._hosts(),
            max_frame_bytes=self.max_frame_bytes,
            max_body_bytes=self.max_body_bytes,
            meter=Meter(self.limits),
            metrics=self._counters,
        )

    def _hosts(self) -> frozenset[str] | None:
        """The names it answers to. Without `auth`, a name that leads here must be one of ours."""
        if self.allowed_hosts is None and self.auth is None:
            return LOCAL_HOSTS
        return collection("allowed_hosts", self.allowed_hosts)

    async def _lifespan(self, call: AsgiCall) -> None:
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


async def _unavailable(call: AsgiCall) -> None:
    """The app is stopped, or could not start."""
    from thinkwell.server.responses import text_response
    from thinkwell.server.websocket import refuse

    if call.scope["type"] == "websocket":
        await call.receive()
        await refuse(call, 503, "Service Unavailable")
        return
    response = text_response(503, "Service Unavailable")
    if local_path(call.scope) == "/readyz":
        from thinkwell.server.own_pages import not_ready

        response = not_ready("stopping")
    await response(call.scope, call.receive, call.send)
