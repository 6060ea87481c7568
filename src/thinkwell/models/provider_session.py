"""Calls to a provider through aiohttp: behind a proxy, through redirects, with compressed bodies.

What a plain call needs is in `provider_socket.py`, for a fraction of the cost. aiohttp is imported
on first use, in a thread: that takes a tenth of a second, which other agents would have to wait
for.
"""

from __future__ import annotations

import asyncio
import ssl
import sys
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING
from urllib.request import getproxies, proxy_bypass
from weakref import WeakKeyDictionary

from thinkwell.models import provider_response
from thinkwell.models.provider_response import Endpoint

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession, ClientTimeout
    from yarl import URL

_READ_BUFFER = 256 * 1024


def proxy_of(endpoint: Endpoint, scheme: str, host: str) -> str | None:
    """The proxy given, or what trust_env=True would find, read once: with that, aiohttp asks a
    thread twice per request for it.
    """
    if endpoint.proxy is not None:
        return endpoint.proxy
    return None if proxy_bypass(host) else getproxies().get(scheme)


class SessionReply:
    """A response of aiohttp, read as any other reply of a provider."""

    __slots__ = ("_response",)

    def __init__(self, response: ClientResponse) -> None:
        self._response = response

    @property
    def status(self) -> int:
        """Of the response."""
        return self._response.status

    @property
    def reason(self) -> str | None:
        """The text beside the status."""
        return self._response.reason

    @property
    def headers(self) -> Mapping[str, str]:
        """Of the response."""
        return self._response.headers

    @property
    def content_type(self) -> str:
        """The media type, without its parameters."""
        return self._response.content_type

    @property
    def at_end(self) -> bool:
        """Whether there is nothing left to read."""
        return self._response.content.at_eof()

    async def read(self) -> bytes:
        """Whatever has come, at least one byte; nothing at the end."""
        return await self._response.content.readany()

    def close(self) -> None:
        """Cut it."""
        self._response.close()

    def release(self) -> None:
        """Give the connection back, or cut it if the reply was not read to its end."""
        self._response.release()


class ProviderSessions:
    """The sessions to one endpoint, one for each event loop that calls it."""

    def __init__(self, endpoint: Endpoint, proxy: str | None) -> None:
        self._endpoint = endpoint
        self._proxy = proxy
        # A session belongs to the loop it was made in, and one model object may serve several
        # loops (tests, threads).
        self._sessions: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[ClientSession, URL]] = (
            WeakKeyDictionary()
        )

    async def close(self) -> None:
        """Close the session of the running event loop."""
        found = self._sessions.pop(asyncio.get_running_loop(), None)
        if found is not None:
            await found[0].close()

    async def post(
        self, body: bytes, headers: Mapping[str, str], connect: float | None
    ) -> SessionReply:
        """Send a request and wait for the headers of its reply, which can take minutes."""
        return await self.send("POST", "", headers, connect, body=body)

    async def send(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        connect: float | None,
        *,
        body: bytes | None = None,
    ) -> SessionReply:
        """The same for any method, and for what lies below the address of the requests."""
        if "aiohttp" not in sys.modules:
            await asyncio.to_thread(import_module, "aiohttp")
        session, url = self._session()
        where = type(url)(f"{url}{path}", encoded=True) if path else url
        async with asyncio.timeout(provider_response.READ_TIMEOUT):
            response = await session.request(
                method, where, data=body, headers=headers, timeout=_timeout(connect)
            )
        return SessionReply(response)

    def _session(self) -> tuple[ClientSession, URL]:
        """The session of this loop, and where requests go, parsed once."""
        loop = asyncio.get_running_loop()
        found = self._sessions.get(loop)
        if found is None or found[0].closed:
            from aiohttp import ClientSession, DummyCookieJar, TCPConnector
            from yarl import URL

            endpoint = self._endpoint
            trust = True if endpoint.ca_file is None else _trusting(endpoint.ca_file)
            session = ClientSession(
                # A thousand agents stream at once: a limit here would make the others wait for a
                # free connection.
                connector=TCPConnector(limit=0, ssl=trust),
                cookie_jar=DummyCookieJar(),
                read_bufsize=_READ_BUFFER,
                proxy=self._proxy or None,
            )
            url = URL(endpoint.base_url + endpoint.path)
            found = self._sessions[loop] = session, url
        return found


def is_failure(error: Exception) -> bool:
    """Whether aiohttp says that a call failed; False as long as nobody has needed it."""
    if "aiohttp" not in sys.modules:
        return False
    from aiohttp import ClientError

    return isinstance(error, ClientError)


def is_unreachable(error: Exception) -> bool:
    """Whether aiohttp could not connect."""
    if "aiohttp" not in sys.modules:
        return False
    from aiohttp import ClientConnectorError

    return isinstance(error, ClientConnectorError)


def _trusting(ca_file: str) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=ca_file)


@cache
def _timeout(connect: float | None) -> ClientTimeout:
    from aiohttp import ClientTimeout

    # No limit for the whole: a long reply is no failure. How long silence may last is the turn's
    # to say. None for a read either: aiohttp sets a timer anew for whatever arrives.
    return ClientTimeout(total=None, sock_connect=connect)
