"""Streamed HTTP calls to a provider, whatever protocol it speaks.

Owns the connections: one client session per event loop (shared by all calls of a model object,
closed by `aclose`), HTTP errors, aborts and cut connections. What the request says and how the
answer is read belongs to the adapter: it hands in the body and an `AnswerReader`. An abort closes
the response at once, whether the call still waits for headers or is in the middle of the answer,
and then the stream simply ends. aiohttp is imported on first use, in a thread.
"""

from __future__ import annotations

import asyncio
import ssl
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast
from weakref import WeakKeyDictionary

import msgspec

from thinkwell.core import json
from thinkwell.core.clock import SystemClock
from thinkwell.core.errors import ModelError
from thinkwell.core.signal import AbortSignal
from thinkwell.models.base import Failure, ModelEvent, ModelRequest
from thinkwell.models.provider_errors import (
    BODY_LIMIT,
    endless,
    is_retryable,
    refusal_hint,
    stream_error,
)
from thinkwell.models.retry_after import retry_hint
from thinkwell.models.sse import EndlessLineError

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession, ClientTimeout
    from yarl import URL

READ_TIMEOUT = 600.0
"""Seconds of silence after which a connection counts as dead, whoever waits for it. An answer must
begin within them. A stream is looked at every so often: it is cut after one to two times as long.
"""
DRAIN_TIMEOUT = 0.1
_READ_BUFFER = 256 * 1024


class AnswerReader(Protocol):
    """Turns the bytes of one answer into model events. Pure; made anew for every call."""

    done: bool
    """Nothing more needs to be read."""
    failed: bool
    """The terminal event has been given by `feed`."""

    def feed(self, chunk: bytes) -> list[ModelEvent]:
        """The events of one socket chunk."""
        ...

    def end(self, headers: Mapping[str, str], warnings: tuple[str, ...]) -> list[ModelEvent]:
        """The last events, once the stream is over; the final one is terminal."""
        ...


BodyBuilder: TypeAlias = "Callable[[ModelRequest], tuple[Mapping[str, Any], tuple[str, ...]]]"
"""Makes the JSON body of a request, and warnings about what the provider cannot be told."""


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Where a model is reached, and how."""

    provider: str
    base_url: str
    path: str
    headers: Mapping[str, str]
    key_variable: str = ""
    """The environment variable that holds the key, for the text of an error."""
    url_variable: str = ""
    """The one that moves the provider elsewhere."""
    proxy: str | None = None
    """None: what the environment says."""
    ca_file: str | None = None
    """Certificates to trust instead of the system's, as a PEM file."""


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
        answer: _Response | None = None
        failure: Exception | None = None
        try:
            body, warnings = build(request)
            response = await self._open(body, request, signal)
            if response is not None:
                answer = _Response(response, self.endpoint, reader, warnings)
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
            async with asyncio.timeout(READ_TIMEOUT):
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


class _Response:
    """One response being read. An abort closes it at once, also under a pending read."""

    def __init__(
        self,
        response: ClientResponse,
        endpoint: Endpoint,
        reader: AnswerReader,
        warnings: tuple[str, ...],
    ) -> None:
        self._response = response
        self._endpoint = endpoint
        self._warnings = warnings
        self._reader = reader
        self._over = False
        # Some servers report an error with the status 200 and a plain JSON body instead of a
        # stream.
        self._refused = response.status >= 400 or response.content_type == "application/json"

    def watch(self, signal: AbortSignal) -> None:
        """Close the response when `signal` aborts, or when nothing comes for long."""
        self._dispose = signal.add_listener(lambda _: self._response.close())
        self._listen()

    def _listen(self) -> None:
        """Cut the connection if nothing comes for long. One timer for all: it looks back."""
        loop, self._silent = asyncio.get_running_loop(), True
        self._timer = loop.call_later(READ_TIMEOUT, self._look_back)

    def _look_back(self) -> None:
        if self._silent:
            self._response.close()  # the read raises
        else:
            self._listen()

    async def read(self) -> list[ModelEvent]:
        """The next events; the last batch ends with the terminal one, then there are none."""
        if self._over:
            return []
        if self._refused:
            self._over = True
            return [Failure(await self._refusal())]
        reader = self._reader
        while not reader.done and (chunk := await self._response.content.readany()):
            self._silent = False
            try:
                events = reader.feed(chunk)
            except EndlessLineError as error:
                self._over = True
                self._response.close()
                return [Failure(endless(self._endpoint.provider, error))]
            if events:
                self._over = reader.failed
                return events
        self._over = True
        await self._drain()
        return reader.end(dict(self._response.headers), self._warnings)

    def close(self) -> None:
        """Give the connection back, or cut it if the answer was not read to its end."""
        self._timer.cancel()
        self._dispose()
        self._response.release()

    async def _drain(self) -> None:
        """Read past the end marker, so that the connection can serve the next call."""
        if self._response.content.at_eof():
            return  # as a rule it has come along
        with suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_TIMEOUT):
                while await self._response.content.readany():
                    pass

    async def _refusal(self) -> ModelError:
        status, endpoint = self._response.status, self._endpoint
        text = (await self._response.read()).decode(errors="replace")
        detail = _error_detail(text)
        if status < 400:
            return stream_error(endpoint.provider, detail or f"no stream but {text[:200]!r}")
        fields = cast("dict[str, Any]", detail) if isinstance(detail, dict) else {"message": detail}
        reason = str(fields.get("message") or text[:200] or self._response.reason or "")
        hint = refusal_hint(status, endpoint.key_variable, endpoint.url_variable, text)
        said = f"{reason.rstrip('.')}. {hint}" if hint else reason
        return ModelError(
            f"{endpoint.provider} answered {status}: {said}",
            provider=endpoint.provider,
            status=status,
            body=text[:BODY_LIMIT],
            code=str(fields.get("code") or fields.get("type") or ""),
            retryable=is_retryable(status),
            retry_after=retry_hint(self._response.headers, SystemClock().now()),
        )


def _error_detail(text: str) -> object:
    try:
        parsed = json.loads(text)
    except ValueError:
        return None
    if not isinstance(parsed, dict):
        return None
    found = cast("dict[str, object]", parsed)
    # Servers that follow the protocol loosely put the text where they like.
    return found.get("error") or found.get("detail") or found.get("message")
