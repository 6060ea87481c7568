"""Who may talk to this server at all: the names it answers to, and the pages that may use it.

Both are checked before anything of the app runs. A page of another site could otherwise use the
agents of whoever looks at it, over a socket or by posting a form; and a name that an attacker
points at this machine would make his page look like our own (DNS rebinding).
"""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import urlsplit

from thinkwell.server.asgi import Scope, header

LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
"""What an app without `auth` answers to, unless `allowed_hosts` says otherwise."""

_DEFAULT_PORTS = {"http": 80, "https": 443, "ws": 80, "wss": 443}


def host_allowed(scope: Scope, allowed_hosts: Collection[str] | None) -> bool:
    """Whether the request was meant for this server. None: whatever name it was reached by.

    `*.example.com` stands for every name below `example.com`.
    """
    if allowed_hosts is None or "*" in allowed_hosts:
        return True
    name = _host_name(header(scope, b"host") or "")
    return any(_matches(name, pattern.lower()) for pattern in allowed_hosts)


def origin_allowed(scope: Scope, allowed_origins: Collection[str]) -> bool:
    """Whether the page that asks may: it names no origin, is our own, or is a listed one."""
    origin = header(scope, b"origin")
    if origin is None or "*" in allowed_origins or origin.rstrip("/") in allowed_origins:
        return True
    try:
        page = urlsplit(origin)
        port = page.port or _DEFAULT_PORTS.get(page.scheme)
    except ValueError:
        return False
    host = (header(scope, b"host") or "").lower()
    own = {(page.hostname or "", port)} if page.hostname else set[tuple[str, int | None]]()
    return _host_and_port(host, page.scheme) in own


def _host_and_port(host: str, scheme: str) -> tuple[str, int | None] | None:
    """The parts of a `Host` header; without a port it is the one of the page's scheme."""
    try:
        parts = urlsplit(f"//{host}")
        return parts.hostname or "", parts.port or _DEFAULT_PORTS.get(scheme)
    except ValueError:
        return None


def _host_name(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _matches(name: str, pattern: str) -> bool:
    if pattern.startswith("*."):
        return name.endswith(pattern[1:])
    return name == pattern.strip("[]")
