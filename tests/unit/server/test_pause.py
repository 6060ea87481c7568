"""A pause lasts until the client has read what went before it."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import pytest

from tests.wire.serving import serving
from thinkwell.server import joined_socket
from thinkwell.server.outbox import PAUSE


class Speaker:
    """Says two words with a pause in between."""

    def __init__(self) -> None:
        self.paused = asyncio.Event()
        self.gone = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "websocket":
            return
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.send", "text": "before"})
        await send({"type": PAUSE})
        self.paused.set()
        if not self.gone.is_set():
            await send({"type": "websocket.send", "text": "after"})


async def test_a_pause_lasts_until_the_client_answers_its_ping():
    speaker = Speaker()
    async with (
        serving(speaker) as url,
        aiohttp.ClientSession() as session,
        session.ws_connect(url, autoping=False) as socket,
    ):
        assert (await socket.receive()).data == "before"
        ping = await socket.receive()
        assert ping.type is aiohttp.WSMsgType.PING
        assert not speaker.paused.is_set()
        await socket.pong(ping.data)
        assert (await socket.receive()).data == "after"


async def test_a_client_that_answers_no_ping_gets_the_rest_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(joined_socket, "LONGEST_PAUSE", 0.01)
    async with (
        serving(Speaker()) as url,
        aiohttp.ClientSession() as session,
        session.ws_connect(url, autoping=False) as socket,
    ):
        heard = [await socket.receive() for _ in range(3)]
    assert [heard[0].data, heard[2].data] == ["before", "after"]


async def test_a_client_that_leaves_ends_the_pause():
    speaker = Speaker()
    async with serving(speaker) as url, aiohttp.ClientSession() as session:
        async with session.ws_connect(url, autoping=False) as socket:
            await socket.receive()
            speaker.gone.set()
        async with asyncio.timeout(3):  # less than the longest pause
            await speaker.paused.wait()
