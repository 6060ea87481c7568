"""URL path → which agent, and what is left for it (spec/01 §1.1). Pure.

The caller hands in the raw path: the agent's name is used exactly as it stands in the URL, so
percent-encoding is not undone (§1.1.4).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec


class AgentRoute(msgspec.Struct, frozen=True):
    """An agent's address; `tail` is what follows it, without slashes at its ends."""

    class_name: str
    name: str
    tail: str


class NotOurs(msgspec.Struct, frozen=True):
    """Another prefix, or too few segments: 404."""


class UnknownClass(msgspec.Struct, frozen=True):
    """Our prefix, but no such agent class: 400."""


class UnknownChild(msgspec.Struct, frozen=True):
    """A sub-agent of a class that is not there: 404, never the parent (D10)."""


RouteMatch: TypeAlias = AgentRoute | NotOurs | UnknownClass | UnknownChild


def match_route(path: str, *, prefix: str, knows: Callable[[str], bool]) -> RouteMatch:
    """Which agent `path` addresses. Empty segments do not count."""
    segments = split_path(path)
    expected = split_path(prefix)
    rest = segments[len(expected) :]
    if segments[: len(expected)] != expected or len(rest) < 2:
        return NotOurs()
    class_name, name, *tail = rest
    if not knows(class_name):
        return UnknownClass()
    if tail[:1] == ["sub"] and len(tail) >= 3:
        return UnknownChild()
    return AgentRoute(class_name, name, "/".join(tail))


def split_path(path: str) -> list[str]:
    """The segments of a path that are not empty."""
    return [segment for segment in path.split("/") if segment]
