"""Where a path leads, over HTTP and as an upgrade: spec/01 cases 1-2, 16-17 and §1."""

from __future__ import annotations

import json
from typing import Any

import pytest
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse

from tests.wire.room import Chat, Room, room
from thinkwell import Agent, HttpRequest, HttpResponse, Think
from thinkwell.messages.message import text_of

KEBAB = [
    ("ChatAgent", "chat-agent"),
    ("LOUD_AGENT", "loud-agent"),
    ("AIAssistant", "a-i-assistant"),
    ("TestOAuthAgent", "test-o-auth-agent"),
    ("My_Agent", "my--agent"),
    ("user_agent", "user-agent"),
    ("AI2", "ai2"),
    ("Agent_", "agent"),
]
CORS = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Methods": "GET, POST, HEAD, OPTIONS",
    "Access-Control-Allow-Headers": "*",
    "Access-Control-Max-Age": "86400",
}


class Nobody(Agent):
    """Answers nothing."""


async def headers_of(r: Room, method: str, path: str) -> tuple[int, str, dict[str, str]]:
    async with r.browser.session.request(method, f"{r.browser.url}{path}") as answer:
        return answer.status, await answer.text(), {k: answer.headers.get(k, "") for k in CORS}


class TestAddresses:
    @pytest.mark.parametrize(("class_name", "kebab"), KEBAB)
    async def test_case_1_1_1_2_a_class_is_reached_under_its_kebab_name(
        self, class_name: str, kebab: str
    ):
        cls = type(class_name, (Nobody,), {})
        async with room(cls=cls) as r:
            tab = await r.browser.tab(f"/agents/{kebab}/x", "p1")
            assert tab.greeting[0]["agent"] == kebab
            if class_name != kebab:
                assert await r.browser.refused(f"/agents/{class_name}/x") == 400

    async def test_case_2_an_unknown_class_is_a_bad_request(self):
        async with room() as r:
            assert await r.browser.get("/agents/nope/x") == (400, "Invalid request")
            assert await r.browser.refused("/agents/nope/x") == 400

    @pytest.mark.parametrize("path", ["/agents/chat", "/foo", "/agents", "/other/chat/x"])
    async def test_case_2_other_paths_are_not_ours(self, path: str):
        async with room() as r:
            assert (await r.browser.get(path))[0] == 404
            assert await r.browser.refused(path) == 404

    async def test_1_1_1_empty_segments_do_not_count_and_a_prefix_may_be_longer(self):
        async with room(prefix="a/b") as r:
            assert await r.browser.get("/a//b/chat//x/get-messages") == (200, "[]")
            assert (await r.browser.get("/agents/chat/x/get-messages"))[0] == 404

    async def test_1_1_4_a_name_is_used_as_it_stands_in_the_path(self):
        async with room(name="my%20kid") as r:
            tab = await r.tab()
            assert tab.greeting[1]["name"] == "my%20kid"

    async def test_1_1_4_names_are_different_agents(self):
        async with room("Hello") as r:
            one = await r.browser.tab("/agents/chat/one")
            other = await r.browser.tab("/agents/chat/other")
            await one.ask("hi")
            await one.stream()
            await other.nothing_more()
            assert await r.browser.get("/agents/chat/other/get-messages") == (200, "[]")

    async def test_1_1_5_the_tail_of_a_socket_is_free_for_the_app(self):
        class Telling(Nobody):
            def on_connect(self, connection: Any, request: HttpRequest) -> None:
                connection.send({"path": request.path, "query": dict(request.query)})

        async with room(cls=Telling) as r:
            tab = await r.browser.tab("/agents/telling/x/rooms/7", "p1", token="t")
            seen = await tab.hear()
            assert seen == {"path": "rooms/7", "query": {"_pk": "p1", "token": "t"}}

    @pytest.mark.parametrize(
        "path", ["/agents/chat/x/sub/nope/kid", "/agents/chat/x/sub/chat/kid/a"]
    )
    async def test_case_16_d10_an_unknown_child_is_not_its_parent(self, path: str):
        """★ The reference falls through to the parent. There are no children yet at all."""
        async with room() as r:
            assert await r.browser.get(path) == (404, "Not Found")
            assert await r.browser.refused(path) == 404

    async def test_3_4_6_the_experimental_transport_is_refused(self):
        async with room() as r:
            assert await r.browser.refused(f"{r.path}?__agents_transport=capnweb") == 400


class TestRequests:
    async def test_1_3_5_get_messages_shows_what_is_stored(self):
        async with room("Hello") as r:
            url = f"{r.path}/get-messages"
            assert await r.browser.get(url) == (200, "[]")
            tab = await r.tab()
            await tab.ask("hi")
            await tab.stream()
            async with r.browser.session.get(f"{r.browser.url}{url}?token=1") as answer:
                assert answer.headers["content-type"] == "application/json"
                question, stored = await answer.json()
                assert text_of(question) == "hi"
                assert stored == tab.heard[-2]["message"]

    async def test_1_3_5_it_counts_wherever_it_stands_last_and_before_the_app(self):
        class Greedy(Chat, name="chat"):
            def on_request(self, request: HttpRequest) -> str:
                return "mine"

        async with room(cls=Greedy) as r:
            assert await r.browser.get(f"{r.path}/a/b/get-messages") == (200, "[]")
            assert await r.browser.get(f"{r.path}/get-messages/a") == (200, "mine")

    async def test_1_3_6_without_a_handler_there_is_nothing(self):
        async with room() as r:
            assert await r.browser.get(f"{r.path}/anything") == (404, "Not implemented")

    async def test_1_3_6_an_error_of_a_handler_shows_nothing(self):
        class Broken(Nobody):
            def on_request(self, request: HttpRequest) -> None:
                raise RuntimeError("password=hunter2")

        async with room(cls=Broken) as r:
            status, text = await r.browser.get(f"{r.path}/a")
            assert status == 500
            assert "hunter2" not in text

    async def test_1_3_6_a_handler_sees_the_request_and_answers_it(self):
        class Echo(Nobody):
            async def on_request(self, request: HttpRequest) -> HttpResponse:
                seen = [request.method, request.path, dict(request.query), request.json()]
                body = json.dumps(seen).encode()
                return HttpResponse(status=201, body=body, headers={"x-mine": "1"})

        async with room(cls=Echo) as r:
            url = f"{r.browser.url}{r.path}/a/b?c=d"
            async with r.browser.session.post(url, json={"e": 1}) as answer:
                assert (answer.status, answer.headers["x-mine"]) == (201, "1")
                assert json.loads(await answer.text()) == ["POST", "a/b", {"c": "d"}, {"e": 1}]


class TestCors:
    async def test_case_17_options_and_answers_carry_the_four_headers(self):
        async with room(cors=True) as r:
            assert await headers_of(r, "OPTIONS", f"{r.path}/get-messages") == (200, "", CORS)
            assert await headers_of(r, "GET", f"{r.path}/get-messages") == (200, "[]", CORS)
            assert (await headers_of(r, "GET", f"{r.path}/nothing"))[2] == CORS

    async def test_1_3_4_off_by_default_and_only_on_matched_routes(self):
        nothing = dict.fromkeys(CORS, "")
        async with room() as r:
            assert (await headers_of(r, "GET", f"{r.path}/get-messages"))[2] == nothing
            assert (await headers_of(r, "OPTIONS", f"{r.path}/get-messages"))[2] == nothing
        async with room(cors=True) as r:
            assert (await headers_of(r, "GET", "/foo"))[2] == nothing

    async def test_1_3_4_a_mapping_replaces_them(self):
        own = {"Access-Control-Allow-Origin": "https://example.com"}
        async with room(cors=own) as r:
            _, _, seen = await headers_of(r, "GET", f"{r.path}/get-messages")
            assert seen == {**dict.fromkeys(CORS, ""), **own}

    async def test_1_3_4_options_do_not_reach_the_agent_and_hook_answers_are_decorated(self):
        def refuse(request: Any, route: Any) -> PlainTextResponse:
            return PlainTextResponse("not you", 403)

        async with room(cors=True, on_before_request=refuse) as r:
            assert await headers_of(r, "OPTIONS", f"{r.path}/a") == (200, "", CORS)
            assert await headers_of(r, "GET", f"{r.path}/a") == (403, "not you", CORS)


class TestHooks:
    """§1.3.2: nothing, another request, or an answer."""

    async def test_a_request_passes_or_is_answered(self):
        seen: list[tuple[str, str]] = []

        async def look(request: HTTPConnection, route: Any) -> PlainTextResponse | None:
            seen.append((route.class_name, route.name))
            return PlainTextResponse("teapot", 418) if "stop" in request.query_params else None

        async with room(on_before_request=look) as r:
            assert await r.browser.get(f"{r.path}/get-messages") == (200, "[]")
            assert await r.browser.get(f"{r.path}/get-messages?stop=1") == (418, "teapot")
            await r.tab()
            assert seen == [("chat", "x")] * 2

    async def test_an_upgrade_passes_or_is_answered(self):
        def look(request: HTTPConnection, route: Any) -> PlainTextResponse | None:
            allowed = request.query_params.get("token") == "good"
            return None if allowed else PlainTextResponse("no", 403)

        async with room(on_before_connect=look) as r:
            await r.tab(token="good")
            assert await r.browser.refused(f"{r.path}?token=bad") == 403
            assert await r.browser.get(f"{r.path}/get-messages") == (200, "[]")


class TestWhoAsks:
    """DESIGN §4: `auth` refuses sockets with 4401, so that clients do not come back for ever."""

    @staticmethod
    def auth(request: HTTPConnection, route: Any) -> str | None:
        return request.query_params.get("user")

    async def test_without_a_principal_nothing_opens(self):
        async with room(auth=self.auth) as r:
            assert (await r.browser.get(f"{r.path}/get-messages"))[0] == 401
            assert await (await r.open()).closed() == 4401

    async def test_a_principal_is_known_to_the_agent(self):
        class Knowing(Think, name="chat"):
            def on_connect(self, connection: Any, request: HttpRequest) -> None:
                connection.send({"who": connection.principal.id})

        async with room(cls=Knowing, auth=self.auth) as r:
            tab = await r.tab(user="ann")
            assert await tab.hear() == {"who": "ann"}

    async def test_a_page_of_another_site_may_not_connect_unless_it_is_listed(self):
        async with room(allowed_origins=["https://good.example"]) as r:
            assert await r.browser.refused(r.path, Origin="https://evil.example") == 403
            headers = {"Origin": "https://good.example"}
            socket = await r.browser.session.ws_connect(f"{r.browser.url}{r.path}", headers=headers)
            await socket.close()
