"""A request for one agent and its answer, as the edge and the host hand them over."""

from __future__ import annotations

from typing import Any

import pytest

from thinkwell import HttpRequest, HttpResponse, Principal


def test_a_request_without_more_has_no_query_no_headers_no_body_and_nobody():
    request = HttpRequest(method="GET", path="")
    assert (request.query, request.headers, request.body) == ({}, {}, b"")
    assert request.principal is None


def test_two_requests_do_not_share_their_defaults():
    one, other = HttpRequest(method="GET", path=""), HttpRequest(method="GET", path="")
    assert one.query is not other.query


@pytest.mark.parametrize(
    ("body", "value"),
    [(b'{"a":[1,null]}', {"a": [1, None]}), (b"7", 7), ('"é"'.encode(), "é")],
)
def test_the_body_can_be_read_as_json(body: bytes, value: Any):
    assert HttpRequest(method="POST", path="x", body=body).json() == value


@pytest.mark.parametrize("body", [b"", b"not json", b'{"a":', b"\xff"])
def test_a_body_that_is_no_json_raises_value_error(body: bytes):
    with pytest.raises(ValueError, match=r"."):
        HttpRequest(method="POST", path="x", body=body).json()


def test_a_response_is_plain_text_with_status_200_unless_it_says_otherwise():
    response = HttpResponse(body=b"hi")
    assert (response.status, response.content_type) == (200, "text/plain;charset=UTF-8")
    assert (response.headers, response.stream) == ({}, None)


@pytest.mark.parametrize("value", [HttpRequest(method="GET", path=""), HttpResponse()])
def test_neither_can_be_changed(value: Any):
    with pytest.raises(AttributeError):
        value.body = b"other"


def test_a_principal_is_compared_by_what_it_says():
    assert Principal(id="ann", claims={"a": 1}) == Principal(id="ann", claims={"a": 1})
    assert Principal(id="ann") != Principal(id="bob")
    assert Principal(id="ann").claims == {}
