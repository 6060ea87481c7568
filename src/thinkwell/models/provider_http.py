"""Streamed HTTP calls to a provider, whatever protocol it speaks.

Owns the connections: one client session per event loop (shared by all calls of a model object,
closed by `aclose`), aborts and cut connections. `provider_response.py` reads what comes back. What
the request says and how the answer is read belongs to the adapter: it hands in the body and an
`AnswerReader`. An abort closes the response at once, whether the call still waits for headers or is
in the middle of the answer, and then the stream simply ends. aiohttp is imported on first use, in a
thread.
"""

from __future__ import annotations

import asyncio
import ssl
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakKeyDictionary

from thinkwell.core import json
from thinkwell.core.errors import ModelError
from thinkwell.core.signal import AbortSignal
from thinkwell.models import provider_response
from thinkwell.models.base import Failure, ModelEvent, ModelRequest
from thinkwell.models.provider_response import AnswerReader, Endpoint, ProviderResponse

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession, ClientTimeout
    from yarl import URL

_READ_BUFFER = 256 * 1024


BodyBuilder: TypeAlias = "Callable[[ModelRequest], tuple[Mapping[str, Any], tuple[str, ...]]]"
"""Makes the JSON body of a request, and warnings about what the provider cannot be told."""


class ProviderClient:
    """The connections to one endpoint."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._headers = {
            "Content-Type": "application/json",
            "Accept": "text/event-stream",
            # A compressed stream arrives in lumps: deltas would wait for the compressor's window.
            "Accept-Encoding": "identity",
            **endpoint.headers,
        }
        # A session belongs to the loop it was made in, and one model object may serve several
        # loops (tests, threads).
        self._sessions: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[ClientSession, URL]] = (
            WeakKeyDictionary()
        )

    async def aclose(self) -> None:
        """Close the connections of the running event loop. The client can be used again."""
        found = self._sessions.pop(asyncio.get_running_loop(), None)
        if found is not None:
            await found[0].close()

    async def stream(
        self,
        build: BodyBuilder,
        reader: AnswerReader,
        request: ModelRequest,
        signal: AbortSignal,
    ) -> AsyncIterator[ModelEvent]:
        """Send one request and yield the events of its answer, as `base.py` asks."""
        answer: ProviderResponse | None = None
        failure: Exception | None = None
        try:
            body, warnings = build(request)
            response = await self._open(body, request, signal)
            if response is not None:
                answer = ProviderResponse(response, self.endpoint, reader, warnings)
                answer.watch(signal)
            while answer is not None and (events := await answer.read()):
                for event in events:
                    if signal.aborted:
                        return
                    yield event
        except Exception as error:  # noqa: BLE001 - told as the terminal event
            failure = self._wrap(error)
        finally:
            if answer is not None:
                answer.close()
        if failure is not None and not signal.aborted:
            yield Failure(failure)

    async def _open(
        self, body: Mapping[str, Any], request: ModelRequest, signal: AbortSignal
    ) -> ClientResponse | None:
        """The response once its headers are here; None if the call was aborted first."""
        if signal.aborted:
            return None
        # Imports take a tenth of a second, which other agents would have to wait for.
        if "aiohttp" not in sys.modules:
            await asyncio.to_thread(import_module, "aiohttp")
        return await self._post(json.dump_bytes(body), request, signal)

    async def _post(
        self, body: bytes, request: ModelRequest, signal: AbortSignal
    ) -> ClientResponse | None:
        """Send the request and wait for headers, which can take minutes; None if aborted first."""
        task = asyncio.current_task()
        stops = 0

        def stop(_reason: str) -> None:
            nonlocal stops
            stops += task is not None and task.cancel()

        session, url = self._session()
        dispose = signal.add_listener(stop)
        try:
            async with asyncio.timeout(provider_response.READ_TIMEOUT):
                return await session.post(
                    url,
                    data=body,
                    headers={**self._headers, **request.headers},
                    timeout=_timeout(request.connect_timeout),
                )
        except asyncio.CancelledError:
            # Our own stop is taken back; whoever else cancelled this task is heard.
            if stops and task is not None and not task.uncancel():
                return None
            raise
        finally:
            dispose()

    def _wrap(self, error: Exception) -> Exception:
        from aiohttp import ClientConnectorError, ClientError

        if not isinstance(error, ClientError | OSError | TimeoutError):
            return error
        endpoint = self.endpoint
        moved = endpoint.url_variable and isinstance(error, ClientConnectorError)
        hint = f" Is {endpoint.url_variable} right?" if moved else ""
        problem = ModelError(
            f"The connection to {endpoint.provider} at {endpoint.base_url} failed: "
            f"{error or type(error).__name__}{hint}",
            provider=endpoint.provider,
            retryable=True,
            cut=True,
        )
        problem.__cause__ = error
        return problem

    def _session(self) -> tuple[ClientSession, URL]:
        """The connections of this loop, and where requests go, parsed once."""
        loop = asyncio.get_running_loop()
        found = self._sessions.get(loop)
        if found is None or found[0].closed:
            from aiohttp import ClientSession, DummyCookieJar, TCPConnector
            from yarl import URL

            endpoint = self.endpoint
            trust = True if endpoint.ca_file is None else _trusting(endpoint.ca_file)
            session = ClientSession(
                # A thousand agents stream at once: a limit here would make the others wait for a
                # free connection.
                connector=TCPConnector(limit=0, ssl=trust),
                cookie_jar=DummyCookieJar(),
                read_bufsize=_READ_BUFFER,
                **_proxy(endpoint),
            )
            url = URL(endpoint.base_url + endpoint.path)
            found = self._sessions[loop] = session, url
        return found


def _trusting(ca_file: str) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=ca_file)


@cache
def _timeout(connect: float | None) -> ClientTimeout:
    from aiohttp import ClientTimeout

    # No limit for the whole: a long reply is no failure. How long silence may last is the turn's
    # to say. None for a read either: aiohttp sets a timer anew for whatever arrives (`_listen`).
    return ClientTimeout(total=None, sock_connect=connect)


def _proxy(endpoint: Endpoint) -> dict[str, Any]:
    """The proxy given, or what trust_env=True would find, read once.

    With trust_env aiohttp asks a thread twice per request for it.
    """
    from urllib.request import getproxies, proxy_bypass

    from aiohttp import BasicAuth
    from yarl import URL

    target = URL(endpoint.base_url)
    found = endpoint.proxy
    if found is None and target.host and not proxy_bypass(target.host):
        found = getproxies().get(target.scheme)
    if not found:
        return {}
    proxy = URL(found)
    return {"proxy": proxy.with_user(None), "proxy_auth": BasicAuth.from_url(proxy)}
