"""An HTTP request for one agent and its answer, as they cross from the edge to the host."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import msgspec

from thinkwell.core import json
from thinkwell.core.principal import Principal

PLAIN = "text/plain;charset=UTF-8"
RETRY_LATER: Mapping[str, str] = {"retry-after": "5"}
"""The header of an answer that will be another one in a few seconds."""


class HttpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request for one agent. Header names are lower-case."""

    method: str
    path: str
    """What follows the agent's address (`get-messages`, or empty)."""
    query: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    headers: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    body: bytes = b""
    principal: Principal | None = None
    """Who asks, as the app's `auth` said."""
    client: str | None = None
    """The address it came from, as far as the server knows it."""

    def json(self) -> Any:
        """The body as JSON. Raises `ValueError` for anything else."""
        return json.loads(self.body)


class HttpResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to an `HttpRequest`."""

    status: int = 200
    body: bytes = b""
    content_type: str = PLAIN
    headers: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    stream: AsyncIterator[bytes] | None = None
    """Instead of `body`: what is sent piece by piece. Closed when the client goes."""
