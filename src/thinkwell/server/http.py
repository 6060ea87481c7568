"""Plain HTTP: the page, the health check, and requests for one agent (spec/01 §1.3.5-6).

Answers are Starlette responses. An agent's answers come from the host; codes and texts for paths
that lead nowhere are the protocol's. An error inside is logged and answered with 500, never shown.
"""

from __future__ import annotations

import logging

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from thinkwell.host.client import AgentAddress, HostClient, HttpRequest
from thinkwell.server.asgi import Call, local_path
from thinkwell.server.pages import Page
from thinkwell.server.routing import NotOurs, Route, RouteMatch, UnknownChild, UnknownClass

log = logging.getLogger("thinkwell.server")

MAX_BODY_BYTES = 32 * 1024 * 1024
PLAIN = "text/plain;charset=UTF-8"


async def serve_http(host: HostClient, match: RouteMatch, page: Page, call: Call) -> None:
    """Answer one HTTP request."""
    request = Request(call.scope, call.receive)
    try:
        response = await _answer(host, match, page, request)
    except Exception:
        log.exception("a request failed", extra={"path": request.url.path})
        response = text_response(500, "Internal Server Error")
    await response(call.scope, call.receive, call.send)


def text_response(status: int, text: str) -> Response:
    """A plain text answer, spelled as the reference spells it."""
    return Response(text, status, headers={"content-type": PLAIN})


async def _answer(host: HostClient, match: RouteMatch, page: Page, request: Request) -> Response:
    match match:
        case Route():
            return await _ask_agent(host, match, request)
        case UnknownClass():
            return text_response(400, "Invalid request")
        case UnknownChild():
            return text_response(404, "Not Found")
        case NotOurs():
            return _own_page(page, request)


def _own_page(page: Page, request: Request) -> Response:
    path = local_path(request.scope)
    if path == "/healthz":
        return JSONResponse({"status": "ok", **page.settings})
    if request.method in {"GET", "HEAD"} and (found := page.find(path, request.scope)):
        return Response(found.body, headers={"content-type": found.content_type, **_PAGE_HEADERS})
    return text_response(404, "Not found")


# Images only from here: a model that was tricked must not send what it knows to another server.
_PAGE_HEADERS = {
    "cache-control": "no-cache",
    "x-content-type-options": "nosniff",
    "content-security-policy": (
        "default-src 'self'; img-src 'self' data:; connect-src 'self' ws: wss:; "
        "base-uri 'none'; frame-ancestors 'self'"
    ),
}


async def _ask_agent(host: HostClient, route: Route, request: Request) -> Response:
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY_BYTES:
            return text_response(413, "Content Too Large")
    answer = await host.handle_request(
        AgentAddress(route.class_name, route.name),
        HttpRequest(
            method=request.method,
            path=route.tail,
            query=dict(request.query_params),
            headers=dict(request.headers),
            body=bytes(body),
        ),
    )
    return Response(answer.body, answer.status, headers={"content-type": answer.content_type})
