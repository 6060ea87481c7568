"""Apps inside other apps, several apps in one process, apps that stop (DESIGN §4)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from tests.http.support import Client, Guide, Stream, file_store, frames_until
from tests.wire.serving import serving
from thinkwell import App
from thinkwell.testing import ScriptedModel, pause, text


def make_app(*steps: Any, store: str = "sqlite://:memory:", **options: Any) -> App:
    model = ScriptedModel(steps)
    made = type("Served", (Guide,), {"model_of": {"x": model}, "runs": []}, name="guide")
    return App(agents=[made], store=store, **options)


@asynccontextmanager
async def client_of(url: str) -> AsyncIterator[Client]:
    async with aiohttp.ClientSession() as session:
        yield Client(url, session, ScriptedModel())


async def use(client: Client) -> None:
    """Talk over HTTP and over a socket."""
    stream = await client.send("hi")
    await stream.read()
    assert stream.text() == "one"
    socket = await client.socket()
    frames = await frames_until(socket, "cf_agent_identity")
    assert frames[-1]["name"] == "x"


@pytest.mark.parametrize("path", ["/chat", "/a/b c", "/users/{user}"])
@pytest.mark.parametrize("with_lifespan", [False, True])
async def test_mounted_under_any_path_with_and_without_a_lifespan(path: str, with_lifespan: bool):
    app = make_app("one")

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with app:
            yield

    outer = Starlette(routes=[Mount(path, app=app)], lifespan=lifespan if with_lifespan else None)
    place = path.replace(" ", "%20").replace("{user}", "ann")
    async with serving(outer) as url, client_of(f"{url}{place}/agents/guide/x") as client:
        await use(client)
        page = await (await client.session.get(f"{url}{place}/")).text()
        assert f'"root":"{path.replace("{user}", "ann")}"' in page
        assert "./" not in page.partition("<body")[0].partition("<script")[2]
        health = await client.session.get(f"{url}{place}/healthz")
        assert health.status == 200
    await app.stop()


async def test_two_apps_in_one_process_keep_to_themselves():
    one, two = make_app("one"), make_app("two", prefix="api/v2/agents")
    outer = Starlette(routes=[Mount("/one", app=one), Mount("/two", app=two)])
    async with (
        serving(outer) as url,
        client_of(f"{url}/one/agents/guide/x") as first,
        client_of(f"{url}/two/api/v2/agents/guide/x") as second,
    ):
        await use(first)
        stream = await second.send("hi")
        await stream.read()
        assert stream.text() == "two"
        assert len(await first.stored()) == 2
    await one.stop()
    await two.stop()


async def test_a_stopped_app_says_that_it_is_not_there():
    app = make_app()
    outer = Starlette(routes=[Mount("/", app=app)])
    async with serving(outer) as url, client_of(f"{url}/agents/guide/x") as client:
        assert (await client.get("get-messages")).status == 200
        await app.stop()
        answer = await client.get("get-messages")
        assert (answer.status, await answer.text()) == (503, "Service Unavailable")
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await client.socket()
        assert refused.value.status == 503


async def test_a_store_that_cannot_be_opened_is_unavailable_not_a_traceback(tmp_path: Path):
    store = file_store(tmp_path)
    async with make_app(store=store):
        app = make_app(store=store)
        async with (
            serving(Starlette(routes=[Mount("/", app=app)])) as url,
            client_of(url) as client,
        ):
            assert (await client.get("agents/guide/x/get-messages")).status == 503


async def test_a_stream_is_cut_when_the_app_stops_and_the_turn_goes_on_later(tmp_path: Path):
    """The client sees a broken connection, not an end: it can join again (spec/01 §14.5)."""
    gate = pause()
    app = make_app([text("one "), gate], store=file_store(tmp_path))
    outer = Starlette(routes=[Mount("/", app=app)])
    async with serving(outer) as url, client_of(f"{url}/agents/guide/x") as client:
        stream = await client.send("hi")
        await stream.until("text-end")
        stopping = asyncio.ensure_future(app.stop())
        with pytest.raises(aiohttp.ClientPayloadError):
            await stream.read()
        await stopping
    gate = pause()
    app = make_app([gate, text("two")], store=file_store(tmp_path))
    async with serving(app) as url, client_of(f"{url}/agents/guide/x") as client:
        joined = await client.resume()
        assert isinstance(joined, Stream)
        gate.open()
        await joined.read()
        assert joined.text() == "one two"
        assert [message["role"] for message in await client.stored()] == ["user", "assistant"]
