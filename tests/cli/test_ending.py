"""SIGTERM ends the process within `drain_timeout`, whatever still runs (DESIGN §8.16)."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import aiohttp
import pytest

from tests.abuse.process import ServerProcess, server_process

APP = "tests.cli.lingering:app"
STUCK = ("blocks", "borrows", "holds", "forgets", "before_turn", "on_chunk", "on_chat_response")


async def ask(server: ServerProcess, name: str) -> None:
    with suppress(aiohttp.ClientError):
        async with aiohttp.ClientSession() as session:
            url = f"{server.http}/agents/lingering/{name}/run"
            async with session.post(url, json={"input": "hi"}) as answer:
                await answer.read()


def turns_in(database: Path) -> int:
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as link:
        return link.execute("SELECT COUNT(*) FROM turns").fetchone()[0]


async def terminated(server: ServerProcess) -> int:
    server.terminate()
    return await asyncio.wait_for(server.ended(), 30)


@pytest.mark.parametrize("name", STUCK)
async def test_8_16_a_stuck_agent_does_not_keep_the_process(name: str, tmp_path: Path):
    async with server_process(tmp_path, APP) as server:
        asking = asyncio.ensure_future(ask(server, name))
        await server.until_logged("began")
        assert await terminated(server) == 0
        assert "is ended now" not in server.log()
        await asking


async def test_8_16_a_blocked_event_loop_ends_with_status_1(tmp_path: Path):
    async with server_process(tmp_path, APP) as server:
        asking = asyncio.ensure_future(ask(server, "freezes"))
        await server.until_logged("began")
        assert await terminated(server) == 1
        assert "did not end within 3 s" in server.log()
        await asking


async def test_8_16_a_handler_of_closed_sockets_does_not_keep_it(tmp_path: Path):
    async with server_process(tmp_path, APP) as server, aiohttp.ClientSession() as session:
        async with session.ws_connect(f"{server.ws}/agents/lingering/on_close"):
            assert await terminated(server) == 0
        assert "is ended now" not in server.log()


async def test_8_16_streams_and_sockets_that_nobody_reads_do_not_keep_it(tmp_path: Path):
    async with server_process(tmp_path, APP) as server, aiohttp.ClientSession() as session:
        socket = await session.ws_connect(f"{server.ws}/agents/lingering/streams", autoping=False)
        url = f"{server.http}/agents/lingering/streams/chat"
        message = {"id": "m", "role": "user", "parts": [{"type": "text", "text": "hi"}]}
        async with session.post(url, json={"id": "c", "messages": [message]}) as stream:
            await stream.content.readany()
            assert await terminated(server) == 0
        assert "is ended now" not in server.log()
        await socket.close()


async def test_whoever_waits_at_a_planned_stop_is_told_and_the_log_shows_no_defect(tmp_path: Path):
    async with server_process(tmp_path, APP) as server, aiohttp.ClientSession() as session:
        url = f"{server.http}/agents/lingering/streams"
        message = {"id": "m", "role": "user", "parts": [{"type": "text", "text": "hi"}]}
        async with session.post(f"{url}/chat", json={"id": "c", "messages": [message]}) as stream:
            await stream.content.readany()
            waiting = session.post(f"{url}/run", json={"input": "hi"})
            asked = asyncio.ensure_future(waiting.__aenter__())
            while turns_in(tmp_path / "abuse.db") < 2:
                await asyncio.sleep(0.01)
            assert await terminated(server) == 0
            answer = await asked
            told = await answer.json()
            assert (answer.status, "retry-after" in answer.headers) == (503, True)
            assert f"run/{told['requestId']}" in told["error"]
            assert (await stream.read()).endswith(b"data: [DONE]\n\n")
        assert server.defects() == ""
