"""HTTP at the edge (spec/01 §1.3.5-6)."""

from __future__ import annotations

import json

import pytest

from tests.unit.server.fakes import AsgiClient, FakeHost
from thinkwell.server import http
from thinkwell.server.asgi import local_path
from thinkwell.server.http import serve_http
from thinkwell.server.pages import Page
from thinkwell.server.routing import match_route

PAGE = Page(agents=["chat-agent"], prefix="agents")


async def get(host: FakeHost, client: AsgiClient):
    route = match_route(local_path(client.scope), prefix="agents", knows=host.knows)
    await serve_http(host, route, PAGE, client.call)
    status, body, headers = await client.response()
    return status, body.decode(), headers[b"content-type"].decode()


async def test_the_agent_gets_what_follows_its_address_with_query_and_headers():
    host, client = (
        FakeHost(),
        AsgiClient("http", "/agents/chat-agent/a/get-messages", query="x=1", cookie="c"),
    )
    assert await get(host, client) == (200, "[]", "application/json")
    request = host.requests[0]
    assert (request.path, request.query) == ("get-messages", {"x": "1"})
    assert request.headers["cookie"] == "c"


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("/agents/nope/x/get-messages", 400, "Invalid request"),
        ("/other", 404, "Not found"),
        ("/agents/chat-agent/x/sub/child/y", 404, "Not Found"),
    ],
)
async def test_paths_that_lead_nowhere(path: str, status: int, text: str):
    answer = await get(FakeHost(), AsgiClient("http", path))
    assert answer == (status, text, "text/plain;charset=UTF-8")


async def test_an_error_inside_shows_nothing():
    host = FakeHost()
    host.failure = RuntimeError("secret")
    answer = await get(host, AsgiClient("http", "/agents/chat-agent/x"))
    assert answer == (500, "Internal Server Error", "text/plain;charset=UTF-8")


async def test_a_huge_body_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(http, "MAX_BODY_BYTES", 3)
    host, client = FakeHost(), AsgiClient("http", "/agents/chat-agent/x")
    await client.call.receive()
    client.push({"type": "http.request", "body": b"1234", "more_body": False})
    assert (await get(host, client))[0] == 413


async def test_health_names_the_agents():
    status, body, _ = await get(FakeHost(), AsgiClient("http", "/healthz"))
    assert status == 200
    assert json.loads(body) == {"status": "ok", "agents": ["chat-agent"], "prefix": "agents"}


class TestPage:
    async def test_the_root_is_a_page(self):
        status, body, kind = await get(FakeHost(), AsgiClient("http", "/"))
        assert (status, kind) == (200, "text/html; charset=utf-8")
        assert "Thinkwell" in body

    async def test_it_is_not_a_file_server(self):
        status, *_ = await get(FakeHost(), AsgiClient("http", "/../app.py"))
        assert status == 404

    async def test_below_a_mount_point_the_address_is_found_without_decoding(self):
        client = AsgiClient("http", "/my app/agents/chat-agent/a b")
        client.scope.update(root_path="/my app", raw_path=b"/my%20app/agents/chat-agent/a%20b")
        assert local_path(client.scope) == "/agents/chat-agent/a%20b"
