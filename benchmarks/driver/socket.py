"""A WebSocket client that costs little: one protocol object, whole texts handed to a callback.

Only what a benchmark needs of RFC 6455: text frames both ways, fragments put together, pings
answered, no extensions. A thousand of these share one loop.
"""

from __future__ import annotations

import asyncio
import base64
import os
import struct
from collections.abc import Callable
from typing import cast
from urllib.parse import urlsplit

OnText = Callable[[bytes], None]

TEXT, CLOSE, PING, PONG = 0x1, 0x8, 0x9, 0xA
FINAL = 0x80
HANDSHAKE = (
    "GET {path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n"
)


class WebSocket(asyncio.Protocol):
    """One connection. Texts go to `on_text` as bytes, in order."""

    def __init__(self, url: str, on_text: OnText) -> None:
        self._url = urlsplit(url)
        self._on_text = on_text
        self._input = bytearray()
        self._fragments = b""
        self._transport = cast("asyncio.Transport", None)
        loop = asyncio.get_running_loop()
        self._upgraded: asyncio.Future[None] = loop.create_future()
        self.closed: asyncio.Future[str] = loop.create_future()
        """Resolved with the reason when the connection is gone."""

    @classmethod
    async def connect(cls, url: str, on_text: OnText) -> WebSocket:
        """Open a connection."""
        socket = cls(url, on_text)
        host, port = socket._url.hostname or "127.0.0.1", socket._url.port or 80
        await asyncio.get_running_loop().create_connection(lambda: socket, host, port)
        await socket._upgraded
        return socket

    def send(self, text: bytes) -> None:
        """Send one text; masked as the protocol demands, with zeros as the mask."""
        self._transport.write(_header(TEXT, len(text)) + text)

    def close(self) -> None:
        """Close it."""
        self._transport.write(_header(CLOSE, 0))
        self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        path = self._url.path + (f"?{self._url.query}" if self._url.query else "")
        key = base64.b64encode(os.urandom(16)).decode()
        request = HANDSHAKE.format(path=path, host=self._url.netloc, key=key)
        self._transport.write(request.encode())

    def connection_lost(self, exc: Exception | None) -> None:
        reason = f"the connection was lost: {exc}"
        if not self._upgraded.done():
            self._upgraded.set_exception(ConnectionError(reason))
        if not self.closed.done():
            self.closed.set_result(reason)

    def data_received(self, data: bytes) -> None:
        self._input += data
        if not self._upgraded.done() and not self._upgrade():
            return
        while self._read_frame():
            pass

    def _upgrade(self) -> bool:
        end = self._input.find(b"\r\n\r\n")
        if end < 0:
            return False
        head = bytes(self._input[:end])
        del self._input[: end + 4]
        if b" 101 " not in head.partition(b"\r\n")[0]:
            self._upgraded.set_exception(ConnectionError(head.decode()))
            return False
        self._upgraded.set_result(None)
        return True

    def _read_frame(self) -> bool:
        """Take one frame off the input; False if it is not all here."""
        data = self._input
        if len(data) < 2:
            return False
        length, start = data[1] & 0x7F, 2
        if length == 126:
            start = 4
            length = int.from_bytes(data[2:4])
        elif length == 127:
            start = 10
            length = int.from_bytes(data[2:10])
        if len(data) < start + length:
            return False
        first, payload = data[0], bytes(data[start : start + length])
        del data[: start + length]
        self._take(first, payload)
        return True

    def _take(self, first: int, payload: bytes) -> None:
        opcode = first & 0x0F
        if opcode == PING:
            self._transport.write(_header(PONG, len(payload)) + payload)
        elif opcode == CLOSE:
            if not self.closed.done():
                self.closed.set_result(f"the server closed: {payload!r}")
        elif opcode <= TEXT:
            self._fragments += payload
            if first & FINAL:
                whole, self._fragments = self._fragments, b""
                self._on_text(whole)


def _header(opcode: int, length: int) -> bytes:
    if length < 126:
        size = struct.pack("!B", FINAL | length)
    elif length < 65_536:
        size = struct.pack("!BH", FINAL | 126, length)
    else:
        size = struct.pack("!BQ", FINAL | 127, length)
    return bytes([FINAL | opcode]) + size + b"\0\0\0\0"
