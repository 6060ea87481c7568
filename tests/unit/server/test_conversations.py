"""The list of conversations: only what whoever asks may read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response

from tests.unit.server.fakes import AsgiClient, FakeHost, make_edge
from thinkwell.host.client import ConversationEntry
from thinkwell.server.access import Access
from thinkwell.server.asgi import local_path
from thinkwell.server.http import serve_http
from thinkwell.server.own_pages import MOST_CONVERSATIONS, MOST_REFUSALS
from thinkwell.server.routing import AgentRoute, NotOurs

PATH = "/_thinkwell/conversations"


def talked_to(*names: str) -> FakeHost:
    host = FakeHost()
    host.talked_to = [
        ConversationEntry(name=name, title=name.upper(), updated_at=1.5) for name in names
    ]
    return host


async def listed(host: FakeHost, access: Access, query: str = "", mounted_at: str = "") -> Any:
    client = AsgiClient("http", mounted_at + PATH, query=query)
    client.scope["root_path"] = mounted_at
    await serve_http(make_edge(host, access=access), NotOurs(), client.call)
    status, body, _ = await client.response()
    return json.loads(body) if status == 200 else (status, json.loads(body))


async def names(host: FakeHost, access: Access, **options: str) -> Sequence[str]:
    return [one["name"] for one in await listed(host, access, **options)]


def own(_: Any, route: AgentRoute) -> str | None:
    """Everybody's own begin with `mine`."""
    return "me" if route.name.startswith("mine") else None


async def test_those_that_auth_admits_are_shown():
    shown = await listed(talked_to("mine", "yours"), Access(own))
    assert shown == [{"name": "mine", "title": "MINE", "updatedAt": 1.5}]


async def test_without_rules_all_are_shown():
    assert await names(talked_to("a", "b"), Access()) == ["a", "b"]


async def test_an_unknown_class():
    answer = await listed(FakeHost(), Access(), query="agent=nope")
    assert answer == (400, {"error": "There is no agent class 'nope'."})


async def test_ones_own_are_found_behind_many_of_others():
    others = [f"yours-{number}" for number in range(MOST_REFUSALS - 1)]
    assert await names(talked_to(*others, "mine"), Access(own)) == ["mine"]


async def test_only_the_latest_are_shown_and_nobody_looks_for_ever():
    asked: list[str] = []

    def auth(_: Any, route: AgentRoute) -> str | None:
        asked.append(route.name)
        return own(_, route)

    most = MOST_CONVERSATIONS
    host = talked_to(*(f"mine-{number}" for number in range(most + 50)))
    assert await names(host, Access(auth)) == [f"mine-{number}" for number in range(most)]
    asked.clear()
    host = talked_to(*(f"yours-{number}" for number in range(2 * MOST_REFUSALS)))
    assert await names(host, Access(auth)) == []
    assert len(asked) == MOST_REFUSALS


async def test_a_hook_that_refuses_a_conversation_hides_it():
    """1.3.2: an app whose only check is `on_before_request` shows no titles either"""

    async def look(request: Request, route: AgentRoute) -> Response | None:
        assert await request.body() == b""
        return None if request.headers.get("x-user") == route.name else Response("no", 403)

    assert await names(talked_to("ann", "bob"), Access(before_request=look)) == []
    assert await names(talked_to("ann"), Access(before_request=lambda *_: None)) == ["ann"]


@pytest.mark.parametrize("mounted_at", ["", "/my app"])
async def test_a_hook_sees_the_path_of_the_conversation_and_who_asks(mounted_at: str):
    seen: list[Any] = []

    def look(request: Request, route: AgentRoute) -> None:
        seen.append((request.scope["path"], local_path(request.scope)))
        seen.append((request.query_params["token"], route.tail, request.state.principal.id))

    access = Access(lambda _, route: f"for {route.name}", before_request=look)
    query = "agent=chat-agent&token=1"
    await listed(talked_to("a%20b"), access, query=query, mounted_at=mounted_at)
    local = "/agents/chat-agent/a%20b/get-messages"
    assert seen == [
        (f"{mounted_at}/agents/chat-agent/a b/get-messages", local),
        ("1", "get-messages", "for a%20b"),
    ]
