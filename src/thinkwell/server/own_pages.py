"""What the app answers itself: health, the chat page, and what that page asks for.

GET /healthz                    whether the server lives, and which version it is
GET /_thinkwell/settings        which agents there are, and where
GET /_thinkwell/conversations   the agents of a class that were talked to, as far as `auth`
                                admits whoever asks
GET /_thinkwell/openapi.json    these routes and those of agents, described
GET /                           the page and its files
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from thinkwell import __version__
from thinkwell.server.asgi import PLAIN, mount_path
from thinkwell.server.edge import Edge
from thinkwell.server.openapi import describe
from thinkwell.server.routing import Route

MOST_CONVERSATIONS = 200
_NO_STORE = {"cache-control": "no-store"}


async def answer_own(edge: Edge, path: str, request: Request) -> Response | None:
    """The answer, or None if the path is not one of ours."""
    handler = _ROUTES.get(path)
    file = None if handler is not None else edge.page.find(path, request.scope)
    if handler is None and file is None:
        return None
    if request.method not in ("GET", "HEAD"):
        headers = {"content-type": PLAIN, "allow": "GET, HEAD"}
        return Response("Method Not Allowed", 405, headers=headers)
    if handler is not None:
        return await handler(edge, request)
    if file is None or request.headers.get("if-none-match") == file.headers["etag"]:
        return Response(status_code=304, headers=None if file is None else dict(file.headers))
    return Response(file.body, headers=dict(file.headers))


async def _health(edge: Edge, request: Request) -> Response:
    del edge, request
    return _json({"status": "ok", "version": __version__})


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
    found = await edge.host.conversations(class_name, MOST_CONVERSATIONS)
    return _json(
        [
            {"name": one.name, "title": one.title, "updatedAt": one.updated_at}
            for one in found
            if await edge.access.sees(request, Route(class_name, one.name, ""))
        ]
    )


def _json(value: Any, status: int = 200) -> Response:
    return JSONResponse(value, status, headers=_NO_STORE)


_ROUTES: Mapping[str, Callable[[Edge, Request], Awaitable[Response]]] = {
    "/healthz": _health,
    "/_thinkwell/settings": _settings,
    "/_thinkwell/conversations": _conversations,
    "/_thinkwell/openapi.json": _openapi,
}
