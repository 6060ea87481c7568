"""Plain calls to a provider: our own HTTP/1.1, byte by byte, and what is left to aiohttp."""

from __future__ import annotations

import asyncio
import gzip
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import pytest

from tests.unit.models.helpers import collect, failure_of, finish_of, request, text_of
from thinkwell.core.signal import AbortController
from thinkwell.models import provider_pool, provider_socket
from thinkwell.models.openai_chat import OpenAIChatModel
from thinkwell.testing.mock_provider import Reply
from thinkwell.testing.protocols.chat_completions import encode_reply

CERTIFICATE = Path(__file__).parents[2] / "fixtures" / "tls" / "localhost.pem"
BODY = b"".join(encode_reply(Reply(deltas=["fi", "ne"]), "m"))
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
SIZED = HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY


def chunked(body: bytes, size: int = 7) -> bytes:
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x;note=1\r\n%b\r\n" % (len(piece), piece) for piece in pieces)


CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunked(BODY)
WHOLE = CHUNKED + b"0\r\n\r\n"

Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]


class Server:
    """Answers each request with the next of its scripts; keeps what it was sent."""

    def __init__(self, *script: bytes | Answer) -> None:
        self._script = list(script)
        self._serving: set[asyncio.Task[None]] = set()
        self.requests: list[bytes] = []
        self.connections = 0
        self.left = asyncio.Event()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._serving.add(cast("asyncio.Task[None]", asyncio.current_task()))
        try:
            while await self._answer(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self.left.set()
            writer.transport.abort() if writer.is_closing() else writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request; whether there may be another."""
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        self.requests.append(head + await reader.readexactly(length))
        answer = self._script.pop(0)
        if not isinstance(answer, bytes):
            await answer(writer)
            return True
        writer.write(answer)
        await writer.drain()
        framed = b"Content-Length" in answer or b"chunked" in answer
        return framed and b"Connection: close" not in answer

    async def stop(self) -> None:
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)


@asynccontextmanager
async def listening(server: Server, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Its port."""
    found = await asyncio.start_server(server, "127.0.0.1", 0, ssl=tls)
    try:
        yield found.sockets[0].getsockname()[1]
    finally:
        found.close()
        await server.stop()


@asynccontextmanager
async def serving(
    *script: bytes | Answer, tls: ssl.SSLContext | None = None, **options: Any
) -> AsyncIterator[tuple[OpenAIChatModel, Server]]:
    server = Server(*script)
    async with listening(server, tls) as port:
        scheme = "http" if tls is None else "https"
        model = OpenAIChatModel("m", base_url=f"{scheme}://127.0.0.1:{port}/v1", **options)
        try:
            yield model, server
        finally:
            await model.aclose()


async def until_all_are_closed(model: OpenAIChatModel) -> None:
    (pool,) = model._client._pools.values()  # pyright: ignore[reportPrivateUsage]
    while pool._open:  # pyright: ignore[reportPrivateUsage]
        await asyncio.sleep(0)


def byte_by_byte(answer: bytes) -> Answer:
    async def send(writer: asyncio.StreamWriter) -> None:
        for at in range(len(answer)):
            writer.write(answer[at : at + 1])
            await writer.drain()
            await asyncio.sleep(0)

    return send


async def cut(writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


class TestFraming:
    @pytest.mark.parametrize(
        "answer",
        [
            SIZED,
            WHOLE,
            CHUNKED + b"0\r\nX-Trailer: seen\r\n\r\n",
            HEAD + b"\r\n" + BODY,
            HEAD.replace(b"1.1", b"1.0") + b"\r\n" + BODY,
            HEAD + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY,
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + SIZED,
        ],
        ids=["length", "chunks", "trailers", "until it closes", "HTTP/1.0", "close", "hints"],
    )
    async def test_a_reply_is_read_whatever_its_framing(self, answer: bytes):
        async with serving(answer) as (model, _):
            events = await collect(model)
        assert text_of(events) == "fine"
        headers = finish_of(events).headers
        assert headers["Content-Type"] == "text/event-stream"
        assert "X-Trailer" not in headers
        assert "Link" not in headers

    @pytest.mark.parametrize("answer", [SIZED, WHOLE])
    async def test_one_byte_at_a_time(self, answer: bytes):
        async with serving(byte_by_byte(answer), byte_by_byte(answer)) as (model, server):
            assert text_of(await collect(model) + await collect(model)) == "finefine"
        assert server.connections == 1

    @pytest.mark.parametrize(
        "answer",
        [
            CHUNKED[: CHUNKED.index(b'ne"')],  # in the middle of a word
            SIZED[:-30],
            HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
            HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
            HEAD + b"Content-Length: -1\r\n\r\n",
            HEAD[:20],
            b"HTTP/1.1 200 OK\r\nA: " + b"x" * 200_000,
            b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n",
        ],
        ids=["no end", "short", "bad chunk", "both", "negative", "half a head", "huge", "upgrade"],
    )
    async def test_a_reply_that_is_cut_or_no_http_is_a_failure_worth_a_retry(self, answer: bytes):
        async def send(writer: asyncio.StreamWriter) -> None:
            writer.write(answer.replace(b"[DONE]", b"[]"))
            await writer.drain()
            writer.close()

        async with serving(send, SIZED) as (model, server):
            error = failure_of(await collect(model))
            assert (error.retryable, error.cut) == (True, True)
            assert text_of(await collect(model)) == "fine"
        assert server.connections == 2

    @pytest.mark.parametrize("answer", [CHUNKED, SIZED[:-1]], ids=["no end", "short"])
    async def test_a_connection_that_breaks_behind_the_end_marker_takes_nothing_back(
        self, answer: bytes
    ):
        async def send(writer: asyncio.StreamWriter) -> None:
            writer.write(answer)
            await writer.drain()
            writer.close()

        async with serving(send, SIZED) as (model, server):
            assert text_of(await collect(model)) == "fine"
            assert text_of(await collect(model)) == "fine"
        assert server.connections == 2

    async def test_a_fast_provider_waits_for_a_slow_reader(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(provider_socket, "MOST_BUFFERED", 10_000)
        many = b"".join(encode_reply(Reply(deltas=["word "] * 30_000), "m"))
        sized = HEAD + b"Content-Length: %d\r\n\r\n" % len(many)
        async with serving(sized + many) as (model, _):
            seen = 0
            async for event in model.stream(request(), AbortController().signal):
                seen += "word" in repr(event)
                if seen == 1:
                    await asyncio.sleep(0.05)
            assert seen == 30_000


class TestKeepingConnections:
    async def test_whoever_closes_a_connection_gets_a_new_one(self):
        closing = HEAD + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY
        async with serving(closing, SIZED, SIZED) as (model, server):
            for _ in range(3):
                assert text_of(await collect(model)) == "fine"
        assert server.connections == 2

    async def test_one_that_was_closed_while_nobody_used_it_is_not_used(self):
        async def once(writer: asyncio.StreamWriter) -> None:
            writer.write(SIZED)
            await writer.drain()
            writer.close()

        async with serving(once, SIZED) as (model, server):
            await collect(model)
            await until_all_are_closed(model)
            assert text_of(await collect(model)) == "fine"
        assert server.connections == 2

    @pytest.mark.parametrize("more", [b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b"junk"])
    async def test_one_that_says_more_than_it_announced_is_not_used_again(self, more: bytes):
        async with serving(SIZED + more, SIZED) as (model, server):
            assert text_of(await collect(model) + await collect(model)) == "finefine"
        assert server.connections == 2

    async def test_one_that_speaks_unasked_is_closed(self):
        later = asyncio.Event()

        async def send(writer: asyncio.StreamWriter) -> None:
            writer.write(SIZED)
            await later.wait()
            writer.write(SIZED)

        async with serving(send, SIZED) as (model, server):
            await collect(model)
            later.set()
            await server.left.wait()
            assert text_of(await collect(model)) == "fine"
        assert server.connections == 2

    async def test_one_that_was_idle_for_long_is_closed(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(provider_pool, "KEPT_IDLE", 0.01)
        async with serving(SIZED, SIZED) as (model, server):
            await collect(model)
            await server.left.wait()
            assert text_of(await collect(model)) == "fine"

    async def test_a_request_that_was_sent_is_not_sent_again(self):
        async with serving(SIZED, cut) as (model, server):
            await collect(model)
            assert failure_of(await collect(model)).retryable
        assert len(server.requests) == 2

    async def test_calls_at_the_same_time_have_connections_of_their_own(self):
        all_here = asyncio.Barrier(5)

        async def together(writer: asyncio.StreamWriter) -> None:
            await all_here.wait()
            writer.write(SIZED)

        async with serving(*[together] * 5) as (model, server):
            found = await asyncio.gather(*(collect(model) for _ in range(5)))
            assert [text_of(events) for events in found] == ["fine"] * 5
            assert server.connections == 5

    async def test_closing_the_model_ends_calls_that_run(self):
        reached = asyncio.Event()

        async def never(writer: asyncio.StreamWriter) -> None:
            reached.set()
            await asyncio.Event().wait()

        async with serving(never) as (model, _):
            call = asyncio.create_task(collect(model))
            await reached.wait()
            await model.aclose()
            assert failure_of(await call).retryable


class TestRequests:
    async def test_own_headers_take_the_place_of_usual_ones_whatever_their_case(self):
        async with serving(SIZED, SIZED, api_key="secret") as (model, server):
            await collect(model, request(headers={"authorization": "Bearer mine", "X-Team": "ü"}))
            await collect(model)
        first, second = (sent.partition(b"\r\n\r\n")[0].decode() for sent in server.requests)
        assert first.startswith("POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:")
        assert (first.count("uthorization:"), "Bearer mine" in first, "X-Team: ü" in first) == (
            1,
            True,
            True,
        )
        assert "Bearer secret" in second

    async def test_a_header_cannot_smuggle_another_request(self):
        async with serving(SIZED) as (model, server):
            forged = {"X-Team": "blue\r\nContent-Length: 0\r\n\r\nDELETE / HTTP/1.1"}
            error = failure_of(await collect(model, request(headers=forged)))
        assert isinstance(error, ValueError)
        assert server.requests == []

    async def test_a_host_that_cannot_be_reached_in_time_is_named(self):
        async with listening(Server()) as port:  # it waits for a request, and TLS for its answer
            model = OpenAIChatModel("m", base_url=f"https://127.0.0.1:{port}/v1", api_key="k")
            error = failure_of(await collect(model, request(connect_timeout=0.05)))
            await model.aclose()
        assert error.retryable
        assert f"127.0.0.1:{port}: no answer within 0.05 seconds" in str(error)

    async def test_an_abort_while_it_connects_ends_the_call(self):
        controller, server = AbortController(), Server()
        async with listening(server) as port:
            model = OpenAIChatModel("m", base_url=f"https://127.0.0.1:{port}/v1", api_key="k")
            call = asyncio.create_task(collect(model, signal=controller.signal))
            while not server.connections:
                await asyncio.sleep(0)
            controller.abort()
            assert await call == []
            await server.left.wait()


class TestTls:
    def server_side(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATE)
        return context

    async def test_a_trusted_provider_is_asked(self):
        options = {"tls": self.server_side(), "ca_file": str(CERTIFICATE)}
        async with serving(SIZED, WHOLE, **options) as (model, server):
            assert text_of(await collect(model) + await collect(model)) == "finefine"
        assert server.connections == 1

    async def test_one_that_nobody_vouches_for_is_told_nothing(self):
        async with serving(SIZED, tls=self.server_side()) as (model, server):
            error = failure_of(await collect(model))
        assert "certificate" in str(error).lower()
        assert server.requests == []


class TestWhatIsLeftToAiohttp:
    async def test_a_redirect_is_followed_and_from_then_on_aiohttp_asks(self):
        moved = b"HTTP/1.1 307 Moved\r\nLocation: /v2\r\nContent-Length: 0\r\n\r\n"
        async with serving(moved, moved, SIZED, SIZED) as (model, server):
            assert text_of(await collect(model)) == "fine"
            assert text_of(await collect(model)) == "fine"
        paths = [sent.split(b" ")[1] for sent in server.requests]
        asked, there = b"/v1/chat/completions", b"/v2"
        assert paths == [asked, asked, there, asked]

    async def test_a_compressed_reply_is_asked_for_again_and_read(self):
        packed = gzip.compress(BODY)
        answer = HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed)
        async with serving(answer + packed, answer + packed) as (model, _):
            assert text_of(await collect(model)) == "fine"

    async def test_a_proxy_gets_the_request(self):
        server = Server(SIZED)
        async with listening(server) as port:
            proxy = f"http://user:word@127.0.0.1:{port}"
            model = OpenAIChatModel("m", base_url="http://provider.invalid/v1", proxy=proxy)
            events = await collect(model)
            await model.aclose()
        assert text_of(events) == "fine", events
        head = server.requests[0]
        assert head.startswith(b"POST http://provider.invalid/v1/chat/completions HTTP/1.1")
        assert b"Proxy-Authorization: Basic dXNlcjp3b3Jk" in head

    @pytest.mark.parametrize(
        "url", ["http://user:word@127.0.0.1/v1", "http://exämple.invalid/v1", "ftp://a.invalid/v1"]
    )
    def test_addresses_that_need_more_are_left_to_it(self, url: str):
        assert provider_pool.destination_of(urlsplit(url), None) is None
