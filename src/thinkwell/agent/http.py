"""HTTP requests for one agent: which of its own routes is asked for, else the app's (spec/01
§1.3.5-6).

A chat agent has `get-messages`, which its clients ask for when they start; then come the routes of
its features, then `get-messages` at the end of any other path. All else goes to `on_request`.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from typing import Any

import msgspec

from thinkwell.agent.agent import Agent
from thinkwell.core import json
from thinkwell.core.authority import Subject
from thinkwell.core.errors import StoreUnavailableError
from thinkwell.core.serving import serving
from thinkwell.core.user_code import call_hook, call_user
from thinkwell.hooks.routes import LOOKING, TRANSCRIPT, FoundRoute, RouteRequest, find_route
from thinkwell.turn.ask.authority import NotAllowed, demand
from thinkwell.turn.turns import Turns
from thinkwell.wire.http import RETRY_LATER, HttpRequest, HttpResponse
from thinkwell.wire.http_body import Refusal, json_response

log = logging.getLogger("thinkwell.agent")

_TRANSCRIPT = ("GET", "HEAD", "POST")
"""How clients may ask for the messages."""


async def handle_agent_request(
    agent: Agent, turns: Turns | None, request: HttpRequest
) -> HttpResponse:
    """Answer one request."""
    if turns is not None and request.path == TRANSCRIPT:
        return await _transcript(agent, turns, request)
    routes = (each.route for each in agent._seats.routes)  # pyright: ignore[reportPrivateUsage]
    found = find_route(routes, request.method, request.path)
    if found is not None and request.method in found.route.allowed:
        answer = _ask_feature(agent, found, request)
        return await _response_or_refusal(agent, answer, as_json=found.route.errors == "json")
    # Clients ask below whatever path they connect with (§1.3.5); only a route that serves it wins.
    if turns is not None and request.path.rpartition("/")[2] == TRANSCRIPT:
        return await _transcript(agent, turns, request)
    if found is not None:
        return _wrong_method(found.route.allowed)
    return await _ask_app(agent, request)


async def _transcript(agent: Agent, turns: Turns, request: HttpRequest) -> HttpResponse:
    if request.method not in _TRANSCRIPT:
        return _wrong_method(_TRANSCRIPT)
    return await _response_or_refusal(agent, _get_messages(turns), as_json=False)


def _wrong_method(allowed: tuple[str, ...]) -> HttpResponse:
    headers = {"allow": ", ".join(allowed)}
    return HttpResponse(status=405, body=b"Method Not Allowed", headers=headers)


async def _ask_feature(agent: Agent, found: FoundRoute, request: HttpRequest) -> HttpResponse:
    """Let a route answer; one that may change something only for whom `authorize` lets."""
    route = found.route
    changes = not route.only_looks and request.method not in LOOKING
    asked = RouteRequest(
        request=request,
        params=found.params,
        readonly=changes and await _may_only_look(agent, request),
    )
    if changes and route.asks:
        subject = Subject(read_only=asked.readonly, method=f"{request.method} {route.path}")
        await demand(agent, "call", asked.principal, subject)
    with serving(f"{agent.agent_class}/{agent.name}", asked):
        return _response(await call_user(f"route {route.path!r}", route.handler, asked))


async def _response_or_refusal(
    agent: Agent, answer: Awaitable[HttpResponse], *, as_json: bool
) -> HttpResponse:
    """What a route says, or why it does not."""
    try:
        return await answer
    except NotAllowed as refused:
        refusal = Refusal(refused.status, str(refused), refused.headers)
    except StoreUnavailableError as error:
        log.warning("a request was refused: %s", error.reason, extra={"action": "refuse"})
        text = error.client_text(exposed=getattr(agent, "expose_errors", False))
        refusal = Refusal(503, text, RETRY_LATER)
    except Refusal as said:
        refusal = said
    if as_json:
        response = json_response({"error": refusal.text, **refusal.facts}, refusal.status)
    else:
        response = HttpResponse(status=refusal.status, body=refusal.text.encode())
    return msgspec.structs.replace(response, headers={**response.headers, **refusal.headers})


async def _may_only_look(agent: Agent, request: HttpRequest) -> bool:
    ask = agent.should_request_be_readonly
    return bool(await call_hook("should_request_be_readonly", ask, request))


async def _get_messages(turns: Turns) -> HttpResponse:
    shown = await turns.transcript()
    body = b"".join([b"[", *shown.blocks, b",".join(shown.messages), b"]"])
    return HttpResponse(body=body, content_type="application/json")


async def _ask_app(agent: Agent, request: HttpRequest) -> HttpResponse:
    return _response(await call_hook("on_request", agent.on_request, request))


def _response(value: Any) -> HttpResponse:
    """What an app's own code answers, as a response."""
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
