"""Plain HTTP: requests for one agent, else the app's own pages (spec/01 §1.3).

The order at the door: the host's name, the page's origin, `auth`, `on_before_request`, the size of
the body; whoever expired or was revoked until then is refused after all. Codes and texts for paths
that lead nowhere are the protocol's. An error inside is logged and answered with 500, never shown.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, aclosing
from functools import partial
from typing import cast

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from thinkwell.core import json
from thinkwell.core.errors import (
    AgentDeletedError,
    AgentParkedError,
    HostClosedError,
    StoreUnavailableError,
)
from thinkwell.core.limits import payer_of
from thinkwell.core.tasks import CutOffError
from thinkwell.core.user_code import code_fields, raised_in
from thinkwell.host.client import AgentAddress
from thinkwell.server.access import Denied
from thinkwell.server.asgi import AsgiCall, header, header_pairs, local_path
from thinkwell.server.edge import Edge, address_of, agent_request
from thinkwell.server.guests import Guest
from thinkwell.server.own_pages import serve_own
from thinkwell.server.quota import refuse_message, refuse_name, refuse_new_agent
from thinkwell.server.responses import text_response
from thinkwell.server.routing import AgentRoute, NotOurs, RouteMatch, UnknownChild, UnknownClass
from thinkwell.server.slow_readers import patient
from thinkwell.server.streamed_answer import StreamedAnswer
from thinkwell.wire.http import RETRY_LATER, HttpResponse

log = logging.getLogger("thinkwell.server")

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
STOPPING = (
    b'data: {"type":"error","errorText":"The server stops. The answer goes on when it is back."}'
    b"\n\ndata: [DONE]\n\n"
)
"""The last events of a chat stream that a stop cuts."""
MOST_DIGITS = 18
"""Of a length that is worth reading."""


async def serve_http(edge: Edge, match: RouteMatch, call: AsgiCall) -> None:
    """Answer one HTTP request."""
    request = Request(call.scope, call.receive)
    try:
        response = await _respond_unless_stopped(edge, match, request)
    except ClientDisconnect:
        return
    except HostClosedError:
        response = text_response(503, "Service Unavailable")
    except AgentDeletedError as error:
        response = text_response(410, str(error))
    except AgentParkedError as error:
        response = text_response(503, str(error))
    except StoreUnavailableError as error:
        log.warning("a request was refused: %s", error.reason, extra={"action": "refuse"})
        response = text_response(503, error.client_text(), RETRY_LATER)
    except Exception as error:
        path, code = call.scope["path"], raised_in(error) or "the server"
        about = {"path": path, **code_fields(error)}
        log.exception("a request failed in %s: %s", code, path, extra=about)
        response = text_response(500, "Internal Server Error")
    if edge.cors is not None and isinstance(match, AgentRoute):
        response.headers.update(edge.cors)
    try:
        send = patient(call.send, edge.meter.limits.read_seconds)
        await _send_unless_stopped(edge, response, AsgiCall(call.scope, call.receive, send))
    except (ClientDisconnect, HostClosedError, AgentDeletedError):
        log.debug("a stream was cut", extra={"path": call.scope["path"]})
    except Exception:  # it has begun: all that is left is to cut it
        log.exception("a stream failed", extra={"path": call.scope["path"]})


async def _respond_unless_stopped(edge: Edge, match: RouteMatch, request: Request) -> Response:
    """The answer; for whoever still waits when the server stops, that it does."""
    try:
        return await _respond(edge, match, request)
    except asyncio.CancelledError as cut:
        _take_stop(edge, cut)
        if isinstance(cut, CutOffError):
            body = json.dump_bytes(cut.said)
            return Response(body, 503, dict(RETRY_LATER), media_type="application/json")
        return text_response(503, "Service Unavailable", RETRY_LATER)


async def _send_unless_stopped(edge: Edge, response: Response, call: AsgiCall) -> None:
    """Send the answer. A stream that a stop cuts ends as one: its turn goes on later."""
    try:
        await response(call.scope, call.receive, call.send)
    except asyncio.CancelledError as cut:
        _take_stop(edge, cut)
        last = STOPPING if response.headers.get("content-type") == "text/event-stream" else b""
        await call.send({"type": "http.response.body", "body": last, "more_body": False})


def _take_stop(edge: Edge, cut: asyncio.CancelledError) -> None:
    """Go on after a cancel that is the server's stop; any other one is raised again."""
    task = asyncio.current_task()
    if edge.host.not_ready() not in ("stopping", "draining") or task is None:
        raise cut
    task.uncancel()


async def _respond(edge: Edge, match: RouteMatch, request: Request) -> Response:
    path = local_path(request.scope)
    if path not in ("/healthz", "/readyz") and not edge.is_meant(request.scope):
        host = request.headers.get("host", "")
        text = f"The host {host!r} is not served here. Name it in App(allowed_hosts=[...])."
        return text_response(400, text)
    own = None if isinstance(match, AgentRoute) else await serve_own(edge, path, request)
    if own is not None:
        return own
    match match:
        case AgentRoute():
            return await _serve_agent(edge, match, request)
        case UnknownClass():
            return text_response(400, "Invalid request")
        case UnknownChild():
            return text_response(404, "Not Found")
        case NotOurs():
            return text_response(404, "Not found")


async def _serve_agent(edge: Edge, route: AgentRoute, request: Request) -> Response:
    if edge.cors is not None and request.method == "OPTIONS":
        return Response()
    if request.method not in SAFE_METHODS and not edge.may_write(request.scope):
        return text_response(403, "Origin not allowed")
    too_long = refuse_name(edge, route)
    if too_long is not None:
        return text_response(too_long.status, too_long.text)
    since = edge.guests.rounds
    verdict = await edge.access.judge(request, route)
    if isinstance(verdict, Response):
        return verdict
    if isinstance(verdict, Denied):
        return text_response(verdict.status, verdict.text, dict(verdict.headers))
    payer = payer_of(verdict.principal, address_of(request))
    refusal = refuse_message(edge, payer) or await refuse_new_agent(edge, route, payer)
    if refusal is not None:
        return text_response(refusal.status, refusal.text, refusal.headers)
    body = await _take_body(edge, cast("Request", verdict.request))
    if isinstance(body, Response):
        return body
    ask = partial(edge.access.still, request, route)
    if await edge.guests.refuses(verdict.principal, ask, since=since):
        return text_response(401, "Unauthorized")
    answer = await edge.host.handle_request(
        AgentAddress(route.class_name, route.name),
        agent_request(verdict.request, route, verdict.principal, body),
    )
    if answer.stream is not None:
        stays = edge.guests.staying(verdict.principal, ask, since=since)
        answer = msgspec.structs.replace(answer, stream=_while_allowed(stays, answer.stream))
    return _as_response(answer, http2=request.scope.get("http_version", "1.1") >= "2")


async def _take_body(edge: Edge, request: Request) -> bytes | Response:
    """The body, or the answer to one that is too slow or too large."""
    try:
        async with asyncio.timeout(edge.meter.limits.body_seconds):
            body = await _read_body(request, edge.max_body_bytes)
    except TimeoutError:
        return text_response(408, "The body came too slowly.", {"connection": "close"})
    if body is None:
        limit = f"A request may have at most {edge.max_body_bytes} bytes."
        return text_response(413, f"Content Too Large. {limit}")
    return body


async def _read_body(request: Request, limit: int) -> bytes | None:
    """The whole body, or None if it is larger than the limit."""
    said = header(request.scope, b"content-length") or ""
    if said.isdecimal() and (len(said) > MOST_DIGITS or int(said) > limit):
        return None
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > limit:
            return None
    return bytes(body)


def _as_response(answer: HttpResponse, *, http2: bool) -> Response:
    kind = {"content-type": answer.content_type}
    headers = dict(header_pairs(kind) + header_pairs(answer.headers))
    if http2:
        headers.pop("connection", None)  # the newer protocols have no such header
    if answer.stream is not None:
        return StreamedAnswer(answer.stream, answer.status, headers)
    return Response(answer.body, answer.status, headers)


async def _while_allowed(
    stays: AbstractAsyncContextManager[Guest], stream: AsyncIterator[bytes]
) -> AsyncGenerator[bytes]:
    """The stream, as long as whoever reads it may."""
    async with stays as guest, aclosing(cast("AsyncGenerator[bytes]", stream)) as pieces:
        async for piece in pieces:
            if guest.refused.is_set():
                return
            yield piece
