"""Routes of a feature: HTTP below an agent's address (DESIGN §3).

Pure: a pattern, who serves it, and whether a path fits. Who asks for them and what a refusal looks
like is the agent's business.

    Route("GET", "notes", self.list_notes)             /agents/assistant/alice/notes
    Route("GET", "notes/{id}", self.get_note)          one segment, in `request.params["id"]`
    Route("POST", "files/{path:path}", self.put_file)  one segment or more
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias
from urllib.parse import unquote

import msgspec

from thinkwell.core.errors import ConfigurationError
from thinkwell.core.principal import Principal
from thinkwell.wire.http import HttpRequest

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
TRANSCRIPT = "get-messages"
"""Where clients of every agent that chats ask for the messages. At the end of a longer path too, if
no route serves that.
"""
LOOKING = ("GET", "HEAD")
"""Methods that change nothing."""
_NO_PARAMS: Mapping[str, str] = {}


class RouteRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request for a route of a feature, and what its sender may do."""

    request: HttpRequest
    params: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    """What stands for the names in the route's path, decoded."""
    readonly: bool = False
    """Whether its sender is read-only."""

    @property
    def principal(self) -> Principal | None:
        """Who asks, as the app's `auth` said."""
        return self.request.principal


RouteHandler: TypeAlias = Callable[[RouteRequest], Awaitable[Any]]
"""Answers a request, with what `on_request` may return: an `HttpResponse`, text, bytes, JSON data.

Contract: called once per request, beside turns and other requests; may raise `Refusal`.
Whatever else it raises is logged and answered with 500.
"""


class Route(NamedTuple):
    """One address below the agent's own, and who answers there."""

    methods: str | tuple[str, ...]
    """`"GET"` (which serves HEAD too), `"POST"`, or several."""
    path: str
    """Below the agent's address, without a slash in front: `notes/{id}`, `files/{path:path}`."""
    handler: RouteHandler
    asks: bool = True
    """Whether `authorize("call", ...)` is asked before a request that may change something. False:
    the handler asks itself, with the kit.
    """
    errors: Literal["json", "text"] = "json"
    """How a refusal is written: `{"error": ...}`, or the bare text."""

    @property
    def allowed(self) -> tuple[str, ...]:
        """The methods it serves."""
        named = (self.methods,) if isinstance(self.methods, str) else tuple(self.methods)
        return (*named, "HEAD") if "GET" in named and "HEAD" not in named else named

    @property
    def only_looks(self) -> bool:
        """Whether no request for it can change anything."""
        return set(self.allowed) <= set(LOOKING)


class FoundRoute(NamedTuple):
    """The route a path leads to."""

    route: Route
    params: Mapping[str, str]


def find_route(routes: Iterable[Route], method: str, path: str) -> FoundRoute | None:
    """The first route that fits path and method; else the first that fits the path alone.

    So several routes may share a path, and a wrong method is told from a wrong path.
    """
    other: FoundRoute | None = None
    for route in routes:
        params = match_path(route.path, path)
        if params is None:
            continue
        found = FoundRoute(route, params)
        if method in route.allowed:
            return found
        other = other or found
    return other


def match_path(pattern: str, path: str) -> Mapping[str, str] | None:
    """What stands for the names of a pattern, or None if the path is another one."""
    if "{" not in pattern:
        return _NO_PARAMS if pattern == path else None
    return _match(pattern.split("/"), path.split("/"))


def _match(pattern: list[str], path: list[str]) -> Mapping[str, str] | None:
    if not pattern or not path:
        return {} if not pattern and not path else None
    first, rest = pattern[0], pattern[1:]
    if not first.startswith("{"):
        return _match(rest, path[1:]) if first == path[0] else None
    name, _, kind = first[1:-1].partition(":")
    most = len(path) - len(rest) if kind == "path" else 1
    for taken in range(1, most + 1):
        more = _match(rest, path[taken:])
        if more is not None and all(path[:taken]):
            return {name: unquote("/".join(path[:taken])), **more}
    return None


def check_route(route: Any, owner: str) -> None:
    """Refuse what is no route, or one nobody could reach. `owner` says whose it is."""
    if not isinstance(route, Route):
        raise ConfigurationError(
            f'{owner} has the route {route!r}. Write `Route("GET", "notes/{{id}}", self.read)`.'
        )
    named: Any = route.methods if isinstance(route.methods, tuple | list) else (route.methods,)
    if not named or any(method not in METHODS for method in named):
        raise ConfigurationError(
            f"{owner} has the route {route.path!r} for {route.methods!r}. Give one or more of "
            f"{', '.join(METHODS)}."
        )
    if not isinstance(route.path, str) or not all(map(_is_part, route.path.split("/"))):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigurationError(
            f"{owner} has the route {route.path!r}, which cannot be reached. Write a path without "
            'a slash at its ends, with names in braces: Route("GET", "notes/{id}", ...).'
        )
    if not callable(route.handler):
        raise ConfigurationError(
            f"{owner} has the route {route.path!r}, whose handler is {route.handler!r}. Give an "
            "async method that takes the request."
        )


def _is_part(part: str) -> bool:
    if "{" not in part and "}" not in part:
        return bool(part)
    name, _, kind = part[1:-1].partition(":")
    return part[0] == "{" and part[-1] == "}" and name.isidentifier() and kind in ("", "path")


def hidden_methods(earlier: Route, later: Route) -> tuple[str, ...]:
    """The methods with which a route is never asked, because an earlier one answers them all."""
    if not all(match_path(earlier.path, path) is not None for path in _examples(later.path)):
        return ()
    return tuple(method for method in later.allowed if method in earlier.allowed)


def _examples(pattern: str) -> Iterator[str]:
    """Paths that fit a pattern, with segments that no other pattern can name."""
    for several in (_ANY, f"{_ANY}/{_ANY}"):
        filled = (
            part if part[0] != "{" else several if part.endswith(":path}") else _ANY
            for part in pattern.split("/")
        )
        yield "/".join(filled)


_ANY = "\0"
"""A segment that stands for all: no literal part of a path is equal to it."""
