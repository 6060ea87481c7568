"""A WebSocket as bytes on a blocking TCP socket, for clients that break the rules or do nothing."""

from __future__ import annotations

import base64
import json
import os
import socket
import struct
from typing import Any, Self

from tests.abuse.flood import CLOSE, TEXT, encode

PATIENCE = 60.0
READ_AHEAD = 2**18


class RawSocket:
    """One connection that reads only when it is told to."""

    def __init__(self, port: int, path: str, *, buffer: int | None = None) -> None:
        self._socket = socket.socket()
        if buffer is not None:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self._socket.settimeout(PATIENCE)
        self._socket.connect(("127.0.0.1", port))
        self._stream = self._socket.makefile("rb", buffering=READ_AHEAD)
        key = base64.b64encode(os.urandom(16)).decode()
        self.write(
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
            "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            f"Sec-WebSocket-Key: {key}\r\n\r\n".encode()
        )
        self._read_head()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.abort()

    def write(self, data: bytes) -> None:
        self._socket.sendall(data)

    def send(self, frame: str | bytes) -> None:
        self.write(encode(frame))

    def abort(self) -> None:
        """Go without a word: the other side gets a reset."""
        self._stream.close()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()

    def read_to_the_end(self) -> int:
        """Read frames until the server closes; its code, 1006 if it says none."""
        try:
            while True:
                opcode, payload = self._frame()
                if opcode == CLOSE:
                    return struct.unpack(">H", payload[:2])[0] if payload else 1005
        except (ConnectionError, EOFError):
            return 1006

    def read_until(self, mark: str) -> list[dict[str, Any]]:
        """Read frames up to the first one that holds `mark`; pings are left unanswered."""
        wanted, frames = mark.encode(), list[dict[str, Any]]()
        while True:
            opcode, payload = self._frame()
            assert opcode != CLOSE, f"closed: {payload!r}"
            if opcode == TEXT:
                frames.append(json.loads(payload))
                if wanted in payload:
                    return frames

    def _read_head(self) -> None:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += self._exactly(1)
        assert head.startswith(b"HTTP/1.1 101"), head

    def _frame(self) -> tuple[int, bytes]:
        first, second = self._exactly(2)
        length = second & 0x7F
        if length == 126:
            (length,) = struct.unpack(">H", self._exactly(2))
        elif length == 127:
            (length,) = struct.unpack(">Q", self._exactly(8))
        return first & 0x0F, self._exactly(length)

    def _exactly(self, size: int) -> bytes:
        data = self._stream.read(size)
        if len(data) < size:
            raise EOFError
        return data
