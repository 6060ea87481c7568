"""One WebSocket: check, accept, open the connection at the host, read, write, close.

Owned here: the socket's life and the translation between ASGI messages and frame texts. What frames
mean is the host's business. A closed socket never stops a turn.
Contract: frames from the client reach the host one by one, in order, after the connect sequence.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from contextlib import suppress
from urllib.parse import parse_qs, urlsplit

from thinkwell.core.errors import ThinkwellError
from thinkwell.core.ids import new_id
from thinkwell.core.json import dumps
from thinkwell.core.tasks import TaskOwner
from thinkwell.host.client import AgentAddress, Connection, HostClient
from thinkwell.server.asgi import Call, Receive, Scope, Send, header
from thinkwell.server.outbox import Outbox
from thinkwell.server.routing import Route

log = logging.getLogger("thinkwell.server")

SETUP_FAILED = 1011
TRY_AGAIN_LATER = 1013


def origin_allowed(scope: Scope, allowed_origins: Collection[str]) -> bool:
    """Whether a browser on that page may connect: no origin, the same host, or a listed one."""
    origin = header(scope, b"origin")
    if origin is None or "*" in allowed_origins or origin in allowed_origins:
        return True
    return urlsplit(origin).netloc.lower() == (header(scope, b"host") or "").lower()


async def refuse(call: Call, status: int, text: str) -> None:
    """Answer an upgrade with an HTTP error instead of a socket."""
    if "websocket.http.response" not in call.scope.get("extensions", {}):
        await call.send({"type": "websocket.close", "code": 1008, "reason": text})
        return
    headers = [(b"content-type", b"text/plain;charset=UTF-8")]
    await call.send({"type": "websocket.http.response.start", "status": status, "headers": headers})
    await call.send({"type": "websocket.http.response.body", "body": text.encode()})


async def serve_websocket(host: HostClient, route: Route, call: Call) -> None:
    """Serve one socket of an agent until it is gone."""
    scope, receive, send = call
    query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
    await receive()  # websocket.connect
    if "capnweb" in query.get("__agents_transport", []):
        await refuse(call, 400, "Unsupported transport")
        return
    await send({"type": "websocket.accept"})
    outbox, tasks = Outbox(), TaskOwner("socket")
    tasks.spawn(_write(outbox, send), name="writer")
    tasks.spawn(_cut_off(outbox, send), name="overflow")
    try:
        address = AgentAddress(route.class_name, route.name)
        connection_id = query.get("_pk", [""])[0] or new_id()
        try:
            connection = await host.open_connection(address, connection_id, outbox.push)
        except Exception as error:
            log.exception("a connection could not be set up", extra={"agent": address.id})
            outbox.close()
            await _report(error, send)
        else:
            await _read(connection, receive)
    finally:
        outbox.close()
        await tasks.close()


async def _report(error: Exception, send: Send) -> None:
    """Tell the client why there is no connection (§1.3.7). Only our own errors show their text."""
    text = str(error) if isinstance(error, ThinkwellError) else "Internal error"
    with suppress(OSError):
        await send({"type": "websocket.send", "text": dumps({"error": text})})
        await send({"type": "websocket.close", "code": SETUP_FAILED})


async def _read(connection: Connection, receive: Receive) -> None:
    try:
        while True:
            message = await receive()
            if message["type"] == "websocket.disconnect":
                return
            text: str | None = message.get("text")
            await connection.receive(message["bytes"] if text is None else text)
    finally:
        await connection.close()


async def _write(outbox: Outbox, send: Send) -> None:
    # ASGI servers raise an OSError when the client has gone; the reader hears of it as well.
    with suppress(OSError):
        await outbox.write(send)


async def _cut_off(outbox: Outbox, send: Send) -> None:
    await outbox.overflowed.wait()
    log.warning("a client was too slow and is disconnected")
    with suppress(OSError):
        await send({"type": "websocket.close", "code": TRY_AGAIN_LATER, "reason": "too slow"})
