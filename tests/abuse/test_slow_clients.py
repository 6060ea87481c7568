"""Clients that do not read, do not finish, or say too much: nobody else notices.

A real server in its own process; the misbehaving side is a plain TCP socket.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.abuse.flood import encode
from tests.abuse.process import DEADLINE, ServerProcess, server_process
from tests.abuse.raw_socket import RawSocket
from tests.abuse.room import Wire, transcript

WORDS = 80_000
"""An answer that fits into no queue: more than the kernel's buffers and the server's own."""
MEMORY = 200 * 1024 * 1024
KEPT = 30 * 1024 * 1024
"""Ten sockets that were not let go kept some 50 MB."""


def _piece(first: int) -> bytes:
    """A part of a text that goes on."""
    return struct.pack(">BBHI", first, 0xFE, 16_000, 0) + b"x" * 16_000


BAD_FRAMES = {
    "too large": (encode("x" * 70_000), 1009),
    "said to be huge": (struct.pack(">BBQ", 0x81, 0xFF, 2**40) + b"\0\0\0\0", 1009),
    "too many pieces": (_piece(0x01) + _piece(0x00) * 5, 1009),
    "no UTF-8": (encode(b"\xff\xfe", 1), 1007),
    "not masked": (b"\x81\x02hi", 1002),
    "an unknown kind": (encode(b"x", 3), 1002),
    "a long ping": (encode(b"x" * 200, 9), 1002),
}


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ServerProcess]:
    async with server_process(tmp_path, "tests.abuse.agents:app") as running:
        yield running
        assert running.alive
        assert not running.defects()


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
async def strict(tmp_path: Path) -> AsyncIterator[ServerProcess]:
    """Takes frames and bodies of up to 64 KB."""
    async with server_process(tmp_path, "tests.abuse.agents:strict") as running:
        yield running
        assert running.alive
        # uvicorn itself writes a traceback for text that is no UTF-8, and goes on.
        assert not running.defects() or "Invalid UTF-8" in running.log()


@pytest.mark.timeout(300)
async def test_whoever_does_not_read_is_dropped_and_has_everything_after_a_reconnect(
    server: ServerProcess, stack: ExitStack
):
    """Spec/01 §2.8, §10: the agent, its other tabs and other agents are not held up."""
    before = server.memory()
    fast = stack.enter_context(RawSocket(server.port, "/agents/victim/busy?_pk=fast"))
    deaf = [stack.enter_context(_deaf(server, f"deaf{i}")) for i in range(10)]
    reading = asyncio.create_task(asyncio.to_thread(fast.read_until, '"done":true'))
    fast.send(_question("q1", f"long:{WORDS}"))
    other = await opened(f"{server.http}/agents/victim/other", "other")
    other.tab.submit("hello")
    await ready(other)
    assert _text_of(other.tab.messages) == "ok"
    late = stack.enter_context(RawSocket(server.port, "/agents/victim/busy?_pk=late"))
    late.send(json.dumps({"type": "cf_agent_stream_resume_ack", "id": "q1"}))
    caught_up = await asyncio.to_thread(late.read_until, '"done":true')
    stored = await _stored_words(server, await reading)
    assert await _stored_words(server, caught_up) == stored  # far more than a queue holds
    await dropped(server, len(deaf))
    assert server.memory() - before < MEMORY
    codes = [await asyncio.to_thread(one.read_to_the_end) for one in deaf]
    assert set(codes) <= {1013, 1006}
    back = await opened(f"{server.http}/agents/victim/busy", "deaf0")
    await ready(back)
    assert _text_of(back.tab.messages) == stored
    for wire in (other, back):
        await wire.drop()


async def _stored_words(server: ServerProcess, frames: list[dict[str, Any]]) -> str:
    """What is stored, which is what the reading client was sent, every word once."""
    bodies = [json.loads(frame["body"]) for frame in frames if "seq" in frame]
    assert [frame["seq"] for frame in frames if "seq" in frame] == list(range(len(bodies)))
    sent = "".join(body.get("delta", "") for body in bodies)
    assert sent.split() == ["word"] * WORDS
    assert _text_of(await transcript(f"{server.http}/agents/victim/busy")) == sent
    return sent


def _text_of(messages: list[dict[str, Any]]) -> str:
    return "".join(part.get("text", "") for part in messages[-1]["parts"])


def _question(request_id: str, text: str) -> str:
    message = {"id": f"u-{request_id}", "role": "user", "parts": [{"type": "text", "text": text}]}
    body = json.dumps({"messages": [message], "trigger": "submit-message"})
    init = {"method": "POST", "body": body}
    return json.dumps({"type": "cf_agent_use_chat_request", "id": request_id, "init": init})


@pytest.mark.timeout(300)
async def test_whoever_is_cut_off_keeps_no_descriptor_and_no_memory(
    server: ServerProcess, stack: ExitStack
):
    """The sockets stay open on the other side and never read."""
    with RawSocket(server.port, "/agents/victim/busy?_pk=warm") as warm:
        warm.send(_question("q0", f"long:{WORDS}"))
        await asyncio.to_thread(warm.read_until, '"done":true')
    await _gone(server, 0)
    memory, descriptors = server.memory(), server.descriptors()
    for i in range(10):
        stack.enter_context(_deaf(server, f"deaf{i}"))
    asking = stack.enter_context(RawSocket(server.port, "/agents/victim/busy?_pk=asking"))
    asking.send(_question("q1", f"long:{WORDS}"))
    await asyncio.to_thread(asking.read_until, '"done":true')
    await dropped(server, 10)
    await _gone(server, descriptors + 1)
    assert server.memory() - memory < KEPT


@pytest.mark.timeout(300)
async def test_whoever_does_not_read_an_http_answer_is_cut_off_and_the_turn_goes_on(
    tmp_path: Path, stack: ExitStack
):
    """Five readers that never read kept 9 to 18 MB each, for as long as they liked."""
    async with server_process(tmp_path, "tests.abuse.agents:impatient") as server:
        deaf = [stack.enter_context(_deaf_reader(server, i)) for i in range(5)]
        await dropped(server, len(deaf))
        for number, link in enumerate(deaf):
            assert b"[DONE]" not in await asyncio.to_thread(_read_all, link)
            await _said(server, f"deaf{number}")
        assert not server.defects()


def _deaf_reader(server: ServerProcess, number: int) -> socket.socket:
    """Asks over HTTP and never reads the answer."""
    link = socket.socket()
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    link.connect(("127.0.0.1", server.port))
    parts = [{"type": "text", "text": f"long:{WORDS}"}]
    messages = [{"id": "u", "role": "user", "parts": parts}]
    body = json.dumps({"messages": messages, "trigger": "submit-message"})
    head = f"POST /agents/victim/deaf{number}/chat HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
    kind = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    link.sendall(f"{head}{kind}{body}".encode())
    return link


def _read_all(link: socket.socket) -> bytes:
    """What had left the server before it let go, until the end."""
    read = b""
    while piece := link.recv(1 << 20):
        read += piece
    return read


async def _said(server: ServerProcess, name: str) -> None:
    """Until the whole answer is stored."""
    async with asyncio.timeout(DEADLINE):
        while True:
            stored = await transcript(f"{server.http}/agents/victim/{name}")
            if len(stored) == 2 and _text_of(stored).split() == ["word"] * WORDS:
                return
            await asyncio.sleep(0.1)


async def _gone(server: ServerProcess, descriptors: int) -> None:
    """Until the server has no more descriptors than that; 0: until their number rests."""
    async with asyncio.timeout(DEADLINE):
        before = -1
        while (now := server.descriptors()) > descriptors and (descriptors or now != before):
            before = now
            await asyncio.sleep(0.1)


@pytest.mark.parametrize("kind", BAD_FRAMES)
async def test_a_frame_against_the_rules_closes_its_own_socket_only(
    strict: ServerProcess, kind: str
):
    """RFC 6455 §7.4.1; the limit is `App.max_frame_bytes`."""
    other = await opened(f"{strict.http}/agents/victim/a", "other")
    data, code = BAD_FRAMES[kind]
    with RawSocket(strict.port, "/agents/victim/a") as bad:
        bad.write(data)
        assert await asyncio.to_thread(bad.read_to_the_end) == code
    other.tab.submit("hello")
    await ready(other)
    assert len(other.tab.messages) == 2
    await watchers(other, 1)
    await other.drop()


async def test_hundreds_of_sockets_that_come_and_go_leave_nothing_behind(server: ServerProcess):
    """Spec/01 §2.8, §1.3.1."""
    other = await opened(f"{server.http}/agents/victim/a", "other")
    for i in range(300):
        with RawSocket(server.port, f"/agents/victim/a?_pk=s{i % 7}") as brief:
            if i % 3:
                brief.send(json.dumps({"type": "cf_agent_stream_resume_request", "probeId": "p"}))
    await watchers(other, 1)
    other.tab.submit("hello")
    await ready(other)
    await other.drop()


async def test_of_many_sockets_with_one_id_the_newest_counts(server: ServerProcess):
    """Spec/01 §1.3.1."""
    same = [RawSocket(server.port, "/agents/victim/a?_pk=same") for _ in range(60)]
    newest = await opened(f"{server.http}/agents/victim/a", "same")
    await watchers(newest, 1)
    for older in same:
        older.abort()
    newest.tab.submit("hello")
    await ready(newest)
    assert len(newest.tab.messages) == 2
    await watchers(newest, 1)
    await newest.drop()


async def test_requests_that_never_end_hold_nobody_up(strict: ServerProcess):
    """Half a handshake, half a frame, bodies byte by byte."""
    host = f"Host: 127.0.0.1:{strict.port}\r\n"
    head = f"POST /agents/victim/a/run HTTP/1.1\r\n{host}Content-Type: application/json\r\n"
    body = json.dumps({"input": "hello"}).encode()
    length = f"Content-Length: {len(body)}\r\n\r\n"
    halves = [b"GET /agents/vic", f"{head}{length}".encode() + body[:3]]
    links = [_tcp(strict, halves[i % 2]) for i in range(100)]
    half = RawSocket(strict.port, "/agents/victim/a")
    half.write(encode("x" * 1_000)[:500])
    other = await opened(f"{strict.http}/agents/victim/b", "other")
    other.tab.submit("hello")
    await ready(other)
    last = links[1]
    for byte in body[3:]:
        last.sendall(bytes([byte]))
    assert (await asyncio.to_thread(last.recv, 12)).endswith(b"200")
    for link in links:
        link.close()
    half.abort()
    await other.drop()


async def test_a_body_above_the_limit_is_refused_before_it_is_read(strict: ServerProcess):
    """`App.max_body_bytes`, said in the header or only found out on the way."""
    url = f"{strict.http}/agents/victim/a/run"

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b" " * 1_000

    async with aiohttp.ClientSession(headers={"content-type": "application/json"}) as http:
        for data in (b" " * 70_000, pieces()):
            async with http.post(url, data=data) as answer:
                assert answer.status == 413
    link = _tcp(strict, b"")
    link.sendall(
        f"POST /agents/victim/a/run HTTP/1.1\r\nHost: 127.0.0.1:{strict.port}\r\n"
        f"Content-Length: {10**15}\r\nContent-Type: application/json\r\n\r\n".encode()
    )
    assert (await asyncio.to_thread(link.recv, 12)).endswith(b"413")
    link.close()


async def opened(address: str, name: str) -> Wire:
    wire = Wire(address, name)
    await wire.load()
    await wire.open()
    await wire.settle()
    return wire


async def ready(wire: Wire) -> None:
    """Until the tab waits for nothing."""
    async with asyncio.timeout(DEADLINE):
        while wire.tab.waits:
            await asyncio.sleep(0.01)
    assert wire.tab.status == "ready", wire.tab.error


async def watchers(wire: Wire, count: int) -> None:
    """Until the agent knows so many sockets."""
    async with asyncio.timeout(DEADLINE):
        while await wire.call("watchers") != count:
            await asyncio.sleep(0.01)


async def dropped(server: ServerProcess, count: int) -> None:
    """Until the server has given so many clients up."""
    async with asyncio.timeout(DEADLINE):
        while server.log().count("too slow") < count:
            await asyncio.sleep(0.01)


def _deaf(server: ServerProcess, name: str) -> RawSocket:
    """A client that says hello and never reads again."""
    return RawSocket(server.port, f"/agents/victim/busy?_pk={name}", buffer=4_096)


def _tcp(server: ServerProcess, data: bytes) -> Any:
    link = socket.create_connection(("127.0.0.1", server.port), timeout=DEADLINE)
    link.sendall(data)
    return link
