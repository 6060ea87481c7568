"""Other requests for an agent, and agents without chat (spec/01 §1.3.5-6)."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest

from tests.http.support import talking
from tests.wire.serving import serving
from thinkwell import Agent, App
from thinkwell.wire.http import HttpRequest, HttpResponse


class Counter(Agent):
    """No chat: every path is the app's own."""

    def on_request(self, request: HttpRequest) -> Any:
        return [request.method, request.path]


async def test_the_app_sees_method_path_query_and_body():
    async with talking() as client:
        answer = await client.session.put(f"{client.url}/echo?x=1&y=%20", data=b"hello")
        assert await answer.json() == {
            "method": "PUT",
            "query": {"x": "1", "y": " "},
            "body": "hello",
            "who": None,
        }


class Countdown:
    """A stream that is no generator: it can be read, but not closed."""

    def __init__(self) -> None:
        self.left = 3

    def __aiter__(self) -> Countdown:
        return self

    async def __anext__(self) -> bytes:
        if self.left == 0:
            raise StopAsyncIteration
        self.left -= 1
        return str(self.left).encode()


async def test_the_app_may_stream_from_whatever_can_be_iterated():
    class Streaming(Agent, name="streaming"):
        def on_request(self, request: HttpRequest) -> Any:
            return HttpResponse(stream=Countdown())

    app = App(agents=[Streaming], store="sqlite://:memory:")
    async with serving(app) as url, aiohttp.ClientSession() as session:
        answer = await session.get(f"{url}/agents/streaming/x")
        assert (answer.status, await answer.read()) == (200, b"210")


@pytest.mark.parametrize(
    ("path", "status", "kind", "body"),
    [
        ("text", 200, "text/plain", b"plain"),
        ("bytes", 200, "application/octet-stream", b"\0raw"),
        ("own", 418, "text/plain", b"teapot"),
        ("nothing", 404, "text/plain", b"Not implemented"),
        ("", 404, "text/plain", b"Not implemented"),
        ("run/a/b", 404, "text/plain", b"Not implemented"),
        ("chat/a", 404, "text/plain", b"Not implemented"),
        ("breaks", 500, "text/plain", b"Internal Server Error"),
    ],
)
async def test_what_the_app_returns_is_the_answer(path: str, status: int, kind: str, body: bytes):
    async with talking() as client:
        answer = await client.get(path)
        assert (answer.status, answer.content_type) == (status, kind)
        assert await answer.read() == body


async def test_get_messages_wins_over_the_app_wherever_it_stands():
    """1.3.5"""
    async with talking() as client:
        for path in ("get-messages", "some/where/get-messages", "get-messages?token=t"):
            for method in ("GET", "POST"):
                answer = await client.session.request(method, f"{client.url}/{path}")
                assert (answer.content_type, await answer.json()) == ("application/json", [])


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("DELETE", "get-messages", "GET, HEAD, POST"),
        ("DELETE", "run", "POST"),
        ("POST", "run/x", "GET, HEAD"),
        ("GET", "chat/stop", "POST"),
        ("PATCH", "chat", "POST"),
        ("OPTIONS", "chat", "POST"),
    ],
)
async def test_the_agents_own_routes_know_their_methods(method: str, path: str, allowed: str):
    async with talking() as client:
        answer = await client.session.request(method, f"{client.url}/{path}")
        assert (answer.status, answer.headers["allow"]) == (405, allowed)


async def test_asking_only_for_the_headers():
    async with talking() as client:
        answer = await client.session.head(f"{client.url}/get-messages")
        assert (answer.status, await answer.read()) == (200, b"")


async def test_an_agent_without_chat_serves_every_path_itself():
    app = App(agents=[Counter], store="sqlite://:memory:")
    async with serving(app) as url, aiohttp.ClientSession() as session:
        for path in ("get-messages", "run", "chat"):
            answer = await session.get(f"{url}/agents/counter/x/{path}")
            assert await answer.json() == ["GET", path]
