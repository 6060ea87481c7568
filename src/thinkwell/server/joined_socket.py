"""uvicorn's WebSocket with one addition: several texts in one write.

A stream is many small frames. ASGI sends them one by one, and each costs the server more than the
text itself. An app that finds `EXTENSION` among the extensions of its scope may send
`{"type": "websocket.send", "texts": [...]}`; with every other server it sends one text at a time.
Contract: used without compression, and only for whole text messages; everything else is uvicorn's.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, cast

from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from thinkwell.server.outbox import EXTENSION

_TEXT = 0x81
"""First byte of a frame: the last and only one of a text message."""
_SHORT = [bytes([_TEXT, length]) for length in range(126)]


class JoinedWebSocket(WebSocketsSansIOProtocol):
    """The texts of one `send` leave as frames of their own, in a single write."""

    def handle_connect(self, event: Any) -> None:
        """Announce the extension, unless frames are compressed."""
        super().handle_connect(event)
        if not self.close_sent and not self.conn.extensions:
            cast("Any", self.scope)["extensions"][EXTENSION] = {}

    async def send(self, message: Any) -> None:
        """Send one ASGI message, or several texts at once."""
        texts = message.get("texts")
        if texts is None:
            await super().send(message)
            return
        await self.writable.wait()
        if self.disconnected or self.close_sent or self.transport.is_closing():
            raise ClientDisconnected
        self.transport.write(join_frames(texts))


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
