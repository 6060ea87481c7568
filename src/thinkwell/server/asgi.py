"""The few ASGI facts the edge needs: types, headers, and the path below the mount point."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import quote

from thinkwell.server.routing import split_path

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
AsgiApp: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


class AsgiCall(NamedTuple):
    """The three things an ASGI server hands in for one request or socket."""

    scope: Scope
    receive: Receive
    send: Send


_BREAK = re.compile("[\r\n\0]")


def header(scope: Scope, name: bytes) -> str | None:
    """The first header with that lower-case name."""
    for key, value in scope["headers"]:
        if key == name:
            return value.decode("latin-1")
    return None


def first_headers(scope: Scope) -> dict[str, str]:
    """All headers by their lower-case names; of several with one name the first."""
    pairs = reversed(list(scope["headers"]))
    return {key.decode("latin-1"): value.decode("latin-1") for key, value in pairs}


def header_pairs(headers: Mapping[str, str] | None) -> tuple[tuple[str, str], ...]:
    """Headers as they are sent. Raises `ValueError` for a value that would begin another header."""
    pairs = tuple((name.lower(), value) for name, value in (headers or {}).items())
    for name, value in pairs:
        if _BREAK.search(name + value):
            raise ValueError(f"the header {name!r} has a line break in it")
    return pairs


def local_path(scope: Scope) -> str:
    """The raw path below the place where the app is mounted, with its percent-encoding."""
    raw: bytes | None = scope.get("raw_path")
    path = raw.decode("latin-1") if raw else quote(scope["path"])
    mounted_at = mount_path(scope)
    if mounted_at and (scope["path"] + "/").startswith(mounted_at + "/"):
        # root_path is decoded and raw_path is not, so they are compared by segments.
        path = "/" + "/".join(split_path(path)[len(split_path(mounted_at)) :])
    return path


def mount_path(scope: Scope) -> str:
    """Where the app is mounted, without a slash at the end; empty for the root."""
    return str(scope.get("root_path", "")).rstrip("/")
