"""Routes that could never be called are refused, and answers are what `on_request` may return."""

from __future__ import annotations

from typing import Any

import pytest

from tests.turns.support import Stage, running
from thinkwell import Agent, App, HttpResponse, Think
from thinkwell.core.errors import ConfigurationError
from thinkwell.features import Feature, Route, RouteRequest, Without
from thinkwell.host.client import AgentAddress
from thinkwell.wire.http import HttpRequest


class Served(Feature):
    """Serves what it is given."""

    name = "served"

    def __init__(self, *routes: tuple[Any, Any], answer: Any = "") -> None:
        self.given = routes
        self.answer = answer

    def routes(self) -> list[Route]:
        return [Route(methods, path, self.serve) for methods, path in self.given]

    async def serve(self, request: RouteRequest) -> Any:
        return self.answer


def serving(*routes: tuple[Any, Any], answer: Any = "") -> type[Think]:
    class Server(Think):
        features = [Served(*routes, answer=answer)]

    return Server


async def get(stage: Stage[Any], path: str, method: str = "GET") -> HttpResponse:
    address = AgentAddress(stage.agent.agent_class, stage.agent.name)
    return await stage.host.client().handle_request(address, HttpRequest(method=method, path=path))


@pytest.mark.parametrize(
    ("route", "other"),
    [
        (("GET", "get-messages"), r"GET get-messages.*every agent that chats"),
        (("DELETE", "get-messages"), "every agent that chats"),
        (("POST", "run"), r"POST run.*the feature 'http_run'"),
        (("GET", "run/latest"), r"'run/\{request_id\}'.*the feature 'http_run'"),
        (("GET", "run/{id}"), r"the feature 'http_run'"),
        ((("GET", "POST"), "chat"), r"POST chat.*the feature 'http_chat'.*Without\('http_chat'\)"),
        (("GET", "chat/{a}/{b}/stream"), "the feature 'http_chat'"),
    ],
)
async def test_a_route_that_another_one_hides_is_refused_and_both_are_named(
    route: tuple[Any, str], other: str
):
    with pytest.raises(ConfigurationError, match=other) as refused:
        async with running(serving(route)):
            pass
    assert "the feature 'served'" in str(refused.value)


async def test_two_routes_of_one_feature_hide_one_another_too():
    with pytest.raises(ConfigurationError, match=r"'notes/\{id\}'"):
        async with running(serving(("GET", "notes/{id}"), ("GET", "notes/new"))):
            pass


async def test_routes_that_both_can_be_reached_live_side_by_side():
    routes = [("GET", "notes/new"), ("GET", "notes/{id}"), ("PUT", "notes/{id}"), ("GET", "run")]
    async with running(serving(*routes, ("GET", "{all:path}"))) as stage:
        assert (await get(stage, "notes/7", "PUT")).status == 200


async def test_a_route_may_take_the_place_of_one_that_is_left_out():
    class Own(Think):
        features = [Without("http_run"), Served(("POST", "run"), answer="mine")]

    async with running(Own) as stage:
        assert (await get(stage, "run", "POST")).body == b"mine"


async def test_a_route_that_serves_a_longer_path_answers_get_messages_there():
    """spec/01 §1.3.5: its clients ask at their own path, and below others where nobody serves."""
    routes = [("GET", "tree/{path:path}"), ("DELETE", "old/get-messages"), ("GET", "{all:path}")]
    async with running(serving(*routes[:2], answer="mine")) as stage:
        assert (await get(stage, "tree/a/get-messages")).body == b"mine"
        assert (await get(stage, "old/get-messages", "DELETE")).body == b"mine"
        assert (await get(stage, "old/get-messages")).body == b"[]"
        assert (await get(stage, "tree/a/get-messages", "POST")).body == b"[]"
        assert (await get(stage, "elsewhere/get-messages")).body == b"[]"
        assert (await get(stage, "elsewhere/get-messages", "PUT")).status == 405
        assert (await get(stage, "tree/a", "POST")).status == 405
    async with running(serving(*routes, answer="mine")) as stage:
        assert (await get(stage, "get-messages")).body == b"[]"
        assert (await get(stage, "elsewhere/get-messages")).body == b"mine"


async def test_an_agent_without_chat_may_serve_get_messages_itself():
    class Shelf(Agent):
        features = [Served(("GET", "get-messages"), answer=[])]

    async with App(agents=[Shelf], store="sqlite://:memory:") as app:
        asked = HttpRequest(method="GET", path="get-messages")
        assert (await app.client.handle_request(AgentAddress("shelf", "x"), asked)).body == b"[]"


@pytest.mark.parametrize("methods", ["FETCH", "get", ("GET", "FETCH"), (), 5])
async def test_a_method_that_nobody_sends_is_refused(methods: Any):
    with pytest.raises(ConfigurationError, match=r"'served' has the route .*GET, HEAD, POST"):
        async with running(serving((methods, "notes"))):
            pass


@pytest.mark.parametrize("path", [None, "/notes", "notes/", "notes/{}", "a{b}"])
async def test_a_path_that_is_none_is_refused(path: Any):
    with pytest.raises(ConfigurationError, match=r"'served' has the route .*notes/\{id\}"):
        async with running(serving(("GET", path))):
            pass


@pytest.mark.parametrize(
    ("answer", "status", "body"),
    [
        ({"a": 1}, 200, b'{"a":1}'),
        (["a"], 200, b'["a"]'),
        ("text", 200, b"text"),
        (b"bytes", 200, b"bytes"),
        (None, 404, b"Not implemented"),
        (HttpResponse(status=204), 204, b""),
    ],
)
async def test_a_handler_may_return_what_on_request_may(answer: Any, status: int, body: bytes):
    async with running(serving(("GET", "notes"), answer=answer)) as stage:
        answered = await get(stage, "notes")
        assert (answered.status, answered.body) == (status, body)
