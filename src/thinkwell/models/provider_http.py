"""Streamed HTTP calls to a provider, whatever protocol it speaks.

A plain call goes over a connection of our own (`provider_pool.py`). Behind a proxy, and once a
provider has redirected a call or compressed its reply, aiohttp makes the calls
(`provider_session.py`). `provider_response.py` reads what comes back. What the request says and how
the reply is read belongs to the adapter: it hands in the body and an `AnswerReader`. An abort
closes the connection at once, whether the call still waits for headers or is in the middle of the
reply, and then the stream simply ends.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar
from urllib.parse import SplitResult, urlsplit
from weakref import WeakKeyDictionary

from thinkwell.core import json
from thinkwell.core.errors import ModelError
from thinkwell.core.signal import AbortSignal
from thinkwell.models import provider_response
from thinkwell.models.base import Failure, ModelEvent, ModelRequest
from thinkwell.models.provider_errors import UnreachableError
from thinkwell.models.provider_response import AnswerReader, Endpoint, HttpReply, ProviderResponse
from thinkwell.models.provider_session import (
    ProviderSessions,
    is_failure,
    is_unreachable,
    proxy_of,
)

if TYPE_CHECKING:
    from thinkwell.models.provider_pool import ProviderPool
    from thinkwell.models.provider_socket import SocketReply

T = TypeVar("T")

BodyBuilder: TypeAlias = "Callable[[ModelRequest], tuple[Mapping[str, Any], tuple[str, ...]]]"
"""Makes the JSON body of a request, and warnings about what the provider cannot be told."""


_USUAL_PORTS = {"http": ":80", "https": ":443"}


class ProviderClient:
    """The connections to one endpoint."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._url = urlsplit(endpoint.base_url + endpoint.path)
        self._headers = {
            "User-Agent": "thinkwell",
            "Content-Type": "application/json",
            "Accept": "text/event-stream",
            # A compressed stream arrives in lumps: deltas would wait for the compressor's window.
            "Accept-Encoding": "identity",
            **endpoint.headers,
        }
        proxy = proxy_of(endpoint, self._url.scheme, self._url.hostname or "")
        self._sessions = ProviderSessions(endpoint, proxy)
        self._is_plain = not proxy
        """Whether nothing is known yet that needs more than a plain connection."""
        self._head = b""
        """The head of every request, once one was made."""
        # Connections belong to the loop they were made in, and one model object may serve several
        # loops (tests, threads).
        self._pools: WeakKeyDictionary[asyncio.AbstractEventLoop, ProviderPool] = (
            WeakKeyDictionary()
        )

    async def aclose(self) -> None:
        """Close the connections of the running event loop. The client can be used again."""
        pool = self._pools.pop(asyncio.get_running_loop(), None)
        if pool is not None:
            await pool.close()
        await self._sessions.close()

    async def stream(
        self,
        build: BodyBuilder | None,
        reader: AnswerReader,
        request: ModelRequest,
        signal: AbortSignal,
        *,
        path: str = "",
    ) -> AsyncIterator[ModelEvent]:
        """Send one request and yield the events of its reply, as `base.py` asks.

        Without `build` nothing is asked: the answer is read that is kept under `path`, which goes
        behind the address of the requests.
        """
        answer: ProviderResponse | None = None
        failure: Exception | None = None
        try:
            warnings: tuple[str, ...] = ()
            if build is None:
                reply = await self._read_kept(path, request, signal)
            else:
                body, warnings = build(request)
                reply = await self._open(json.dump_bytes(body), request, signal)
            if reply is not None:
                answer = ProviderResponse(reply, self.endpoint, reader, warnings)
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
        self, body: bytes, request: ModelRequest, signal: AbortSignal
    ) -> HttpReply | None:
        """The reply once its headers are here; None if the call was aborted first."""
        if signal.aborted:
            return None
        if self._is_plain and (pool := await self._pool()) is not None:
            reply = await self._ask(pool, body, request, signal)
            if reply is None or reply.is_plain:
                return reply
            # Nothing of it was read: it is asked for again by somebody who can follow it.
            reply.close()
            self._is_plain = False
        headers = {**self._headers, **request.headers}
        return await _unless_aborted(
            self._sessions.post(body, headers, request.connect_timeout), signal
        )

    async def _read_kept(
        self, path: str, request: ModelRequest, signal: AbortSignal
    ) -> HttpReply | None:
        if signal.aborted:
            return None
        headers = {**self._headers, **request.headers}
        reading = self._sessions.send("GET", path, headers, request.connect_timeout)
        return await _unless_aborted(reading, signal)

    async def call(self, method: str, path: str, *, limit: float) -> tuple[int, Any]:
        """A short call beside the answers: its status, and what its JSON body says if it has one.

        Raises `ModelError` if nobody answers within `limit` seconds.
        """
        try:
            async with asyncio.timeout(limit):
                reply = await self._sessions.send(method, path, self._headers, limit)
                body = b""
                try:
                    while piece := await reply.read():
                        body += piece
                finally:
                    reply.release()
        except Exception as error:
            raise self._wrap(error) from error
        try:
            return reply.status, json.loads(body)
        except ValueError:
            return reply.status, None

    async def _ask(
        self, pool: ProviderPool, body: bytes, request: ModelRequest, signal: AbortSignal
    ) -> SocketReply | None:
        """Send the request and wait for headers, which can take minutes; None if aborted first."""
        connection = pool.take()
        if connection is None:
            connecting = pool.connect(request.connect_timeout)
            connection = await _unless_aborted(connecting, signal)
            if connection is None:
                return None
        reply = connection.ask(b"%b%d\r\n\r\n%b" % (self._head_for(request), len(body), body))
        silent = TimeoutError("the provider did not begin to answer")
        loop, limit = asyncio.get_running_loop(), provider_response.READ_TIMEOUT
        timer = loop.call_later(limit, reply.close, silent)
        dispose = signal.add_listener(lambda _: reply.close())
        try:
            await reply.begun()
        except BaseException as error:
            reply.close()
            if signal.aborted and isinstance(error, OSError):
                return None
            raise
        finally:
            timer.cancel()
            dispose()
        return reply

    def _head_for(self, request: ModelRequest) -> bytes:
        if request.headers:
            return _head_of(self._url, _merged(self._headers, request.headers))
        if not self._head:
            self._head = _head_of(self._url, self._headers)
        return self._head

    async def _pool(self) -> ProviderPool | None:
        """The plain connections of this loop; None if they cannot lead there."""
        pool = self._pools.get(loop := asyncio.get_running_loop())
        if pool is None:
            # Imports take a while, which other agents would have to wait for.
            if "thinkwell.models.provider_pool" not in sys.modules:
                await asyncio.to_thread(import_module, "thinkwell.models.provider_pool")
            from thinkwell.models.provider_pool import ProviderPool, destination_of

            destination = destination_of(self._url, self.endpoint.ca_file)
            if destination is None:
                self._is_plain = False
                return None
            pool = self._pools.get(loop) or ProviderPool(destination)
            self._pools[loop] = pool
        return pool

    def _wrap(self, error: Exception) -> Exception:
        if not (isinstance(error, OSError | TimeoutError) or is_failure(error)):
            return error
        endpoint = self.endpoint
        unreachable = isinstance(error, UnreachableError) or is_unreachable(error)
        moved = endpoint.url_variable and unreachable
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


def _head_of(url: SplitResult, headers: Mapping[str, str]) -> bytes:
    """The head of a POST up to the value of its `Content-Length`, which stands last."""
    query = f"?{url.query}" if url.query else ""
    lines = [
        f"POST {url.path or '/'}{query} HTTP/1.1",
        f"Host: {url.netloc.removesuffix(_USUAL_PORTS[url.scheme])}",
        *(f"{name}: {value}" for name, value in headers.items()),
        "Content-Length: ",
    ]
    for line in lines:
        if any(letter in line for letter in "\r\n\0"):
            raise ValueError("a header for the provider holds a line break or a null byte")
    return "\r\n".join(lines).encode()


def _merged(usual: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """Headers in which `own` take the place of usual ones of the same name, whatever its case."""
    taken = {name.lower() for name in own}
    return {**{n: v for n, v in usual.items() if n.lower() not in taken}, **own}


async def _unless_aborted(work: Awaitable[T], signal: AbortSignal) -> T | None:
    """What `work` gives; None if the signal aborts first, which cancels it."""
    task = asyncio.current_task()
    stops = 0

    def stop(_reason: str) -> None:
        nonlocal stops
        stops += task is not None and task.cancel()

    dispose = signal.add_listener(stop)
    try:
        return await work
    except asyncio.CancelledError:
        # Our own stop is taken back; whoever else cancelled this task is heard.
        if stops and task is not None and not task.uncancel():
            return None
        raise
    finally:
        dispose()
