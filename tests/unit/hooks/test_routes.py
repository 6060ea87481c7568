"""Which route of a feature a request is for (DESIGN §3)."""

from __future__ import annotations

import pytest

from thinkwell.core.errors import ConfigurationError
from thinkwell.hooks.routes import Route, RouteRequest, check_route, find_route, match_path
from thinkwell.wire.http import HttpResponse


async def answer(_: RouteRequest) -> HttpResponse:
    return HttpResponse()


@pytest.mark.parametrize(
    ("pattern", "path", "params"),
    [
        ("notes", "notes", {}),
        ("notes", "notes/", None),
        ("notes", "other", None),
        ("notes/{id}", "notes/7", {"id": "7"}),
        ("notes/{id}", "notes", None),
        ("notes/{id}", "notes/", None),
        ("notes/{id}", "notes/7/8", None),
        ("notes/{id}", "notes/a%2Fb%20c", {"id": "a/b c"}),
        ("{a}/x/{b}", "1/x/2", {"a": "1", "b": "2"}),
        ("chat/{id:path}/stream", "chat/a/b/stream", {"id": "a/b"}),
        ("chat/{id:path}/stream", "chat/stream", None),
        ("chat/{id:path}/stream", "chat/stream/stream", {"id": "stream"}),
        ("files/{path:path}", "files/a/b.txt", {"path": "a/b.txt"}),
        ("files/{path:path}", "files/", None),
    ],
)
def test_a_path_fits_a_pattern_segment_by_segment(pattern, path, params):
    assert match_path(pattern, path) == params


def test_routes_may_share_a_path_and_the_method_decides():
    read, write = Route("GET", "notes", answer), Route("POST", "notes", answer)
    assert find_route([read, write], "HEAD", "notes") == (read, {})
    assert find_route([read, write], "POST", "notes") == (write, {})


def test_a_wrong_method_is_told_from_a_wrong_path():
    read = Route("GET", "notes", answer)
    found = find_route([read], "PUT", "notes")
    assert found is not None
    assert found.route.allowed == ("GET", "HEAD")
    assert find_route([read], "GET", "other") is None


@pytest.mark.parametrize("path", ["/notes", "notes/", "", "notes//x", "notes/{id", "notes/{7}"])
def test_a_path_nobody_could_reach_is_refused_by_name(path):
    with pytest.raises(ConfigurationError, match="The feature 'notes' has the route"):
        check_route(Route("GET", path, answer), "The feature 'notes'")
