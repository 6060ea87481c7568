"""A provider that does what no provider should: bytes over a socket, and no library that helps."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

Misbehave = Callable[[asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def provider(*replies: Misbehave) -> AsyncIterator[str]:
    """Its base URL. Each request gets the next reply, and the last one for ever."""
    asked = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        with suppress(OSError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            reply = replies[min(asked, len(replies) - 1)]
            asked += 1
            await reply(writer)
        writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    finally:
        server.close()


def head(length: int | None = None, *, kind: str = "text/event-stream") -> bytes:
    sized = b"" if length is None else b"Content-Length: %d\r\n" % length
    return b"HTTP/1.1 200 OK\r\nContent-Type: " + kind.encode() + b"\r\n" + sized + b"\r\n"


def sends(*pieces: bytes) -> Misbehave:
    async def reply(writer: asyncio.StreamWriter) -> None:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()

    return reply


def floods(piece: bytes) -> Misbehave:
    """Sends the same for ever."""

    async def reply(writer: asyncio.StreamWriter) -> None:
        writer.write(head())
        while True:
            writer.write(piece)
            await writer.drain()

    return reply
