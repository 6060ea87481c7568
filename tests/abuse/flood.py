"""A WebSocket client that sends as fast as the server takes it: one system call for many frames.

Only what a flood needs: frames are masked with zeros (which is legal and costs nothing), answers
are searched for the one that counts. Everything else a client must do is left out.
"""

from __future__ import annotations

import asyncio
import base64
import os
import struct
from collections.abc import Iterable

from thinkwell.core.tasks import TaskOwner

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


class Flood:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._awaited = b""
        self._seen = asyncio.Event()
        self._tasks = TaskOwner("flood")
        self.closed: int | None = None
        """The code the server closed with; 1006 if the connection just ended."""
        self._tasks.spawn(self._read(), name="read")

    @classmethod
    async def connect(cls, port: int, path: str) -> Flood:
        """Open a socket and shake hands."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**22)
        key = base64.b64encode(os.urandom(16)).decode()
        writer.write(
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n"
            "".encode()
        )
        answer = await reader.readuntil(b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 101"), answer
        return cls(reader, writer)

    async def send(self, frames: Iterable[str | bytes]) -> None:
        """Send many frames at once."""
        self._writer.write(b"".join(map(encode, frames)))
        await self._writer.drain()

    async def answers(self, mark: str, frame: str, timeout: float) -> None:
        """Send `frame` and wait until some answer holds `mark`."""
        self._awaited = mark.encode()
        self._seen.clear()
        await self.send([frame])
        async with asyncio.timeout(timeout):
            await self._seen.wait()
        assert self.closed is None, f"the server closed with {self.closed}"

    async def close(self) -> None:
        self._writer.close()
        await self._tasks.close()

    async def _read(self) -> None:
        try:
            while True:
                opcode, payload = await self._frame()
                if opcode == CLOSE:
                    self.closed = struct.unpack(">H", payload[:2])[0] if payload else 1005
                    return
                if opcode == PING:
                    self._writer.write(encode(payload, PONG))
                elif self._awaited and self._awaited in payload:
                    self._seen.set()
        except (asyncio.IncompleteReadError, OSError):
            self.closed = 1006
        finally:
            self._seen.set()

    async def _frame(self) -> tuple[int, bytes]:
        first, second = await self._reader.readexactly(2)
        length = second & 0x7F
        if length == 126:
            (length,) = struct.unpack(">H", await self._reader.readexactly(2))
        elif length == 127:
            (length,) = struct.unpack(">Q", await self._reader.readexactly(8))
        return first & 0x0F, await self._reader.readexactly(length)


def encode(frame: str | bytes, opcode: int | None = None) -> bytes:
    """One frame as a client sends it."""
    payload = frame.encode() if isinstance(frame, str) else frame
    kind = opcode if opcode is not None else TEXT if isinstance(frame, str) else BINARY
    size = len(payload)
    if size < 126:
        header = struct.pack(">BB", 0x80 | kind, 0x80 | size)
    elif size < 65536:
        header = struct.pack(">BBH", 0x80 | kind, 0x80 | 126, size)
    else:
        header = struct.pack(">BBQ", 0x80 | kind, 0x80 | 127, size)
    return header + b"\0\0\0\0" + payload
