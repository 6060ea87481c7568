"""What the edge knows while the app runs: the way to the host, the page, the rules at the door."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from starlette.requests import HTTPConnection

from thinkwell.core.limits import Limits
from thinkwell.core.principal import Principal
from thinkwell.host.client import HostClient
from thinkwell.server.access import Access
from thinkwell.server.asgi import Scope, first_headers, header
from thinkwell.server.guard import host_allowed, origin_allowed
from thinkwell.server.guests import Guests
from thinkwell.server.limits import MAX_BODY_BYTES, MAX_FRAME_BYTES
from thinkwell.server.meter import Meter
from thinkwell.server.pages import Page
from thinkwell.server.routing import AgentRoute
from thinkwell.wire.http import HttpRequest

if TYPE_CHECKING:
    from thinkwell.server.metrics import Metrics

CORS: Mapping[str, str] = {
    "access-control-allow-origin": "*",
    "access-control-allow-methods": "GET, POST, HEAD, OPTIONS",
    "access-control-allow-headers": "*",
    "access-control-max-age": "86400",
}
"""What `cors=True` stands for (spec/01 §1.3.4)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Edge:
    """One running app, as its requests and sockets see it."""

    host: HostClient
    page: Page
    access: Access
    cors: Mapping[str, str] | None = None
    """Headers for pages of other sites, that let them read answers and send requests, or None."""
    allowed_origins: frozenset[str] = frozenset()
    """Pages of other sites that may open sockets and send requests that change something."""
    allowed_hosts: frozenset[str] | None = None
    max_frame_bytes: int = MAX_FRAME_BYTES
    max_body_bytes: int = MAX_BODY_BYTES

    meter: Meter = field(default_factory=lambda: Meter(Limits()))
    """What clients take, and how much they may."""
    metrics: Metrics | None = None
    """The counters of the app, unless it keeps none."""
    guests: Guests = field(default_factory=Guests)
    """Who is inside."""

    def is_meant(self, scope: Scope) -> bool:
        """Whether a request names a host that this app serves."""
        return host_allowed(scope, self.allowed_hosts)

    def may_write(self, scope: Scope) -> bool:
        """Whether a request that changes something may come from that page.

        Pages that `cors` lets read answers may also send requests. That "any page" may do so does
        not count with a cookie: whoever looks at that page would act there without knowing.
        """
        page = (self.cors or {}).get("access-control-allow-origin")
        if page is None or (page == "*" and header(scope, b"cookie") is not None):
            return origin_allowed(scope, self.allowed_origins)
        return origin_allowed(scope, self.allowed_origins | {page})

    def may_connect(self, scope: Scope) -> bool:
        """Whether a socket may be opened from that page."""
        return origin_allowed(scope, self.allowed_origins)


def address_of(request: HTTPConnection) -> str | None:
    """Where a request comes from."""
    return None if request.client is None else request.client.host


def agent_request(
    request: HTTPConnection, route: AgentRoute, principal: Principal | None, body: bytes = b""
) -> HttpRequest:
    """A request as it crosses to the host."""
    return HttpRequest(
        method=request.scope.get("method", "GET"),
        path=route.tail,
        query=dict(request.query_params) if request.scope.get("query_string") else {},
        headers=first_headers(request.scope),
        body=body,
        principal=principal,
        client=address_of(request),
    )
