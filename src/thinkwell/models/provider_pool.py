"""The open connections to one provider, and how new ones are made.

One pool for each event loop. Unused connections are kept for a moment: a turn with tools asks its
model several times. Names are looked up once for all who ask at the same time, and of a host's
addresses the first that answers is taken (RFC 8305), so that a broken IPv6 route keeps nobody
waiting.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Sequence
from typing import Any, cast
from urllib.parse import SplitResult

import aiohappyeyeballs
import msgspec

from thinkwell.models.provider_errors import UnreachableError
from thinkwell.models.provider_socket import ProviderConnection

KEPT_IDLE = 15.0
"""Seconds an unused connection is kept open."""
ADDRESSES_KEPT = 10.0
"""Seconds for which the addresses of a host are not looked up again."""
NEXT_ADDRESS = 0.25
"""Seconds after which the host's next address is tried beside the first."""
USUAL_PORTS = {"http": 80, "https": 443}


class Destination(msgspec.Struct, frozen=True, kw_only=True):
    """Where connections lead."""

    host: str
    port: int
    tls: bool
    ca_file: str | None = None


def destination_of(url: SplitResult, ca_file: str | None) -> Destination | None:
    """Where a URL leads; None if it needs more than a plain connection and a plain path."""
    host = url.hostname or ""
    if url.scheme not in USUAL_PORTS or not host.isascii() or not host.strip("."):
        return None
    if "@" in url.netloc or url.fragment or host.endswith("."):
        return None
    if any(not "!" <= letter <= "~" for letter in url.path + url.query):
        return None
    port = url.port or USUAL_PORTS[url.scheme]
    return Destination(host=host, port=port, tls=url.scheme == "https", ca_file=ca_file)


class ProviderPool:
    """The connections to one destination, of one event loop."""

    def __init__(self, destination: Destination) -> None:
        self._destination = destination
        self._loop = asyncio.get_running_loop()
        self._open: set[ProviderConnection] = set()
        self._idle: dict[ProviderConnection, None] = {}
        """Unused ones, the newest last."""
        self._cleaning: asyncio.TimerHandle | None = None
        self._closed: asyncio.Future[None] | None = None
        self._resolving = asyncio.Lock()
        self._addresses: Sequence[tuple[Any, ...]] = ()
        self._resolved = float("-inf")
        self._tls: ssl.SSLContext | None = None

    def take(self) -> ProviderConnection | None:
        """One that is open and unused; the newest, so that the others can go."""
        while self._idle:
            connection, _ = self._idle.popitem()
            if connection.usable and connection.idle_since > self._loop.time() - KEPT_IDLE:
                return connection
            connection.abort()
        return None

    async def connect(self, limit: float | None) -> ProviderConnection:
        """A new one, made within `limit` seconds. Raises `UnreachableError`."""
        where = f"{self._destination.host}:{self._destination.port}"
        try:
            async with asyncio.timeout(limit):
                return await self._connect(self._destination)
        except TimeoutError as error:
            text = f"Cannot connect to {where}: no answer within {limit} seconds."
            raise UnreachableError(text) from error
        except OSError as error:
            raise UnreachableError(f"Cannot connect to {where}: {error}") from error

    async def close(self) -> None:
        """Close all of them, also those in use."""
        if self._cleaning is not None:
            self._cleaning.cancel()
        self._idle.clear()
        self._closed = self._loop.create_future()
        if self._open:
            for connection in tuple(self._open):
                connection.abort()
            await self._closed

    def opened(self, connection: ProviderConnection) -> None:
        """It leads to the provider now."""
        self._open.add(connection)

    def keep(self, connection: ProviderConnection) -> None:
        """It can serve another request."""
        if self._closed is not None:
            connection.abort()
            return
        connection.idle_since = self._loop.time()
        self._idle[connection] = None
        if self._cleaning is None:
            self._cleaning = self._loop.call_later(KEPT_IDLE, self._clean)

    def lost(self, connection: ProviderConnection) -> None:
        """It is closed."""
        self._open.discard(connection)
        self._idle.pop(connection, None)
        if self._closed is not None and not self._open and not self._closed.done():
            self._closed.set_result(None)

    def _clean(self) -> None:
        """Close what has not been used for long."""
        self._cleaning, until = None, self._loop.time() - KEPT_IDLE
        for connection in [each for each in self._idle if each.idle_since <= until]:
            del self._idle[connection]
            connection.abort()
        if self._idle:
            self._cleaning = self._loop.call_later(KEPT_IDLE, self._clean)

    async def _connect(self, destination: Destination) -> ProviderConnection:
        if destination.tls and self._tls is None:  # reads the certificates of the system
            self._tls = await asyncio.to_thread(_trusting, destination.ca_file)
        addresses = await self._resolve(destination)
        opened: socket.socket = await cast("Any", aiohappyeyeballs).start_connection(
            addresses, happy_eyeballs_delay=NEXT_ADDRESS, loop=self._loop
        )
        try:
            _, connection = await self._loop.create_connection(
                lambda: ProviderConnection(self),
                sock=opened,
                ssl=self._tls,
                server_hostname=destination.host if destination.tls else None,
            )
        except BaseException:
            opened.close()
            raise
        return connection

    async def _resolve(self, destination: Destination) -> Sequence[tuple[Any, ...]]:
        async with self._resolving:  # a thousand agents that start at once ask once
            if self._loop.time() > self._resolved + ADDRESSES_KEPT:
                self._addresses = await self._loop.getaddrinfo(
                    destination.host, destination.port, type=socket.SOCK_STREAM
                )
                self._resolved = self._loop.time()
            return self._addresses


def _trusting(ca_file: str | None) -> ssl.SSLContext:
    """Trusts the system's certificates, or those of the file instead."""
    context = ssl.create_default_context(cafile=ca_file)
    context.set_alpn_protocols(["http/1.1"])
    return context
