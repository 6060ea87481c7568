"""Several texts in one write are the frames that one write each would have been."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest
import uvicorn
from hypothesis import given
from hypothesis import strategies as st
from websockets.frames import Frame, Opcode
from websockets.streams import StreamReader

from tests.abuse.raw_socket import RawSocket
from thinkwell.server import joined_socket
from thinkwell.server.joined_socket import JoinedWebSocket, join_frames

SIZES = (0, 1, 125, 126, 127, 65_535, 65_536, 70_000)


def read(data: bytes) -> list[Frame]:
    """The frames as another library reads them."""
    stream = StreamReader()
    stream.feed_data(data)
    stream.feed_eof()
    frames: list[Frame] = []
    while True:
        try:
            next(Frame.parse(stream.read_exact, mask=False))
        except StopIteration as parsed:
            frames.append(parsed.value)
        except EOFError:
            return frames


@given(st.lists(st.text() | st.sampled_from(SIZES).map(lambda size: "é" * (size // 2)), max_size=8))
def test_another_library_reads_the_same_texts(texts: list[str]):
    frames = read(join_frames(texts))
    assert [bytes(frame.data).decode() for frame in frames] == texts
    assert all(frame.fin and frame.opcode is Opcode.TEXT for frame in frames)


def test_every_length_of_a_header_is_right():
    texts = ["x" * size for size in SIZES]
    assert [bytes(frame.data).decode() for frame in read(join_frames(texts))] == texts


class TestASocketThatIsOver:
    """A transport whose buffer never empties is never closed by itself."""

    @pytest.fixture
    def short(self, monkeypatch):
        monkeypatch.setattr(joined_socket, "LINGER", 0.05)

    @pytest.mark.parametrize("pings", [None, 0.05])
    async def test_a_client_that_reads_nothing_does_not_keep_it(self, short, pings):
        """Without pings the app ends; with them it waits and the unanswered ping ends it."""
        over = asyncio.Event()

        async def app(scope, receive, send):
            await receive()
            await send({"type": "websocket.accept"})
            for _ in range(64):
                sending = asyncio.ensure_future(send({"type": "websocket.send", "text": BIG}))
                await asyncio.wait([sending], timeout=0.2)
                if not sending.done():
                    break
            if pings is not None:
                await receive()
                over.set()

        async with serving(app, pings) as server:
            deaf = await asyncio.to_thread(RawSocket, port_of(server), "/", buffer=4_096)
            while not server.server_state.connections:
                await asyncio.sleep(0.01)
            while server.server_state.connections:
                await asyncio.sleep(0.01)
            if pings is not None:
                await over.wait()
            deaf.abort()


BIG = "x" * 1_000_000


@asynccontextmanager
async def serving(app, pings):
    config = uvicorn.Config(
        app,
        port=0,
        lifespan="off",
        log_level="critical",
        ws=JoinedWebSocket,
        ws_ping_interval=pings,
        ws_ping_timeout=pings,
        ws_per_message_deflate=False,
    )
    server = uvicorn.Server(config)
    running = asyncio.ensure_future(server._serve())  # pyright: ignore[reportPrivateUsage]
    while not server.started:
        await asyncio.sleep(0.01)
    try:
        yield server
    finally:
        server.should_exit = True
        await running


def port_of(server):
    return server.servers[0].sockets[0].getsockname()[1]
