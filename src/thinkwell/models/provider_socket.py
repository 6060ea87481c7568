"""One connection to a provider: a request goes out, its reply streams back.

A small HTTP/1.1 client for the one thing a model call needs: no proxies, redirects, cookies or
compression. `ProviderClient` leaves those to aiohttp, which costs a turn several times as much.
httptools, the parser of the server, reads the reply, whatever its framing.

A connection serves one request at a time and goes back to its pool once the reply has come whole
and the server keeps it open. One that says anything unasked, or more than it announced, is not used
again. Nothing is ever sent twice: whoever asked decides about that.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from httptools import HttpResponseParser

if TYPE_CHECKING:
    from thinkwell.models.provider_pool import ProviderPool

MOST_BUFFERED = 512 * 1024
"""Bytes of a reply that wait to be read, beyond which its server has to wait."""
LARGEST_HEAD = 64 * 1024
"""Bytes in which the headers of a reply have to end."""


class BrokenReplyError(ConnectionError):
    """What came back is not HTTP, or not all of it came."""


class SocketReply:
    """One reply as it arrives. Also the object that httptools reports to."""

    __slots__ = (
        "_begun",
        "_connection",
        "_error",
        "_held",
        "_pieces",
        "_waiter",
        "headers",
        "keep_alive",
        "reason",
        "status",
        "surplus",
        "whole",
    )

    def __init__(self, connection: ProviderConnection) -> None:
        self.status = 0
        self.reason = ""
        self.headers: dict[str, str] = {}
        self.whole = False
        """Whether all of it has arrived; it may still wait to be read."""
        self.keep_alive = False
        """Whether the server takes another request after it."""
        self.surplus = False
        """Whether more came than it announced."""
        self._connection = connection
        self._begun = False
        self._pieces: list[bytes] = []
        self._held = 0
        """Bytes in `_pieces`; before the body, of the head."""
        self._error: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None

    async def begun(self) -> None:
        """Wait for its headers."""
        while not self._begun:
            await self._something()

    async def read(self) -> bytes:
        """Whatever has come, at least one byte; nothing at the end. Raises if it was cut."""
        while not self._pieces:
            if self.whole:
                return b""
            await self._something()
        pieces, self._pieces, self._held = self._pieces, [], 0
        self._connection.resume()
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    @property
    def at_end(self) -> bool:
        """Whether there is nothing left to read."""
        return self.whole and not self._pieces

    @property
    def content_type(self) -> str:
        """The media type, without its parameters."""
        return self._header("content-type").partition(";")[0].strip().lower()

    @property
    def is_plain(self) -> bool:
        """False for what only a complete client can follow: redirects, compressed bodies."""
        moved = 300 <= self.status < 400 and self._header("location")
        return not moved and self._header("content-encoding").lower() in ("", "identity")

    def close(self, error: Exception | None = None) -> None:
        """Cut it, unless it is here already. Whoever waits for it hears `error`."""
        if not self.whole:
            self.fail(error or BrokenReplyError("the connection was closed"))
            self._connection.abort()

    release = close
    """Nobody wants to read on: what has not come yet is not waited for."""

    def feed(self, data: bytes, parser: HttpResponseParser) -> None:
        """Bytes of it. Raises if they are no HTTP."""
        if not self._begun:
            self._held += len(data)
            if self._held > LARGEST_HEAD and b"\r\n\r\n" not in data:
                raise BrokenReplyError(f"its headers are longer than {LARGEST_HEAD:,} bytes")
        parser.feed_data(data)

    @property
    def is_full(self) -> bool:
        """Whether its server should wait until somebody has read."""
        return self._begun and self._held > MOST_BUFFERED

    def fail(self, error: Exception) -> None:
        """It will not come to its end."""
        self._error = self._error or error
        self.wake()

    def lose_connection(self, error: Exception | None) -> None:
        """Nothing more will come. That is its end if it had announced none."""
        framed = self._header("content-length") or self._header("transfer-encoding")
        if error is None and self._begun and not framed:
            self.whole = True
            self.wake()
        else:
            self.fail(BrokenReplyError(f"the connection was cut{f': {error}' if error else ''}"))

    def wake(self) -> None:
        """Something has changed."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def _something(self) -> None:
        if self._error is not None:
            raise self._error
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _header(self, name: str) -> str:
        for each, value in self.headers.items():
            if each.lower() == name:
                return value
        return ""

    # What httptools calls

    def on_message_begin(self) -> None:
        """A second message would be more than was asked for."""
        self.surplus = self.whole

    def on_status(self, status: bytes) -> None:
        """The text beside the status."""
        if not self._begun:
            self.reason += status.decode("latin-1")

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header; what stands behind the body is not read."""
        if not self._begun:
            self.headers[name.decode("latin-1")] = value.decode("utf-8", "surrogateescape")

    def on_headers_complete(self) -> None:
        """The body begins."""
        if self._begun or self._connection.parser is None:
            return
        self.status = self._connection.parser.get_status_code()
        if self.status < 200:  # `100 Continue`, `103 Early Hints`: the reply comes after it
            self.headers, self.reason = {}, ""
        else:
            self._begun, self._held = True, 0

    def on_body(self, body: bytes) -> None:
        """A piece of it."""
        if not self.whole:
            self._pieces.append(body)
            self._held += len(body)

    def on_message_complete(self) -> None:
        """All of it is here."""
        if self._begun and not self.whole and self._connection.parser is not None:
            self.whole = True
            self.keep_alive = self._connection.parser.should_keep_alive()


class ProviderConnection(asyncio.Protocol):
    """One socket, and the reply that comes over it."""

    def __init__(self, pool: ProviderPool) -> None:
        self._pool = pool
        self._transport = cast("asyncio.Transport", None)
        self._reply: SocketReply | None = None
        self._paused = False
        self.parser: HttpResponseParser | None = None
        """Reads the reply that is under way. It refers back to it, so it is let go at the end."""
        self.idle_since = 0.0

    def ask(self, request: bytes) -> SocketReply:
        """Send a request."""
        self._reply = reply = SocketReply(self)
        self.parser = HttpResponseParser(reply)
        self._transport.write(request)
        return reply

    @property
    def usable(self) -> bool:
        """Whether a request can be sent over it."""
        return not self._transport.is_closing()

    def abort(self) -> None:
        """Close it now."""
        self._transport.abort()

    def resume(self) -> None:
        """There is room again for what the server sends."""
        if self._paused:
            self._paused = False
            if self.usable:
                self._transport.resume_reading()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It leads to the provider."""
        self._transport = cast("asyncio.Transport", transport)
        self._pool.opened(self)

    def data_received(self, data: bytes) -> None:
        """Bytes of the reply."""
        reply, parser = self._reply, self.parser
        if reply is None or parser is None:  # nobody has asked for anything
            self.abort()
            return
        try:
            reply.feed(data, parser)
        except Exception as error:  # noqa: BLE001 - httptools has a class for each flaw
            self._break(reply, error)
            return
        if reply.whole:
            self._finish(reply)
        elif reply.is_full and not self._paused:
            self._paused = True
            self._transport.pause_reading()
        reply.wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is closed, by whomever."""
        self._pool.lost(self)
        reply, self._reply, self.parser = self._reply, None, None
        if reply is not None:
            reply.lose_connection(exc)

    def _finish(self, reply: SocketReply) -> None:
        self._reply = self.parser = None
        sent = self.usable and not self._transport.get_write_buffer_size()
        if sent and reply.keep_alive and not reply.surplus:
            self.resume()
            self._pool.keep(self)
        else:
            self.abort()

    def _break(self, reply: SocketReply, error: Exception) -> None:
        """What comes is no HTTP. A reply that was whole before it stays so."""
        self._reply = self.parser = None
        self.abort()
        if reply.whole:
            reply.wake()
            return
        problem = BrokenReplyError(f"the reply cannot be read: {error}")
        problem.__cause__ = error
        reply.fail(problem)
