"""The native adapter for OpenAI-compatible chat completions, over aiohttp and msgspec.

Owns the connection: one client session per event loop (shared by all calls of this model object,
closed by `aclose`), HTTP errors, aborts and cut connections. `openai_chat_request.py` builds the
body and `openai_chat_stream.py` reads the answer. An abort closes the response at once, whether the
call still waits for headers or is in the middle of the answer, and then the stream simply ends.
aiohttp is imported on first use, in a thread.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

from thinkwell.core import json
from thinkwell.core.clock import SystemClock
from thinkwell.core.errors import ConfigurationError, ModelError
from thinkwell.core.signal import AbortSignal
from thinkwell.models.base import Failure, ModelEvent, ModelRequest
from thinkwell.models.openai_chat_request import build_body
from thinkwell.models.openai_chat_stream import ChatStream, is_retryable, stream_error
from thinkwell.models.retry_after import read_retry_after

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession, ClientTimeout
    from yarl import URL

OPENAI_URL = "https://api.openai.com/v1"
READ_TIMEOUT = 600.0
"""Seconds of silence after which a connection counts as dead, whoever waits for it. An answer must
begin within them. A stream is looked at every so often: it is cut after one to two times as long.
"""
DRAIN_TIMEOUT = 0.1
_BODY_LIMIT = 2_000
_READ_BUFFER = 256 * 1024


class OpenAIChatModel:
    """A model behind an OpenAI-compatible chat-completions endpoint."""

    supports_response_format = True
    """Its text can be bound to a JSON schema."""

    def __init__(
        self,
        model_id: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        provider: str = "openai-chat",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """`base_url` and `api_key` default to `OPENAI_BASE_URL` and `OPENAI_API_KEY`."""
        self._model_id = model_id
        self._provider = provider
        self._base_url = (base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI_URL).rstrip("/")
        self._is_openai = self._base_url == OPENAI_URL
        key = api_key if api_key is not None else os.environ.get("OPENAI_API_KEY", "")
        if self._is_openai and not key:
            raise ConfigurationError(
                f"The model {model_id!r} needs a key. Set OPENAI_API_KEY, pass api_key=..., "
                "or point OPENAI_BASE_URL at a server that needs none."
            )
        self._headers = {
            "Content-Type": "application/json",
            "Accept": "text/event-stream",
            # A compressed stream arrives in lumps: deltas would wait for the compressor's window.
            "Accept-Encoding": "identity",
            **({"Authorization": f"Bearer {key}"} if key else {}),
            **(headers or {}),
        }
        # A session belongs to the loop it was made in, and one model object may serve several
        # loops (tests, threads).
        self._sessions: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[ClientSession, URL]] = (
            WeakKeyDictionary()
        )

    @property
    def provider(self) -> str:
        """The provider's name."""
        return self._provider

    @property
    def model_id(self) -> str:
        """The provider's name for the model."""
        return self._model_id

    @property
    def base_url(self) -> str:
        """Where the requests go."""
        return self._base_url

    async def aclose(self) -> None:
        """Close the connections of the running event loop. The model can be used again."""
        found = self._sessions.pop(asyncio.get_running_loop(), None)
        if found is not None:
            await found[0].close()

    async def stream(self, request: ModelRequest, signal: AbortSignal) -> AsyncIterator[ModelEvent]:
        """Run one call. See `base.py` for the contract."""
        answer: _Response | None = None
        failure: Exception | None = None
        try:
            answer = await self._open(request, signal)
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

    async def _open(self, request: ModelRequest, signal: AbortSignal) -> _Response | None:
        """The answer once its headers are here; None if the call was aborted first."""
        if signal.aborted:
            return None
        body, warnings = build_body(
            request, model_id=self._model_id, provider=self._provider, is_openai=self._is_openai
        )
        # Imports take a tenth of a second, which other agents would have to wait for.
        if "aiohttp" not in sys.modules:
            await asyncio.to_thread(import_module, "aiohttp")
        response = await self._post(json.dump_bytes(body), request, signal)
        return None if response is None else _Response(response, self._provider, warnings, signal)

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
        from aiohttp import ClientError

        if not isinstance(error, ClientError | OSError | TimeoutError):
            return error
        problem = ModelError(
            f"The connection to {self._provider} at {self._base_url} failed: "
            f"{error or type(error).__name__}",
            provider=self._provider,
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

            session = ClientSession(
                # A thousand agents stream at once: a limit here would make the others wait for a
                # free connection.
                connector=TCPConnector(limit=0),
                cookie_jar=DummyCookieJar(),
                read_bufsize=_READ_BUFFER,
                **_environment_proxy(self._base_url),
            )
            found = self._sessions[loop] = session, URL(f"{self._base_url}/chat/completions")
        return found


@cache
def _timeout(connect: float | None) -> ClientTimeout:
    from aiohttp import ClientTimeout

    # No limit for the whole: a long reply is no failure. How long silence may last is the turn's
    # to say. None for a read either: aiohttp sets a timer anew for whatever arrives (`_listen`).
    return ClientTimeout(total=None, sock_connect=connect)


def _environment_proxy(url: str) -> dict[str, Any]:
    """What trust_env=True would find, read once: aiohttp asks a thread twice per request for it."""
    from urllib.request import getproxies, proxy_bypass

    from aiohttp import BasicAuth
    from yarl import URL

    target = URL(url)
    found = getproxies().get(target.scheme)
    if not found or not target.host or proxy_bypass(target.host):
        return {}
    proxy = URL(found)
    return {"proxy": proxy.with_user(None), "proxy_auth": BasicAuth.from_url(proxy)}


class _Response:
    """One response being read. An abort closes it at once, also under a pending read."""

    def __init__(
        self,
        response: ClientResponse,
        provider: str,
        warnings: tuple[str, ...],
        signal: AbortSignal,
    ) -> None:
        self._response = response
        self._provider = provider
        self._warnings = warnings
        self._state = ChatStream(provider)
        self._over = False
        # Some servers report an error with the status 200 and a plain JSON body instead of a
        # stream.
        self._refused = response.status >= 400 or response.content_type == "application/json"
        self._dispose = signal.add_listener(lambda _: response.close())
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
        state = self._state
        while not state.done and (chunk := await self._response.content.readany()):
            self._silent = False
            if events := state.feed(chunk):
                self._over = state.failed
                return events
        self._over = True
        await self._drain()
        return state.end(dict(self._response.headers), self._warnings)

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
        status = self._response.status
        text = (await self._response.read()).decode(errors="replace")
        detail = _error_detail(text)
        if status < 400:
            return stream_error(self._provider, detail or f"no stream but {text[:200]!r}")
        reason = (
            cast("dict[str, Any]", detail).get("message") if isinstance(detail, dict) else detail
        )
        return ModelError(
            f"{self._provider} answered {status}: {reason or text[:200] or self._response.reason}",
            provider=self._provider,
            status=status,
            body=text[:_BODY_LIMIT],
            retryable=is_retryable(status),
            retry_after=read_retry_after(
                self._response.headers.get("Retry-After"), SystemClock().now()
            ),
        )


def _error_detail(text: str) -> object:
    try:
        parsed = json.loads(text)
    except ValueError:
        return None
    return cast("dict[str, object]", parsed).get("error") if isinstance(parsed, dict) else None
