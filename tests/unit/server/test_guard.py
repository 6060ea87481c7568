"""Which hosts and pages the server answers to."""

from __future__ import annotations

import pytest

from tests.unit.server.fakes import AsgiClient
from thinkwell.server.guard import LOCAL_HOSTS, host_allowed, origin_allowed


@pytest.mark.parametrize(
    ("headers", "allowed"),
    [
        ({}, True),
        ({"origin": "http://here:8787", "host": "here:8787"}, True),
        ({"origin": "https://Here", "host": "here"}, True),
        ({"origin": "https://here", "host": "here:443"}, True),
        ({"origin": "http://[::1]:8787", "host": "[::1]:8787"}, True),
        ({"origin": "http://here:1", "host": "here:8787"}, False),
        ({"origin": "http://here", "host": "here:8787"}, False),
        ({"origin": "null", "host": "here"}, False),
        ({"origin": "http://here:bad", "host": "here:bad"}, False),
        ({"origin": "", "host": ""}, False),
        ({"origin": "https://evil.example", "host": "here"}, False),
        ({"origin": "https://friend.example", "host": "here"}, True),
        ({"origin": "https://friend.example.evil.example", "host": "here"}, False),
    ],
)
def test_only_our_own_pages_and_listed_ones_may_ask(headers: dict[str, str], allowed: bool):
    scope = AsgiClient("websocket", headers=headers).scope
    assert origin_allowed(scope, {"https://friend.example"}) is allowed


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("localhost", True),
        ("LOCALHOST:8787", True),
        ("127.0.0.1:8787", True),
        ("[::1]:8787", True),
        ("evil.example", False),
        ("localhost.evil.example", False),
        ("127.0.0.1.evil.example:8787", False),
        ("[::1", False),
        ("", False),
    ],
)
def test_a_local_server_answers_to_local_names_only(host: str, allowed: bool):
    assert host_allowed(AsgiClient("http", host=host).scope, LOCAL_HOSTS) is allowed


def test_without_a_list_every_name_is_served():
    assert host_allowed(AsgiClient("http", host="anything").scope, None)


def test_a_star_stands_for_every_name_below():
    allowed = {"*.example.com"}
    assert host_allowed(AsgiClient("http", host="a.example.com:1").scope, allowed)
    assert not host_allowed(AsgiClient("http", host="example.com").scope, allowed)
    assert not host_allowed(AsgiClient("http", host="badexample.com").scope, allowed)
