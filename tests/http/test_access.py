"""Who may do what, over a real server (DESIGN §4; spec/01 §1.3.2-1.3.4)."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest
from starlette.requests import HTTPConnection

from tests.http.support import Client, Guide, frames_until, talking
from thinkwell import App, Principal
from thinkwell.server.guard import LOCAL_HOSTS
from thinkwell.server.routing import AgentRoute
from thinkwell.testing import ScriptedModel, pause, text


def by_token(request: HTTPConnection, route: AgentRoute) -> Principal | None:
    """Everybody may use the agent that has their name, and `x` is for all."""
    user = request.query_params.get("token") or request.headers.get("x-user")
    if not user or route.name not in (user, "x"):
        return None
    return Principal(id=user, claims={"role": "tester"})


class Curious(Guide):
    """Writes down who asks."""

    def before_turn(self, ctx: Any) -> None:
        self.runs.append(f"{ctx.principal.id} {ctx.principal.claims['role']} {ctx.trigger}")


async def closed_with(client: Client, url: str, **headers: str) -> int | None:
    """The code with which a socket that was accepted is closed."""
    socket = await client.session.ws_connect(url, headers=headers)
    message = await socket.receive(timeout=30)
    assert message.type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED)
    return socket.close_code


async def test_without_a_name_nothing_is_served():
    async with talking(auth=by_token) as client:
        for path in ("get-messages", "echo", "run/x", "chat/c/stream"):
            answer = await client.get(path)
            assert (answer.status, await answer.text()) == (401, "Unauthorized")
        assert (await client.post("run", {"input": "x"})).status == 401
        assert await closed_with(client, client.url) == 4401


async def test_a_principal_without_an_id_is_nobody():
    async with talking(auth=lambda request, route: Principal(id="")) as client:
        assert (await client.get("get-messages")).status == 401


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"id": "ann", "expires_at": "tomorrow"}, "seconds since the epoch"),
        ({"id": "ann", "expires_at": True}, "seconds since the epoch"),
        ({"id": 7}, "the id is a text"),
    ],
)
def test_a_principal_of_the_wrong_kind_is_refused_where_it_is_made(
    fields: dict[str, Any], said: str
):
    with pytest.raises(TypeError, match=said):
        Principal(**fields)


async def test_every_way_in_says_who_asks():
    async with talking("one", "two", "three", cls=Curious, auth=by_token) as client:
        ann = {"x_user": "ann"}
        echoed = await (await client.post("echo", **ann)).json()
        assert echoed["who"] == "ann"
        message = {"id": "u", "role": "user", "parts": [{"type": "text", "text": "hi"}]}
        await (await client.post("chat", {"messages": [message]}, **ann)).read()
        await (await client.post("run", {"input": "x"}, **ann)).read()
        runs = await (await client.session.get(f"{client.url}/runs?token=bob")).json()
        assert runs == ["ann tester http-chat", "ann tester submission"]


async def test_a_socket_carries_its_principal_by_query():
    async with talking(auth=by_token) as client:
        socket = await client.session.ws_connect(f"{client.url}?_pk=a&token=ann")
        frames = await frames_until(socket, "cf_agent_identity")
        assert frames[-1]["name"] == "x"


async def test_nobody_reads_anothers_conversation():
    async with talking("one", "two", names=("ann", "bob"), auth=by_token) as client:
        classes = client.url.removesuffix("/ann")
        root = classes.removesuffix("/agents/guide")
        for name in ("ann", "bob"):
            client.url = f"{classes}/{name}"
            answer = await client.post(f"run?token={name}", {"input": f"I am {name}"})
            assert (await answer.json())["status"] == "completed"
        refused = await client.session.get(f"{classes}/ann/get-messages?token=bob")
        assert refused.status == 401
        listed = await client.session.get(f"{root}/_thinkwell/conversations?token=bob")
        assert [(one["name"], one["title"]) for one in await listed.json()] == [("bob", "I am bob")]


async def test_conversations_are_listed_page_by_page_without_gaps():
    """The latest first, whatever the size of a page."""
    names = ("ann", "bob", "cid")
    made = type("Served", (Guide,), {"model_of": {}, "runs": []}, name="guide")
    async with App(agents=[made], store="sqlite://:memory:") as app:
        for name in names:
            made.model_of[name] = ScriptedModel(["ok"])
            await app.agent(made, name).run(f"I am {name}")
        pages = [await app.client.conversations("guide", 1, offset) for offset in range(4)]
        assert [[one.name for one in page] for page in pages] == [["cid"], ["bob"], ["ann"], []]


@pytest.mark.parametrize(("origin", "status"), [("https://evil.example", 403), ("null", 403)])
async def test_foreign_pages_open_no_sockets_and_post_nothing(origin: str, status: int):
    async with talking() as client:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await client.session.ws_connect(client.url, headers={"origin": origin})
        assert refused.value.status == status
        assert (await client.post("chat/stop", origin=origin)).status == status


async def test_a_name_that_was_pointed_here_is_refused():
    """DNS rebinding"""
    async with talking(allowed_hosts=LOCAL_HOSTS) as client:
        assert (await client.get("get-messages")).status == 200
        headers = {"host": "evil.example"}
        answer = await client.session.get(f"{client.url}/get-messages", headers=headers)
        assert answer.status == 400
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await client.session.ws_connect(client.url, headers=headers)
        assert refused.value.status == 400


async def test_cors_lets_pages_of_other_sites_read_and_post():
    """1.3.4, case 17"""
    async with talking("ok", cors=True) as client:
        origin = {"origin": "https://friend.example"}
        asked = await client.session.options(f"{client.url}/run", headers=origin)
        assert (asked.status, await asked.read()) == (200, b"")
        assert asked.headers["access-control-allow-methods"] == "GET, POST, HEAD, OPTIONS"
        answer = await client.post("run", {"input": "x"}, **origin)
        assert (answer.status, answer.headers["access-control-allow-origin"]) == (200, "*")


async def test_cors_does_not_let_them_act_with_somebodys_cookies():
    """1.3.4: a stop needs no JSON, so a browser would send it without asking first"""
    gate = pause()
    async with talking([gate, text("ok")], cors=True) as client:
        stream = await client.send("hi")
        await gate.reached()
        foreign = {"origin": "https://evil.example", "cookie": "session=1"}
        assert (await client.post("chat/stop", **foreign)).status == 403
        gate.open()
        await stream.read()
        assert stream.text() == "ok"


async def test_cors_does_not_let_them_open_sockets():
    async with talking(cors=True) as client:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await client.session.ws_connect(client.url, headers={"origin": "https://a.example"})
        assert "access-control-allow-origin" not in (refused.value.headers or {})


async def test_a_body_above_the_limit():
    async with talking(max_body_bytes=100) as client:
        answer = await client.post("run", {"input": "x" * 200})
        assert answer.status == 413
        assert "at most 100 bytes" in await answer.text()
