"""HTTP requests for one agent: which of its own routes is asked for, else the app's (spec/01
§1.3.5-6).

A chat agent has `get-messages`, `run` and `chat`; everything else, and every path of an agent
without chat, goes to `on_request`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import Any, TypeAlias
from urllib.parse import unquote

from thinkwell.agent.agent import Agent
from thinkwell.agent.http_body import Refusal
from thinkwell.agent.http_chat import join_chat, post_chat, stop_chat
from thinkwell.agent.http_run import get_run, json_response, post_run
from thinkwell.agent.turns import Turns
from thinkwell.core import json
from thinkwell.wire.http import HttpRequest, HttpResponse

_Handler: TypeAlias = Callable[[Turns, HttpRequest], Awaitable[HttpResponse]]
_READ = ("GET", "HEAD")
_WRITE = ("POST",)
_EITHER = (*_READ, *_WRITE)


async def handle_agent_request(
    agent: Agent, turns: Turns | None, request: HttpRequest
) -> HttpResponse:
    """Answer one request."""
    own = None if turns is None else _own_route(request.path)
    if turns is None or own is None:
        return await _ask_app(agent, request)
    methods, handler = own
    if request.method not in methods:
        allowed = {"allow": ", ".join(methods)}
        return HttpResponse(status=405, body=b"Method Not Allowed", headers=allowed)
    try:
        return await handler(turns, request)
    except Refusal as refusal:
        if request.path.partition("/")[0] == "run":
            return json_response({"error": refusal.text}, refusal.status)
        return HttpResponse(status=refusal.status, body=refusal.text.encode())


def _own_route(path: str) -> tuple[tuple[str, ...], _Handler] | None:
    """What a path of a chat agent is for. `get-messages` counts wherever it stands last."""
    match path.split("/"):
        case [*_, "get-messages"]:
            return _EITHER, _get_messages
        case ["run"]:
            return _WRITE, post_run
        case ["run", request_id]:
            return _READ, lambda turns, _: get_run(turns, unquote(request_id))
        case ["chat"]:
            return _WRITE, post_chat
        case ["chat", "stop"]:
            return _WRITE, lambda turns, _: stop_chat(turns)
        case ["chat", _, *_, "stream"]:
            return _READ, _join
        case _:
            return None


async def _get_messages(turns: Turns, _: HttpRequest) -> HttpResponse:
    messages = await turns.transcript()
    return HttpResponse(body=f"[{','.join(messages)}]".encode(), content_type="application/json")


async def _join(turns: Turns, request: HttpRequest) -> HttpResponse:
    joined = join_chat(turns)
    if request.method == "HEAD":  # nobody will read it
        return HttpResponse(status=joined.status, content_type=joined.content_type)
    return joined


async def _ask_app(agent: Agent, request: HttpRequest) -> HttpResponse:
    value: Any = agent.on_request(request)
    value = await value if isawaitable(value) else value
    match value:
        case HttpResponse():
            return value
        case None:
            return HttpResponse(status=404, body=b"Not implemented")
        case str():
            return HttpResponse(body=value.encode())
        case bytes():
            return HttpResponse(body=value, content_type="application/octet-stream")
        case _:
            return json_response(json.to_jsonable(value))
