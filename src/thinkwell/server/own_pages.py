"""What the app answers itself: health, the chat page, and what that page asks for.

GET /healthz                    whether the server lives, and which version it is
GET /readyz                     whether it accepts work: 503 with the reason if not
GET /metrics                    figures for Prometheus, for whom `App(metrics=...)` lets see them
GET /_thinkwell/settings        which agents there are, and where
GET /_thinkwell/conversations   the agents of a class that were talked to, as far as whoever asks
                                may read them: `auth` and `on_before_request` are asked for each
GET /_thinkwell/openapi.json    these routes and those of agents, described
GET /                           the page and its files
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from itertools import count
from typing import Any
from urllib.parse import quote, unquote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from thinkwell import __version__
from thinkwell.core.limits import payer_of
from thinkwell.host.client import ConversationEntry
from thinkwell.server.asgi import Message, mount_path
from thinkwell.server.edge import Edge, address_of
from thinkwell.server.openapi import describe
from thinkwell.server.quota import refuse_message
from thinkwell.server.responses import text_response
from thinkwell.server.routing import AgentRoute

MOST_CONVERSATIONS = 200
MOST_REFUSALS = 500
"""After so many, whoever asks is taken for somebody who may read none of the rest."""
_NO_STORE = {"cache-control": "no-store"}


async def serve_own(edge: Edge, path: str, request: Request) -> Response | None:
    """The answer, or None if the path is not one of ours."""
    handler = _ROUTES.get(path)
    file = None if handler is not None else edge.page.find(path, request.scope)
    if handler is None and file is None:
        return None
    if request.method not in ("GET", "HEAD"):
        return text_response(405, "Method Not Allowed", {"allow": "GET, HEAD"})
    if handler is not None:
        return await handler(edge, request)
    if file is None or request.headers.get("if-none-match") == file.headers["etag"]:
        return Response(status_code=304, headers=None if file is None else dict(file.headers))
    return Response(file.body, headers=dict(file.headers))


async def _health(edge: Edge, request: Request) -> Response:
    del edge, request
    return _json({"status": "ok", "version": __version__})


async def _ready(edge: Edge, request: Request) -> Response:
    del request
    reason = edge.host.not_ready()
    return _json({"status": "ready"}) if reason is None else not_ready(reason)


def not_ready(reason: str) -> Response:
    """The answer of a server that lives and accepts no work."""
    return _json({"status": "unavailable", "reason": reason}, 503)


async def _metrics(edge: Edge, request: Request) -> Response:
    from thinkwell.server.metrics import serve_metrics

    return await serve_metrics(edge, request)


async def _settings(edge: Edge, request: Request) -> Response:
    return _json({**edge.page.settings, "root": mount_path(request.scope)})


async def _openapi(edge: Edge, request: Request) -> Response:
    settings = edge.page.settings
    return _json(describe(settings["agents"], settings["prefix"], mount_path(request.scope)))


async def _conversations(edge: Edge, request: Request) -> Response:
    names: list[str] = edge.page.settings["agents"]
    class_name = request.query_params.get("agent", names[0] if names else "")
    if class_name not in names:
        return _json({"error": f"There is no agent class {class_name!r}."}, 400)
    refusal = refuse_message(edge, payer_of(None, address_of(request)))
    if refusal is not None:
        return text_response(refusal.status, refusal.text, refusal.headers)
    return _json(
        [
            {"name": one.name, "title": one.title, "updatedAt": one.updated_at}
            for one in await _readable(edge, request, class_name)
        ]
    )


async def _readable(edge: Edge, request: Request, class_name: str) -> list[ConversationEntry]:
    """The latest conversations that whoever asks may read."""
    admitted: list[ConversationEntry] = []
    refused = 0
    for offset in count(0, MOST_CONVERSATIONS):
        found = await edge.host.conversations(class_name, MOST_CONVERSATIONS, offset)
        for one in found:
            route = AgentRoute(class_name, one.name, "get-messages")
            if await edge.access.sees(_reading(edge, request, route), route):
                admitted.append(one)
            elif (refused := refused + 1) >= MOST_REFUSALS:
                return admitted[:MOST_CONVERSATIONS]
        if len(admitted) >= MOST_CONVERSATIONS or len(found) < MOST_CONVERSATIONS:
            break
    return admitted[:MOST_CONVERSATIONS]


def _reading(edge: Edge, request: Request, route: AgentRoute) -> Request:
    """The same visitor asking for one conversation: hooks may look at the path."""
    scope, prefix = request.scope, edge.page.settings["prefix"]
    local = "/".join(part for part in (prefix, route.class_name, route.name, route.tail) if part)
    path = f"{mount_path(scope)}/{unquote(local)}"
    state = dict(scope.get("state", {}))
    raw = f"{quote(mount_path(scope))}/{local}".encode()
    asking = {**scope, "method": "GET", "path": path, "raw_path": raw, "state": state}
    return Request(asking, _no_body)


async def _no_body() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


def _json(value: Any, status: int = 200) -> Response:
    return JSONResponse(value, status, headers=_NO_STORE)


_ROUTES: Mapping[str, Callable[[Edge, Request], Awaitable[Response]]] = {
    "/healthz": _health,
    "/readyz": _ready,
    "/metrics": _metrics,
    "/_thinkwell/settings": _settings,
    "/_thinkwell/conversations": _conversations,
    "/_thinkwell/openapi.json": _openapi,
}
