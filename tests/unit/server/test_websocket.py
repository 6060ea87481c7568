"""One WebSocket at the edge (spec/01 §1.3, §2.1)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from starlette.exceptions import HTTPException, WebSocketException
from starlette.requests import HTTPConnection
from starlette.responses import Response

from tests.unit.server.fakes import AsgiClient, FakeHost, make_edge, running
from thinkwell.core.errors import (
    NOT_STORED,
    ConfigurationError,
    StoreError,
    StoreUnavailableError,
)
from thinkwell.core.principal import Principal
from thinkwell.host.client import AgentAddress
from thinkwell.server import outbox
from thinkwell.server.access import Access
from thinkwell.server.routing import AgentRoute
from thinkwell.server.websocket import serve_websocket

ROUTE = AgentRoute("chat-agent", "alice", "")


@pytest.fixture
def host():
    return FakeHost()


async def test_accepts_and_sends_the_connect_sequence_in_order(host: FakeHost):
    client = AsgiClient("websocket", query="_pk=tab1&token=x")
    host.greeting = ["one", "two"]
    async with running(serve_websocket(make_edge(host), ROUTE, client.call)):
        sent = [await client.next() for _ in range(3)]
    assert [message.get("text", message["type"]) for message in sent] == [
        "websocket.accept",
        "one",
        "two",
    ]
    assert host.opened == [(AgentAddress("chat-agent", "alice"), "tab1")]


async def test_makes_a_connection_id_when_the_client_sends_none(host: FakeHost):
    """1.3.1"""
    async with running(
        serve_websocket(make_edge(host), ROUTE, (client := AsgiClient("websocket")).call)
    ):
        client.push({"type": "websocket.receive", "text": "x"})
        await host.connection.received.get()
    assert host.opened[0][1]


async def test_text_and_bytes_reach_the_host_in_order(host: FakeHost):
    client = AsgiClient("websocket")
    async with running(serve_websocket(make_edge(host), ROUTE, client.call)):
        client.push({"type": "websocket.receive", "text": "a"})
        client.push({"type": "websocket.receive", "bytes": b"b"})
        assert await host.connection.received.get() == "a"
        assert await host.connection.received.get() == b"b"


async def test_a_closed_socket_closes_the_connection(host: FakeHost):
    client = AsgiClient("websocket")
    client.push({"type": "websocket.disconnect", "code": 1000})
    await serve_websocket(make_edge(host), ROUTE, client.call)
    assert host.connection.closed.is_set()


async def test_frames_after_the_end_go_nowhere(host: FakeHost):
    client = AsgiClient("websocket")
    client.push({"type": "websocket.disconnect", "code": 1000})
    await serve_websocket(make_edge(host), ROUTE, client.call)
    assert host.sink is not None
    host.sink.send(["late"])
    assert (await client.next())["type"] == "websocket.accept"
    assert client.sent.empty()


@pytest.mark.parametrize(
    ("failure", "text"),
    [
        (ConfigurationError("wrong"), "wrong"),
        (RuntimeError("secret"), "Internal error"),
        (StoreError("COMMIT failed: secret"), "Internal error"),
        (StoreUnavailableError("secret"), NOT_STORED),
    ],
)
async def test_an_error_while_setting_up_is_told_and_closes_with_1011(
    host: FakeHost, failure: Exception, text: str
):
    """1.3.7"""
    host.failure = failure
    client = AsgiClient("websocket")
    await serve_websocket(make_edge(host), ROUTE, client.call)
    await client.next()
    assert json.loads((await client.next())["text"]) == {"error": text}
    assert (await client.next())["code"] == 1011


async def test_the_experimental_transport_is_refused(host: FakeHost):
    """3.4.6"""
    client = AsgiClient("websocket", query="__agents_transport=capnweb")
    await serve_websocket(make_edge(host), ROUTE, client.call)
    assert (await client.response())[0] == 400
    assert host.opened == []


async def test_a_client_that_does_not_read_is_cut_off(
    host: FakeHost, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(outbox, "MAX_FRAMES", 3)
    client = AsgiClient("websocket")
    async with running(serve_websocket(make_edge(host), ROUTE, client.call)):
        await client.next()
        client.push({"type": "websocket.receive", "text": "x"})
        await host.connection.received.get()
        assert host.sink is not None
        for _ in range(3):
            host.sink.send(["frame", "frame"])
        assert (await client.next())["code"] == 1013
        await host.connection.closed.wait()


async def test_a_frame_above_the_limit_closes_with_1009(host: FakeHost):
    client = AsgiClient("websocket")
    client.push({"type": "websocket.receive", "text": "ä" * 6})
    await serve_websocket(make_edge(host, max_frame_bytes=10), ROUTE, client.call)
    await client.next()
    closed = await client.next()
    assert (closed["code"], closed["reason"]) == (1009, "A frame may have at most 10 bytes")
    assert host.connection.received.empty()
    assert host.connection.ended_with[0] == 1009


async def test_a_frame_at_the_limit_is_taken(host: FakeHost):
    client = AsgiClient("websocket")
    client.push({"type": "websocket.receive", "text": "ä" * 5})
    async with running(serve_websocket(make_edge(host, max_frame_bytes=10), ROUTE, client.call)):
        assert await host.connection.received.get() == "ä" * 5


async def test_the_host_hears_how_the_socket_closed(host: FakeHost):
    client = AsgiClient("websocket")
    client.push({"type": "websocket.disconnect", "code": 4001, "reason": "bye"})
    await serve_websocket(make_edge(host), ROUTE, client.call)
    assert host.connection.ended_with == (4001, "bye")


async def closed_with(host: FakeHost, **functions: Any) -> tuple[int, str]:
    """How a socket that was accepted is closed."""
    client = AsgiClient("websocket")
    edge = make_edge(host, access=Access(functions.pop("auth", None), **functions))
    await serve_websocket(edge, ROUTE, client.call)
    sent = [client.sent.get_nowait() for _ in range(client.sent.qsize())]
    assert sent[0]["type"] == "websocket.accept"
    return sent[-1]["code"], sent[-1].get("reason", "")


class TestAccess:
    """1.3.2, 1.3.3: a refused upgrade would be tried again for ever."""

    async def test_whoever_auth_refuses_gets_a_socket_that_is_closed(self, host: FakeHost):
        assert await closed_with(host, auth=lambda *_: None) == (4401, "Unauthorized")
        assert host.opened == []

    async def test_an_http_exception_closes_with_4000_plus_its_status(self, host: FakeHost):
        def auth(request: HTTPConnection, route: AgentRoute) -> str:
            raise HTTPException(403, "Not yours")

        assert await closed_with(host, auth=auth) == (4403, "Not yours")

    async def test_a_websocket_exception_closes_as_it_says(self, host: FakeHost):
        def look(request: HTTPConnection, route: AgentRoute) -> None:
            raise WebSocketException(1008, "too many")

        assert await closed_with(host, before_connect=look) == (1008, "too many")

    async def test_an_auth_that_breaks_lets_nobody_in_and_says_nothing(self, host: FakeHost):
        def auth(request: HTTPConnection, route: AgentRoute) -> str:
            raise RuntimeError("secret")

        assert (await closed_with(host, auth=auth))[0] == 1011
        assert host.opened == []

    async def test_a_response_of_the_hook_answers_the_upgrade(self, host: FakeHost):
        client = AsgiClient("websocket")
        access = Access(before_connect=lambda *_: Response("later", 429))
        await serve_websocket(make_edge(host, access=access), ROUTE, client.call)
        assert (await client.response())[:2] == (429, b"later")

    async def test_a_request_of_the_hook_takes_the_place_of_the_real_one(self, host: FakeHost):
        def look(request: HTTPConnection, route: AgentRoute) -> HTTPConnection:
            assert request.state.principal.id == "ann"
            return HTTPConnection({**request.scope, "query_string": b"_pk=other&room=7"})

        client = AsgiClient("websocket", query="_pk=tab")
        client.push({"type": "websocket.disconnect", "code": 1000})
        access = Access(lambda *_: "ann", before_connect=look)
        await serve_websocket(make_edge(host, access=access), ROUTE, client.call)
        assert host.opened[0][1] == "other"
        assert host.requests[0].query["room"] == "7"
        assert host.requests[0].principal == Principal(id="ann")
