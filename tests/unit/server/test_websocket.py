"""One WebSocket at the edge (spec/01 §1.3, §2.1)."""

from __future__ import annotations

import json

import pytest

from tests.unit.server.fakes import AsgiClient, FakeHost, running
from thinkwell.core.errors import StoreLockedError
from thinkwell.host.client import AgentAddress
from thinkwell.server import outbox
from thinkwell.server.routing import Route
from thinkwell.server.websocket import origin_allowed, serve_websocket

ROUTE = Route("chat-agent", "alice", "")


@pytest.fixture
def host():
    return FakeHost()


async def test_accepts_and_sends_the_connect_sequence_in_order(host: FakeHost):
    client = AsgiClient("websocket", query="_pk=tab1&token=x")
    host.greeting = ["one", "two"]
    async with running(serve_websocket(host, ROUTE, client.call)):
        sent = [await client.next() for _ in range(3)]
    assert [message.get("text", message["type"]) for message in sent] == [
        "websocket.accept",
        "one",
        "two",
    ]
    assert host.opened == [(AgentAddress("chat-agent", "alice"), "tab1")]


async def test_makes_a_connection_id_when_the_client_sends_none(host: FakeHost):
    """1.3.1"""
    async with running(serve_websocket(host, ROUTE, (client := AsgiClient("websocket")).call)):
        client.push({"type": "websocket.receive", "text": "x"})
        await host.connection.received.get()
    assert host.opened[0][1]


async def test_text_and_bytes_reach_the_host_in_order(host: FakeHost):
    client = AsgiClient("websocket")
    async with running(serve_websocket(host, ROUTE, client.call)):
        client.push({"type": "websocket.receive", "text": "a"})
        client.push({"type": "websocket.receive", "bytes": b"b"})
        assert await host.connection.received.get() == "a"
        assert await host.connection.received.get() == b"b"


async def test_a_closed_socket_closes_the_connection(host: FakeHost):
    client = AsgiClient("websocket")
    client.push({"type": "websocket.disconnect", "code": 1000})
    await serve_websocket(host, ROUTE, client.call)
    assert host.connection.closed.is_set()


async def test_frames_after_the_end_go_nowhere(host: FakeHost):
    client = AsgiClient("websocket")
    client.push({"type": "websocket.disconnect", "code": 1000})
    await serve_websocket(host, ROUTE, client.call)
    assert host.sink is not None
    host.sink(["late"])
    assert (await client.next())["type"] == "websocket.accept"
    assert client.sent.empty()


@pytest.mark.parametrize(
    ("failure", "text"),
    [(StoreLockedError("locked"), "locked"), (RuntimeError("secret"), "Internal error")],
)
async def test_an_error_while_setting_up_is_told_and_closes_with_1011(
    host: FakeHost, failure: Exception, text: str
):
    """1.3.7"""
    host.failure = failure
    client = AsgiClient("websocket")
    await serve_websocket(host, ROUTE, client.call)
    await client.next()
    assert json.loads((await client.next())["text"]) == {"error": text}
    assert (await client.next())["code"] == 1011


async def test_the_experimental_transport_is_refused(host: FakeHost):
    """3.4.6"""
    client = AsgiClient("websocket", query="__agents_transport=capnweb")
    await serve_websocket(host, ROUTE, client.call)
    assert (await client.response())[0] == 400
    assert host.opened == []


async def test_a_client_that_does_not_read_is_cut_off(
    host: FakeHost, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(outbox, "MAX_FRAMES", 3)
    client = AsgiClient("websocket")
    async with running(serve_websocket(host, ROUTE, client.call)):
        await client.next()
        client.push({"type": "websocket.receive", "text": "x"})
        await host.connection.received.get()
        assert host.sink is not None
        for _ in range(3):
            host.sink(["frame", "frame"])
        assert (await client.next())["code"] == 1013
        assert not host.connection.closed.is_set()


class TestOrigin:
    @pytest.mark.parametrize(
        ("headers", "allowed"),
        [
            ({}, True),
            ({"origin": "http://here:8787", "host": "here:8787"}, True),
            ({"origin": "https://Here", "host": "here"}, True),
            ({"origin": "http://here:1", "host": "here:8787"}, False),
            ({"origin": "null", "host": "here"}, False),
            ({"origin": "https://evil.example", "host": "here"}, False),
            ({"origin": "https://friend.example", "host": "here"}, True),
        ],
    )
    def test_only_our_own_pages_and_listed_ones_may_connect(
        self, headers: dict[str, str], allowed: bool
    ):
        scope = AsgiClient("websocket", **headers).scope
        assert origin_allowed(scope, {"https://friend.example"}) is allowed
