"""One WebSocket: check, accept, open the connection at the host, read, write, close.

Owned here: the socket's life and the translation between ASGI messages and frame texts. What frames
mean is the host's business. A closed socket never stops a turn.

An upgrade that is refused is tried again by clients for ever (spec/01 §1.3.3). So only what is no
client of ours is refused: other paths, other hosts, foreign pages. Whoever `auth` does not let in
gets a socket that is closed at once, with a code that ends the trying: 4401, or 4000 plus the
status of an `HTTPException`.
Contract: frames from the client reach the host one by one, in order, after the connect sequence.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

from starlette.exceptions import WebSocketException
from starlette.requests import HTTPConnection
from starlette.responses import Response

from thinkwell.core.errors import (
    AgentDeletedError,
    AgentParkedError,
    StoreError,
    StoreUnavailableError,
    ThinkwellError,
)
from thinkwell.core.ids import new_id
from thinkwell.core.json import dumps
from thinkwell.core.limits import payer_of
from thinkwell.core.tasks import TaskOwner
from thinkwell.core.user_code import code_fields, raised_in
from thinkwell.host.client import AgentAddress, EdgeConnection
from thinkwell.server.access import Admitted, Denied
from thinkwell.server.asgi import AsgiCall, Send
from thinkwell.server.edge import Edge, address_of, agent_request
from thinkwell.server.guests import Guest
from thinkwell.server.outbox import ABORT, EXTENSION, PAUSE, Outbox
from thinkwell.server.quota import refuse_name, refuse_new_agent
from thinkwell.server.responses import text_response
from thinkwell.server.routing import AgentRoute, RouteMatch, UnknownClass

log = logging.getLogger("thinkwell.server")

TOO_BIG = 1009
SETUP_FAILED = 1011
TRY_AGAIN_LATER = 1013
REFUSED = 4000
"""Plus an HTTP status: a close that clients do not answer with another try."""
LONGEST_REASON = 120
FAREWELL_TIMEOUT = 1.0
"""Seconds a client that is cut off gets to hear of it."""


async def serve_websocket(edge: Edge, match: RouteMatch, call: AsgiCall) -> None:
    """Serve one socket until it is gone."""
    await call.receive()  # websocket.connect
    request = HTTPConnection(call.scope)
    if not edge.is_meant(call.scope):
        await refuse(call, 400, "Host not allowed")
    elif not edge.may_connect(call.scope):
        await refuse(call, 403, "Origin not allowed")
    elif isinstance(match, UnknownClass):
        await refuse(call, 400, "Invalid request")
    elif not isinstance(match, AgentRoute):
        await refuse(call, 404, "Not found")
    elif request.query_params.get("__agents_transport") == "capnweb":
        await refuse(call, 400, "Unsupported transport")
    else:
        await _serve_agent(edge, match, request, call)


async def refuse(call: AsgiCall, status: int, text: str) -> None:
    """Answer an upgrade with an HTTP error instead of a socket."""
    await _refuse_with(call, text_response(status, text))


async def _refuse_with(call: AsgiCall, response: Response) -> None:
    body = bytes(getattr(response, "body", b""))
    if "websocket.http.response" not in call.scope.get("extensions", {}):
        reason = body.decode("utf-8", "replace")[:LONGEST_REASON]
        # The server cannot answer an upgrade with a page; a close before the accept is a plain
        # 403.
        await call.send({"type": "websocket.close", "code": 1008, "reason": reason})
        return
    start = {"type": "websocket.http.response.start", "status": response.status_code}
    await call.send({**start, "headers": response.raw_headers})
    await call.send({"type": "websocket.http.response.body", "body": body})


async def _serve_agent(
    edge: Edge, route: AgentRoute, request: HTTPConnection, call: AsgiCall
) -> None:
    too_long = refuse_name(edge, route)
    if too_long is not None:
        await _accept_and_close(call.send, REFUSED + too_long.status, too_long.text)
        return
    # Taken before `auth` is asked: a principal that is revoked while it decides is not let in.
    since = edge.guests.rounds
    try:
        verdict = await edge.access.judge(request, route)
    except WebSocketException as refused:
        await _accept_and_close(call.send, refused.code, refused.reason)
        return
    except Exception as error:
        log.exception("a socket could not be judged", extra={"path": call.scope["path"]})
        await call.send({"type": "websocket.accept"})
        await _report(error, call.send)
        return
    match verdict:
        case Denied(status=status, text=text):
            await _accept_and_close(call.send, REFUSED + status, text)
        case Response():
            await _refuse_with(call, verdict)
        case Admitted():
            await _take_in(edge, route, verdict, call, since=since)


async def _take_in(
    edge: Edge, route: AgentRoute, admitted: Admitted, call: AsgiCall, *, since: int
) -> None:
    """Open the socket, unless its client has its share already."""
    request = admitted.request
    payer = payer_of(admitted.principal, address_of(request))
    with edge.meter.socket(payer) as has_room:
        if not has_room:
            await _accept_and_close(call.send, TRY_AGAIN_LATER, "Too many connections")
            return
        refusal = await refuse_new_agent(edge, route, payer)
        if refusal is not None:
            await _accept_and_close(call.send, REFUSED + refusal.status, refusal.text)
            return
        ask = partial(edge.access.still, HTTPConnection(call.scope), route)
        async with edge.guests.staying(admitted.principal, ask, since=since) as guest:
            if guest.refused.is_set():
                await _accept_and_close(call.send, guest.code, "Unauthorized")
                return
            await _open(edge, route, admitted, call, guest=guest)


async def _open(
    edge: Edge, route: AgentRoute, admitted: Admitted, call: AsgiCall, *, guest: Guest
) -> None:
    send = call.send
    await send({"type": "websocket.accept"})
    outbox, tasks = Outbox(), TaskOwner("socket")
    tasks.spawn(_write(outbox, call), name="writer")
    edge.meter.open_sockets += 1
    try:
        address = AgentAddress(route.class_name, route.name)
        opening = agent_request(admitted.request, route, admitted.principal)
        # Clients choose their id and keep it over reconnects; that is how a tab is known again.
        connection_id = opening.query.get("_pk") or new_id()
        try:
            connection = await edge.host.open_connection(address, connection_id, opening, outbox)
        except Exception as error:
            # Who comes while an agent goes is told so; nothing is wrong here.
            level = logging.INFO if isinstance(error, AgentDeletedError) else logging.ERROR
            known = isinstance(error, AgentParkedError | AgentDeletedError)
            trace = None if known else error
            code = raised_in(error) or "the server"
            about = {"agent": address.id, **code_fields(error)}
            text = "a connection of agent %s could not be set up (%s): %r"
            log.log(level, text, address.id, code, error, exc_info=trace, extra=about)
            outbox.discard()
            await _report(error, send)
        else:
            payer = payer_of(admitted.principal, opening.client)

            async def may_speak() -> bool:
                await edge.meter.message(payer)
                return not guest.refused.is_set()

            read = _read(connection, call, edge.max_frame_bytes, may_speak)
            reading = tasks.spawn(read, name="reader")
            too_slow = tasks.spawn(outbox.overflowed.wait(), name="overflow")
            refused = tasks.spawn(guest.refused.wait(), name="guest")
            await asyncio.wait([reading, too_slow, refused], return_when=asyncio.FIRST_COMPLETED)
            if guest.refused.is_set():
                outbox.discard()
                await _show_out(call, guest)
            elif too_slow.done():
                await _cut_off(call)
    finally:
        edge.meter.open_sockets -= 1
        outbox.discard()
        await tasks.close()


async def _accept_and_close(send: Send, code: int, reason: str) -> None:
    with suppress(OSError):
        await send({"type": "websocket.accept"})
        await _close(send, code, reason)


async def _close(send: Send, code: int, reason: str) -> None:
    short = reason.encode()[:LONGEST_REASON].decode("utf-8", "ignore")  # a close frame is small
    await send({"type": "websocket.close", "code": code, "reason": short})


async def _report(error: Exception, send: Send) -> None:
    """Tell the client why there is no connection (§1.3.7). Only our own errors show their text."""
    code = SETUP_FAILED
    match error:
        case AgentDeletedError():  # as if it had been connected before
            code, text = REFUSED + 410, str(error)
        case StoreUnavailableError():
            text = error.client_text()
        case ThinkwellError() if not isinstance(error, StoreError):
            text = str(error)
        case _:
            text = "Internal error"
    with suppress(OSError):
        await send({"type": "websocket.send", "text": dumps({"error": text})})
        await send({"type": "websocket.close", "code": code})


async def _read(
    connection: EdgeConnection, call: AsgiCall, limit: int, may_speak: Callable[[], Awaitable[bool]]
) -> None:
    code, reason = 1006, ""
    try:
        while True:
            message = await call.receive()
            if message["type"] == "websocket.disconnect":
                code, reason = message.get("code", 1005), message.get("reason") or ""
                return
            text: str | None = message.get("text")
            data: str | bytes = message["bytes"] if text is None else text
            if _is_too_big(data, limit):  # for servers that do not check this themselves
                code, reason = TOO_BIG, f"A frame may have at most {limit} bytes"
                with suppress(OSError):
                    await _close(call.send, code, reason)
                return
            if not await may_speak():
                return
            await connection.receive(data)
    finally:
        await connection.close(code, reason)


def _is_too_big(data: str | bytes, limit: int) -> bool:
    # Encoding a long text to measure it would cost more than reading it; most need no look at
    # all.
    if isinstance(data, bytes) or data.isascii() or len(data) > limit:
        return len(data) > limit
    return len(data) * 4 > limit and len(data.encode()) > limit


async def _write(outbox: Outbox, call: AsgiCall) -> None:
    # ASGI servers raise an OSError when the client has gone; the reader hears of it as well.
    with suppress(OSError):
        can = call.scope.get("extensions", {})
        write_now = can.get(EXTENSION, {}).get("write")
        joined, pauses = EXTENSION in can, PAUSE in can
        await outbox.write(call.send, joined=joined, pauses=pauses, write_now=write_now)


async def _show_out(call: AsgiCall, guest: Guest) -> None:
    log.info("a client is disconnected, because auth does not know it any more")
    await _farewell(call, guest.code, "Unauthorized")


async def _cut_off(call: AsgiCall) -> None:
    log.warning("a client was too slow and is disconnected")
    await _farewell(call, TRY_AGAIN_LATER, "too slow")


async def _farewell(call: AsgiCall, code: int, reason: str) -> None:
    try:
        async with asyncio.timeout(FAREWELL_TIMEOUT):
            await _close(call.send, code, reason)
    except TimeoutError:
        # A client that reads nothing cannot be told either; then the socket just goes, with all
        # that waits in it. Where the server offers no way to do so, ending is all there is.
        if ABORT in call.scope.get("extensions", {}):
            await call.send({"type": ABORT})
    except OSError:
        return  # it has gone by itself
