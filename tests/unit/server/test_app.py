"""`App`: how it starts and stops, where it may be mounted, what it refuses."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from tests.unit.server.fakes import AsgiClient
from tests.wire.serving import serving
from thinkwell import App, Think
from thinkwell.core.errors import ConfigurationError, HostClosedError
from thinkwell.core.limits import Limits
from thinkwell.testing import ScriptedModel, pause, text


class Echo(Think):
    def get_model(self):
        return ScriptedModel(["one two three"])

    async def shout(self, text: str) -> str:
        return text.upper()


def make_app(**options: Any) -> App:
    return App(agents=[Echo], **{"store": "sqlite://:memory:", **options})


class TestDefinition:
    def test_only_agent_classes_are_served(self):
        with pytest.raises(ConfigurationError, match="takes agent classes"):
            App(agents=[Echo()])  # pyright: ignore[reportArgumentType]

    def test_two_classes_cannot_have_one_name(self):
        class Other(Think, name="echo"): ...

        with pytest.raises(ConfigurationError, match="Echo and Other are both reached as 'echo'"):
            App(agents=[Echo, Other])

    @pytest.mark.parametrize("option", ["allowed_origins", "allowed_hosts"])
    def test_one_text_is_not_a_list_of_names(self, option: str):
        with pytest.raises(ConfigurationError, match=f"{option}=\\['here'\\]"):
            make_app(**{option: "here"})

    async def test_neither_is_one_that_is_set_later(self, tmp_path: Path):
        app = make_app(store=f"sqlite:///{tmp_path / 'a.db'}")
        app.allowed_hosts = "here"
        with pytest.raises(ConfigurationError, match=r"allowed_hosts=\['here'\]"):
            await app.start()
        app.allowed_hosts = {"here"}
        async with app:  # a start that failed has let go of the file
            pass

    async def test_hosts_can_be_narrowed_until_it_runs(self):
        app = make_app()
        app.allowed_hosts = {"other.example"}
        async with (
            serving(app) as url,
            aiohttp.ClientSession() as session,
            session.get(f"{url}/agents/echo/x/get-messages") as answer,
        ):
            assert answer.status == 400


class TestWithoutAServer:
    async def test_methods_are_called_through_a_stub(self):
        async with make_app() as app:
            assert await app.agent(Echo, "alice").shout("hi") == "HI"

    async def test_a_turn_runs(self):
        async with make_app() as app:
            result = await app.agent(Echo).run("hi")
        assert result.status == "completed"

    async def test_streams_are_followed(self):
        async with make_app() as app:
            kinds = [chunk["type"] async for chunk in app.agent(Echo).stream("hi")]
        assert (kinds[0], kinds[-1]) == ("start", "finish")

    async def test_one_that_is_started_again_drains_as_long_as_the_first_time(self):
        gate = pause()

        class Slow(Think):
            def get_model(self):
                return ScriptedModel([[gate, text("done")]])

        app = App(agents=[Slow], store="sqlite://:memory:", drain_timeout=0.0)
        await app.start()
        app.begin_drain()
        await app.stop()
        app.drain_timeout = 10.0
        await app.start()
        answer = asyncio.ensure_future(app.agent(Slow).run("hi"))
        await gate.reached()
        stopping = asyncio.ensure_future(app.stop())
        while app._host is not None:  # pyright: ignore[reportPrivateUsage]
            await asyncio.sleep(0)
        gate.open()
        assert (await answer).text == "done"
        await stopping

    async def test_a_call_before_the_start_says_how_to_start(self):
        with pytest.raises(HostClosedError, match="async with app"):
            await make_app().agent(Echo).shout("hi")

    def test_a_class_that_is_not_served_is_named(self):
        class Stranger(Think): ...

        with pytest.raises(ConfigurationError, match="does not serve Stranger; it serves Echo"):
            make_app().agent(Stranger)


class TestStopped:
    async def test_requests_are_answered_like_any_other_refusal(self):
        app = make_app()
        async with app:
            pass
        client = AsgiClient("http", "/agents/echo/x/get-messages")
        await app(*client.call)
        status, body, headers = await client.response()
        assert (status, body) == (503, b"Service Unavailable")
        assert headers[b"content-type"] == b"text/plain;charset=UTF-8"


class TestServed:
    async def test_another_prefix(self):
        async with (
            serving(make_app(prefix="/api/v1/")) as url,
            aiohttp.ClientSession() as session,
            session.get(f"{url}/api/v1/echo/x/get-messages") as answer,
        ):
            assert await answer.json() == []

    async def test_mounted_in_another_app_without_a_lifespan(self):
        app = make_app()
        outer = Starlette(routes=[Mount("/chat", app=app)])
        async with (
            serving(outer) as url,
            aiohttp.ClientSession() as session,
            session.ws_connect(f"{url}/chat/agents/echo/a%20b") as socket,
        ):
            frames = [await socket.receive_json() for _ in range(3)]
        await app.stop()
        assert frames[1]["name"] == "a%20b"

    async def test_the_page_below_a_mount_point_knows_where_it_is(self):
        app = make_app()
        outer = Starlette(routes=[Mount("/chat", app=app)])
        async with (
            serving(outer) as url,
            aiohttp.ClientSession() as session,
            session.get(f"{url}/chat/") as answer,
        ):
            page = await answer.text()
        await app.stop()
        assert '"root":"/chat"' in page
        assert '="./' not in page

    @pytest.mark.parametrize(
        ("path", "headers", "status"),
        [
            ("/agents/echo/x", {"Origin": "https://evil.example"}, 403),
            ("/agents/nope/x", {}, 400),
            ("/elsewhere", {}, 404),
            ("/agents/echo/x/sub/child/y", {}, 404),
            ("/agents/echo/x?__agents_transport=capnweb", {}, 400),
        ],
    )
    async def test_refused_upgrades(self, path: str, headers: dict[str, str], status: int):
        async with serving(make_app()) as url, aiohttp.ClientSession() as session:
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await session.ws_connect(url + path, headers=headers)
        assert refused.value.status == status


@pytest.mark.parametrize(
    "options",
    [
        {"drain_timeout": -1},
        {"drain_timeout": "soon"},
        {"tool_threads": 0},
        {"max_body_bytes": -5},
    ],
)
def test_a_figure_that_cannot_be_is_refused_by_name(options: dict[str, Any]):
    (name,) = options
    with pytest.raises(ConfigurationError, match=rf"App\({name}="):
        App(agents=[], **options)


@pytest.mark.parametrize("limits", [{"messages": -1}, {"sockets": "ten"}, {"message_burst": None}])
def test_a_limit_that_is_none_is_refused_by_name(limits: dict[str, Any]):
    (name,) = limits
    with pytest.raises(ConfigurationError, match=rf"Limits\({name}="):
        Limits(**limits)
