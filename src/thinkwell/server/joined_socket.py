"""uvicorn's WebSocket and more: several texts in one write, a pause, and an end that comes.

A stream is many small frames. ASGI sends them one by one, and each costs the server more than the
text itself. An app that finds `EXTENSION` among the extensions of its scope may send
`{"type": "websocket.send", "texts": [...]}`, or hand texts to its `write` without waiting; with
every other server it sends one text at a time.

A message of the type `PAUSE` is done when the client has read everything before it: a ping goes out
and its answer comes back. Whatever follows is a read of its own, however a network joins writes.

A transport is closed only once its buffer is empty, and a client that reads nothing never lets that
happen: it would keep megabytes and a descriptor for ever. So a socket that is over is aborted after
`LINGER`, and at once when the app says so (`ABORT`).
Contract: used without compression, and only for whole text messages; everything else is uvicorn's.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, cast

from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from thinkwell.server.outbox import ABORT, EXTENSION, PAUSE

LINGER = 15.0
"""Seconds a socket that is over gets to take what is left; longer than uvicorn waits for the other
side of a closing handshake.
"""
LONGEST_PAUSE = 5.0
"""Seconds after which a client that answers no ping gets the rest all the same."""

_PAUSE = b"thinkwell.pause"
_TEXT = 0x81
"""First byte of a frame: the last and only one of a text message."""
_SHORT = [bytes([_TEXT, length]) for length in range(126)]


class JoinedWebSocket(WebSocketsSansIOProtocol):
    """The texts of one `send` leave as frames of their own, in a single write."""

    _last_call: asyncio.TimerHandle | None = None
    _joins = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._read_up = asyncio.Event()

    def handle_connect(self, event: Any) -> None:
        """Announce the extensions; several texts only where frames are not compressed."""
        super().handle_connect(event)
        if self.close_sent:
            return
        extensions = cast("Any", self.scope)["extensions"]
        extensions[ABORT] = extensions[PAUSE] = {}
        if not self.conn.extensions:
            extensions[EXTENSION] = {"write": self.write_now}
            self._joins = True

    def handle_pong(self, event: Any) -> None:
        """The client has read what went before a ping: ours, or one of uvicorn's."""
        if bytes(event.data) == _PAUSE:
            self._read_up.set()
        else:
            super().handle_pong(event)

    def on_task_complete(self, task: asyncio.Task[None]) -> None:
        """The app is done with the socket."""
        super().on_task_complete(task)
        self._abort_later()

    def keepalive_timeout(self) -> None:
        """The client answers no ping: the app hears of it when the transport is gone."""
        super().keepalive_timeout()
        self._abort_later()

    def connection_lost(self, exc: Exception | None) -> None:
        """The transport is gone."""
        super().connection_lost(exc)
        self._read_up.set()
        if self._last_call is not None:
            self._last_call.cancel()

    def _abort_later(self) -> None:
        if self._last_call is None and not self.disconnected:
            self._last_call = self.loop.call_later(LINGER, self.transport.abort)

    async def send(self, message: Any) -> None:
        """Send one ASGI message, or several texts at once; wait for the client, or drop it."""
        kind, texts, fragment = message["type"], message.get("texts"), message.get("fragment")
        if texts is None and self._joins and self.handshake_complete and message.get("text"):
            texts = (message["text"],)  # the same bytes as uvicorn's, for less
        if kind in (PAUSE, "websocket.send"):
            await self._may_write()
        if kind == ABORT:
            self.transport.abort()
        elif kind == PAUSE:
            await self._pause()
        elif fragment is not None:
            # The piece is a view of bytes that other sockets share; nothing is copied here.
            self.transport.writelines(fragment_frame(*fragment))
        elif texts is None:
            await super().send(message)
            if kind == "websocket.http.response.body" and not message.get("more_body"):
                # uvicorn forgets that a refusal is an answer, too, and would log that none came.
                self.handshake_complete = True
        else:
            self.transport.write(join_frames(texts))

    def write_now(self, texts: Sequence[str]) -> bool:
        """Write the texts, if nobody has to wait for that. False: nothing was written."""
        if not self.writable.is_set() or self._is_over():
            return False
        self.transport.write(join_frames(texts))
        return True

    async def _may_write(self) -> None:
        """Raise if the socket is over: by the client, or because it broke the rules."""
        await self.writable.wait()
        if self._is_over():
            raise ClientDisconnected

    def _is_over(self) -> bool:
        return self.disconnected or self.close_sent or self.transport.is_closing()

    async def _pause(self) -> None:
        self._read_up.clear()
        self.conn.send_ping(_PAUSE)
        self.transport.write(b"".join(self.conn.data_to_send()))
        with suppress(TimeoutError):
            async with asyncio.timeout(LONGEST_PAUSE):
                await self._read_up.wait()


def fragment_frame(data: memoryview, first: bool, last: bool) -> list[bytes | memoryview]:  # noqa: FBT001
    """A piece of one text message as a frame (RFC 6455 §5.4); pings may stand in between."""
    kind = (0x80 if last else 0) | (0x01 if first else 0)
    length = len(data)
    if length < 126:
        return [bytes([kind, length]), data]
    if length < 65_536:
        return [struct.pack("!BBH", kind, 126, length), data]
    return [struct.pack("!BBQ", kind, 127, length), data]


def join_frames(texts: Sequence[str]) -> bytes:
    """The texts as WebSocket frames of a server, one behind the other (RFC 6455 §5.2)."""
    parts: list[bytes] = []
    for text in texts:
        data = text.encode()
        length = len(data)
        if length < 126:
            parts.append(_SHORT[length])
        elif length < 65_536:
            parts.append(struct.pack("!BBH", _TEXT, 126, length))
        else:
            parts.append(struct.pack("!BBQ", _TEXT, 127, length))
        parts.append(data)
    return b"".join(parts)
