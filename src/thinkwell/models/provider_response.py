"""One HTTP response of a provider being read: its events, its refusal, its silence, its abort."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Protocol, cast

import msgspec

from thinkwell.core import json
from thinkwell.core.clock import SystemClock
from thinkwell.core.errors import ModelError
from thinkwell.core.signal import AbortSignal
from thinkwell.models.base import Failure, ModelEvent
from thinkwell.models.provider_errors import (
    BODY_LIMIT,
    endless,
    is_retryable,
    refusal_hint,
    stream_error,
)
from thinkwell.models.retry_after import retry_hint
from thinkwell.models.sse import EndlessLineError

READ_TIMEOUT = 600.0
"""Seconds of silence after which a connection counts as dead, whoever waits for it. An answer must
begin within them. A stream is looked at every so often: it is cut after one to two times as long.
"""
DRAIN_TIMEOUT = 0.1
MOST_OF_A_REFUSAL = 64 * 1024


class HttpReply(Protocol):
    """An HTTP response whose headers are here, over whatever connection."""

    @property
    def status(self) -> int:
        """Of the response."""
        ...

    @property
    def reason(self) -> str | None:
        """The text beside the status."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Of the response."""
        ...

    @property
    def content_type(self) -> str:
        """The media type, without its parameters."""
        ...

    @property
    def at_end(self) -> bool:
        """Whether there is nothing left to read."""
        ...

    async def read(self) -> bytes:
        """Whatever has come, at least one byte; nothing at the end. Raises if it was cut."""
        ...

    def close(self) -> None:
        """Cut the connection; a pending read raises."""
        ...

    def release(self) -> None:
        """Give the connection back, or cut it if not all has come."""
        ...


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


class ProviderResponse:
    """One response being read. An abort closes it at once, also under a pending read."""

    def __init__(
        self,
        response: HttpReply,
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
        while not reader.done and (chunk := await self._response.read()):
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
        if self._response.at_end:
            return  # as a rule it has come along
        with suppress(Exception):  # the answer is whole: a cut behind it changes nothing
            async with asyncio.timeout(DRAIN_TIMEOUT):
                while await self._response.read():
                    pass

    async def _beginning(self) -> bytes:
        """As much of the body as an error needs: nobody promises that it ends."""
        body = b""
        while len(body) < MOST_OF_A_REFUSAL and (chunk := await self._response.read()):
            body += chunk
        return body[:MOST_OF_A_REFUSAL]

    async def _refusal(self) -> ModelError:
        status, endpoint = self._response.status, self._endpoint
        text = (await self._beginning()).decode(errors="replace")
        detail = _error_detail(text)
        if status < 400:
            return stream_error(endpoint.provider, detail or f"no stream but {text[:200]!r}")
        fields = cast("dict[str, Any]", detail) if isinstance(detail, dict) else {"message": detail}
        reason = str(fields.get("message") or text[:200] or self._response.reason or "")
        names = endpoint.key_variable, endpoint.url_variable
        hint = refusal_hint(endpoint.provider, status, names, text)
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
