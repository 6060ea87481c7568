"""HTTP at the edge (spec/01 §1.3)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from tests.unit.server.fakes import AsgiClient, FakeHost, make_edge, running
from thinkwell.core.errors import NOT_STORED, HostClosedError, StoreUnavailableError
from thinkwell.core.limits import Limits
from thinkwell.core.principal import Principal
from thinkwell.host.client import ConversationEntry
from thinkwell.server.access import Access
from thinkwell.server.asgi import local_path
from thinkwell.server.edge import CORS
from thinkwell.server.http import serve_http
from thinkwell.server.meter import Meter
from thinkwell.server.routing import AgentRoute, match_route
from thinkwell.wire.http import HttpResponse

AGENT = "/agents/chat-agent/a"


async def ask(
    host: FakeHost, client: AsgiClient, **options: Any
) -> tuple[int, str, dict[str, str]]:
    match = match_route(local_path(client.scope), prefix="agents", knows=host.knows)
    await serve_http(make_edge(host, **options), match, client.call)
    status, body, headers = await client.response()
    return status, body.decode(), {key.decode(): value.decode() for key, value in headers.items()}


def post(path: str = AGENT, body: bytes = b"", **headers: str) -> AsgiClient:
    client = AsgiClient("http", path, body=body, headers=headers)
    client.scope["method"] = "POST"
    return client


async def test_the_agent_gets_what_follows_its_address_with_query_and_headers():
    host, client = FakeHost(), AsgiClient("http", f"{AGENT}/get-messages", query="x=1", cookie="c")
    status, body, headers = await ask(host, client)
    assert (status, body, headers["content-type"]) == (200, "[]", "application/json")
    request = host.requests[0]
    assert (request.path, request.query) == ("get-messages", {"x": "1"})
    assert request.headers["cookie"] == "c"


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("/agents/nope/x/get-messages", 400, "Invalid request"),
        ("/other", 404, "Not found"),
        ("/agents/chat-agent/x/sub/child/y", 404, "Not Found"),
    ],
)
async def test_paths_that_lead_nowhere(path: str, status: int, text: str):
    answer = await ask(FakeHost(), AsgiClient("http", path))
    assert answer[:2] == (status, text)
    assert answer[2]["content-type"] == "text/plain;charset=UTF-8"


async def test_an_error_inside_shows_nothing():
    """1.3.6"""
    host = FakeHost()
    host.failure = RuntimeError("secret")
    assert (await ask(host, AsgiClient("http", AGENT)))[:2] == (500, "Internal Server Error")


async def test_a_host_that_stops_is_unavailable():
    host = FakeHost()
    host.failure = HostClosedError("stopping")
    assert (await ask(host, AsgiClient("http", AGENT)))[:2] == (503, "Service Unavailable")


class TestBody:
    async def test_it_reaches_the_agent(self):
        host = FakeHost()
        await ask(host, post(body=b"hello"))
        assert (host.requests[0].method, host.requests[0].body) == ("POST", b"hello")

    async def test_a_huge_one_is_refused_and_the_limit_named(self):
        host = FakeHost()
        status, text, _ = await ask(host, post(body=b"1234"), max_body_bytes=3)
        assert (status, text) == (413, "Content Too Large. A request may have at most 3 bytes.")
        assert host.requests == []

    async def test_one_that_says_it_is_huge_is_not_even_read(self):
        client = AsgiClient("http", AGENT, content_length="4")
        assert (await ask(FakeHost(), client, max_body_bytes=3))[0] == 413


class TestHeaders:
    async def test_the_agents_own_are_sent(self):
        host = FakeHost()
        host.answer = HttpResponse(status=201, body=b"x", headers={"X-Own": "1"})
        status, body, headers = await ask(host, AsgiClient("http", AGENT))
        assert (status, body, headers["x-own"]) == (201, "x", "1")

    async def test_one_that_would_begin_another_header_is_an_error(self):
        host = FakeHost()
        host.answer = HttpResponse(headers={"x": "a\r\nset-cookie: b"})
        assert (await ask(host, AsgiClient("http", AGENT)))[0] == 500

    async def test_nor_may_the_content_type(self):
        host = FakeHost()
        host.answer = HttpResponse(content_type="text/html\r\nset-cookie: b")
        assert (await ask(host, AsgiClient("http", AGENT)))[0] == 500

    async def test_newer_protocols_have_no_connection_header(self):
        host = FakeHost()
        host.answer = HttpResponse(headers={"connection": "keep-alive", "x": "1"})
        client = AsgiClient("http", AGENT)
        client.scope["http_version"] = "2"
        assert "connection" not in (await ask(host, client))[2]


class TestStream:
    async def test_it_is_sent_piece_by_piece_and_closed(self):
        closed = []

        async def pieces() -> AsyncIterator[bytes]:
            try:
                yield b"a"
                yield b"b"
            finally:
                closed.append(True)

        host, client = FakeHost(), AsgiClient("http", AGENT)
        host.answer = HttpResponse(stream=pieces())
        await ask(host, client)
        rest = [client.sent.get_nowait() for _ in range(client.sent.qsize())]
        assert [message["body"] for message in rest] == [b"b", b""]
        assert closed == [True]

    async def test_it_is_closed_when_the_client_goes(self):
        closed = asyncio.Event()

        async def pieces() -> AsyncIterator[bytes]:
            try:
                yield b"a"
                await asyncio.Event().wait()
            finally:
                closed.set()

        host, client = FakeHost(), AsgiClient("http", AGENT)
        host.answer = HttpResponse(stream=pieces())
        async with running(
            serve_http(make_edge(host), AgentRoute("chat-agent", "a", ""), client.call)
        ):
            assert (await client.response())[:2] == (200, b"a")
            client.push({"type": "http.disconnect"})
            await closed.wait()

    async def test_one_that_fails_is_cut_off(self, caplog: pytest.LogCaptureFixture):
        async def pieces() -> AsyncIterator[bytes]:
            yield b"a"
            raise RuntimeError("broken")

        host, client = FakeHost(), AsgiClient("http", AGENT)
        host.answer = HttpResponse(stream=pieces())
        assert (await ask(host, client))[:2] == (200, "a")
        assert client.sent.empty()
        assert "a stream failed" in caplog.text


class TestOwnRoutes:
    async def test_readiness_is_503_with_the_reason_while_no_work_is_accepted(self):
        host = FakeHost()
        status, _, _ = await ask(host, AsgiClient("http", "/readyz", host="10.0.0.7"))
        assert status == 200
        host.unready = "store"
        status, body, _ = await ask(host, AsgiClient("http", "/readyz"))
        assert (status, json.loads(body)["reason"]) == (503, "store")

    async def test_a_store_that_does_not_write_answers_503_and_when_to_come_back(self):
        host = FakeHost()
        host.failure = StoreUnavailableError("the disk is full")
        path = "/agents/chat-agent/alice/get-messages"
        status, body, headers = await ask(host, AsgiClient("http", path))
        assert (status, headers["retry-after"], body) == (503, "5", NOT_STORED)

    async def test_a_list_counts_as_a_message_and_asks_auth_only_so_often(self):
        host, asked = FakeHost(), 0
        host.talked_to = [
            ConversationEntry(name=str(n), title="", updated_at=0.0) for n in range(1000)
        ]

        def nobody(request: Any, route: Any) -> None:
            nonlocal asked
            asked += 1

        meter, access = Meter(Limits(messages=0.001, message_burst=1)), Access(nobody)
        statuses: list[int] = []
        for _ in range(2):
            client = AsgiClient("http", "/_thinkwell/conversations")
            client.scope["client"] = ("203.0.113.7", 1)
            statuses.append((await ask(host, client, meter=meter, access=access))[0])
        assert (statuses, asked) == ([200, 429], 500)

    async def test_health_says_that_it_lives_and_nothing_about_agents(self):
        status, body, _ = await ask(FakeHost(), AsgiClient("http", "/healthz"))
        assert status == 200
        assert json.loads(body) == {"status": "ok", "version": "0.1.0"}

    async def test_health_is_told_to_whoever_knocks_by_another_name(self):
        client = AsgiClient("http", "/healthz", host="10.0.0.7")
        assert (await ask(FakeHost(), client, allowed_hosts=frozenset({"here"})))[0] == 200

    async def test_settings_name_the_agents_and_where_they_are(self):
        client = AsgiClient("http", "/mount/_thinkwell/settings")
        client.scope["root_path"] = "/mount"
        _, body, _ = await ask(FakeHost(), client)
        assert json.loads(body) == {"agents": ["chat-agent"], "prefix": "agents", "root": "/mount"}

    async def test_other_methods_are_refused(self):
        status, _, headers = await ask(FakeHost(), post("/healthz"))
        assert (status, headers["allow"]) == (405, "GET, HEAD")


class TestHost:
    async def test_another_host_is_refused_by_name(self):
        client = AsgiClient("http", AGENT, host="evil.example")
        status, text, _ = await ask(FakeHost(), client, allowed_hosts=frozenset({"here"}))
        assert status == 400
        assert text == (
            "The host 'evil.example' is not served here. Name it in App(allowed_hosts=[...])."
        )


class TestForeignPages:
    async def test_they_cannot_post(self):
        host = FakeHost()
        client = post(origin="https://evil.example", host="here")
        assert (await ask(host, client))[:2] == (403, "Origin not allowed")
        assert host.requests == []

    @pytest.mark.parametrize(
        "options",
        [
            {"allowed_origins": frozenset({"https://friend.example"})},
            {"cors": CORS},
            {"cors": {"access-control-allow-origin": "https://friend.example"}},
        ],
    )
    async def test_listed_ones_and_those_that_cors_admits_can(self, options: dict[str, Any]):
        client = post(origin="https://friend.example", host="here")
        assert (await ask(FakeHost(), client, **options))[0] == 200

    @pytest.mark.parametrize(
        ("options", "status"),
        [
            ({"cors": CORS}, 403),
            ({"cors": CORS, "allowed_origins": frozenset({"https://friend.example"})}, 200),
            ({"cors": {"access-control-allow-origin": "https://friend.example"}}, 200),
        ],
    )
    async def test_with_cookies_a_page_must_be_named(self, options: dict[str, Any], status: int):
        host, path = FakeHost(), f"{AGENT}/chat/stop"
        client = post(path, origin="https://friend.example", host="here", cookie="session=1")
        assert (await ask(host, client, **options))[0] == status
        assert len(host.requests) == (status == 200)

    async def test_our_own_page_may_send_cookies(self):
        client = post(origin="https://here", host="here", cookie="session=1")
        assert (await ask(FakeHost(), client, cors=CORS))[0] == 200

    async def test_cors_for_one_page_does_not_let_another_post(self):
        client = post(origin="https://evil.example", host="here")
        cors = {"access-control-allow-origin": "https://friend.example"}
        assert (await ask(FakeHost(), client, cors=cors))[0] == 403


class TestAccess:
    async def test_nobody_is_let_in_by_none(self):
        host = FakeHost()
        answer = await ask(host, AsgiClient("http", AGENT), access=Access(lambda *_: None))
        assert answer[:2] == (401, "Unauthorized")
        assert host.requests == []

    @pytest.mark.parametrize(
        ("said", "expected"),
        [("ann", Principal(id="ann")), (Principal(id="b", claims={"x": 1}),) * 2],
    )
    async def test_the_agent_is_told_who_asks(self, said: Any, expected: Principal):
        host = FakeHost()
        await ask(host, AsgiClient("http", AGENT), access=Access(lambda *_: said))
        assert host.requests[0].principal == expected

    async def test_auth_may_be_async_and_sees_the_request_and_the_route(self):
        async def auth(request: Any, route: AgentRoute) -> str:
            return f"{request.headers['x-user']} at {route.class_name}/{route.name}"

        host = FakeHost()
        await ask(host, AsgiClient("http", AGENT, x_user="ann"), access=Access(auth))
        assert host.requests[0].principal == Principal(id="ann at chat-agent/a")

    async def test_an_id_that_was_not_found_lets_nobody_in(self):
        assert (await ask(FakeHost(), AsgiClient("http", AGENT), access=Access(lambda *_: "")))[
            0
        ] == 401

    async def test_an_auth_that_raises_or_says_nonsense_lets_nobody_in(self):
        def breaks(*_: Any) -> str:
            raise RuntimeError("secret")

        nonsense: Any = lambda *_: True  # noqa: E731
        for auth in (breaks, nonsense):
            host = FakeHost()
            answer = await ask(host, AsgiClient("http", AGENT), access=Access(auth))
            assert answer[:2] == (500, "Internal Server Error")
            assert host.requests == []

    async def test_an_http_exception_is_the_answer(self):
        def auth(*_: Any) -> str:
            raise HTTPException(403, "Not yours", headers={"x-why": "rules"})

        status, text, headers = await ask(FakeHost(), post(), access=Access(auth))
        assert (status, text, headers["x-why"]) == (403, "Not yours", "rules")


class TestBeforeRequest:
    """1.3.2"""

    async def test_nothing_lets_it_pass_and_it_knows_who_asks(self):
        seen = []

        def look(request: Request, route: AgentRoute) -> None:
            seen.append((request.state.principal.id, route.tail))

        host = FakeHost()
        access = Access(lambda *_: "ann", before_request=look)
        await ask(host, AsgiClient("http", f"{AGENT}/x"), access=access)
        assert seen == [("ann", "x")]
        assert len(host.requests) == 1

    async def test_a_response_answers_it(self):
        host = FakeHost()
        access = Access(before_request=lambda *_: Response("later", 429))
        assert (await ask(host, AsgiClient("http", AGENT), access=access))[:2] == (429, "later")
        assert host.requests == []

    async def test_a_request_takes_its_place(self):
        def look(request: Request, route: AgentRoute) -> Request:
            headers = [*request.scope["headers"], (b"x-tenant", b"7")]
            return Request({**request.scope, "headers": headers}, request.receive)

        host = FakeHost()
        await ask(host, post(body=b"kept"), access=Access(before_request=look))
        assert host.requests[0].headers["x-tenant"] == "7"
        assert host.requests[0].body == b"kept"

    async def test_it_may_read_the_body_too(self):
        async def look(request: Request, route: AgentRoute) -> None:
            assert await request.body() == b"hello"

        host = FakeHost()
        await ask(host, post(body=b"hello"), access=Access(before_request=look))
        assert host.requests[0].body == b"hello"

    async def test_nonsense_is_an_error(self):
        access = Access(before_request=lambda *_: "yes")  # pyright: ignore[reportArgumentType]
        assert (await ask(FakeHost(), AsgiClient("http", AGENT), access=access))[0] == 500


class TestCors:
    """1.3.4, case 17"""

    def preflight(self) -> AsgiClient:
        client = AsgiClient("http", AGENT, origin="https://a.example")
        client.scope["method"] = "OPTIONS"
        return client

    async def test_off_by_default(self):
        _, _, headers = await ask(FakeHost(), AsgiClient("http", AGENT))
        assert not any(name.startswith("access-control") for name in headers)

    async def test_a_preflight_is_answered_without_the_agent(self):
        host = FakeHost()
        status, body, headers = await ask(
            host, self.preflight(), cors=CORS, access=Access(lambda *_: None)
        )
        assert (status, body) == (200, "")
        assert CORS.items() <= headers.items()
        assert host.requests == []

    @pytest.mark.parametrize(
        ("access", "status"),
        [
            (Access(), 200),
            (Access(lambda *_: None), 401),
            (Access(before_request=lambda *_: Response("no", 418)), 418),
        ],
    )
    async def test_every_answer_of_a_matched_route_is_decorated(self, access: Access, status: int):
        answer = await ask(FakeHost(), AsgiClient("http", AGENT), cors=CORS, access=access)
        assert answer[0] == status
        assert CORS.items() <= answer[2].items()

    async def test_so_is_an_error(self):
        host = FakeHost()
        host.failure = RuntimeError("secret")
        answer = await ask(host, AsgiClient("http", AGENT), cors=CORS)
        assert (answer[0], answer[2]["access-control-allow-origin"]) == (500, "*")

    async def test_other_paths_are_not(self):
        _, _, headers = await ask(FakeHost(), AsgiClient("http", "/healthz"), cors=CORS)
        assert "access-control-allow-origin" not in headers
