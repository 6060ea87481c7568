"""A host without agents and an ASGI client without a server."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from thinkwell.core.histogram import Histogram
from thinkwell.host.client import AgentAddress, ConversationEntry
from thinkwell.host.figures import HostFigures
from thinkwell.live.watchers import Sink
from thinkwell.server.access import Access
from thinkwell.server.asgi import AsgiCall, Message
from thinkwell.server.edge import Edge
from thinkwell.server.pages import Page
from thinkwell.wire.http import HttpRequest, HttpResponse


class FakeConnection:
    def __init__(self) -> None:
        self.received: asyncio.Queue[str | bytes] = asyncio.Queue()
        self.closed = asyncio.Event()

    async def receive(self, data: str | bytes) -> None:
        self.received.put_nowait(data)

    async def close(self, code: int = 1000, reason: str = "") -> None:
        self.ended_with = (code, reason)
        self.closed.set()


class FakeHost:
    """Remembers what it was asked; answers what the test put in."""

    def __init__(self) -> None:
        self.connection = FakeConnection()
        self.opened: list[tuple[AgentAddress, str]] = []
        self.requests: list[HttpRequest] = []
        self.calls: list[tuple[AgentAddress, str, tuple[Any, ...], dict[str, Any]]] = []
        self.sink: Sink | None = None
        self.greeting: list[str] = []
        self.failure: Exception | None = None
        self.answer = HttpResponse(body=b"[]", content_type="application/json")
        self.talked_to: list[ConversationEntry] = []
        self.unready: str | None = None

    def knows(self, class_name: str) -> bool:
        return class_name == "chat-agent"

    def not_ready(self) -> str | None:
        return self.unready

    async def figures(self) -> HostFigures:
        nothing = Histogram(())
        return HostFigures(
            awake={},
            turns_running=0,
            chunks=0,
            commits=nothing,
            lags=nothing,
            open_work=None,
            spent={},
        )

    async def exists(self, address: AgentAddress) -> bool:
        return True

    async def open_connection(
        self, address: AgentAddress, connection_id: str, request: HttpRequest, sink: Sink
    ) -> FakeConnection:
        if self.failure is not None:
            raise self.failure
        self.opened.append((address, connection_id))
        self.requests.append(request)
        self.sink = sink
        sink.send(self.greeting)
        return self.connection

    async def handle_request(self, address: AgentAddress, request: HttpRequest) -> HttpResponse:
        if self.failure is not None:
            raise self.failure
        self.requests.append(request)
        return self.answer

    async def conversations(
        self, class_name: str, limit: int, offset: int = 0
    ) -> Sequence[ConversationEntry]:
        return self.talked_to[offset : offset + limit]

    async def call(
        self, address: AgentAddress, method: str, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        self.calls.append((address, method, tuple(args), dict(kwargs)))
        return "answer"

    async def iterate(
        self, address: AgentAddress, method: str, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> AsyncIterator[Any]:
        self.calls.append((address, method, tuple(args), dict(kwargs)))
        for item in (1, 2):
            yield item


def make_edge(host: FakeHost, **options: Any) -> Edge:
    """An edge in front of that host, open to everybody unless the options say otherwise."""
    page = Page(agents=["chat-agent"], prefix="agents")
    return Edge(**{"host": host, "page": page, "access": Access(), **options})


class AsgiClient:
    """One ASGI call: what the app sends ends up in `sent`, in order."""

    def __init__(
        self,
        kind: str,
        path: str = "/",
        *,
        query: str = "",
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        **more: str,
    ) -> None:
        self._inbox: asyncio.Queue[Message] = asyncio.Queue()
        self.sent: asyncio.Queue[Message] = asyncio.Queue()
        self.stuck = asyncio.Event()
        self.scope: dict[str, Any] = {
            "type": kind,
            "method": "GET",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [
                (key.replace("_", "-").encode(), value.encode())
                for key, value in {**(headers or {}), **more}.items()
            ],
            "extensions": {"websocket.http.response": {}},
        }
        if kind == "websocket":
            self.push({"type": "websocket.connect"})
        else:
            self.push({"type": "http.request", "body": body, "more_body": False})

    @property
    def call(self) -> AsgiCall:
        return AsgiCall(self.scope, self._inbox.get, self._send)

    def push(self, message: Message) -> None:
        self._inbox.put_nowait(message)

    async def _send(self, message: Message) -> None:
        if self.stuck.is_set():
            await asyncio.Event().wait()
        self.sent.put_nowait(message)

    async def next(self) -> Message:
        return await self.sent.get()

    async def response(self) -> tuple[int, bytes, dict[bytes, bytes]]:
        start = await self.next()
        body = await self.next()
        return start["status"], body["body"], dict(start["headers"])


@contextlib.asynccontextmanager
async def running(work: Any):
    """Run a coroutine beside the test and end it with the test."""
    task = asyncio.get_running_loop().create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
