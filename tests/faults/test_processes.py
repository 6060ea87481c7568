"""Faults that need a real process: code that calls `os._exit`, and no file descriptors left."""

from __future__ import annotations

import asyncio
import json
import resource
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.abuse.process import ServerProcess, server_process
from tests.crash.process import until
from tests.faults.leaving import few_descriptors

pytestmark = pytest.mark.crash

APP = "tests.faults.leaving:app"


async def ask(server: ServerProcess, agent: str) -> Any:
    async with (
        aiohttp.ClientSession() as http,
        http.post(f"{server.http}/agents/{agent}/run", json={"input": "hi"}) as response,
    ):
        return await response.json()


async def told(server: ServerProcess, agent: str) -> list[Any]:
    async with (
        aiohttp.ClientSession() as http,
        http.get(f"{server.http}/agents/{agent}/get-messages") as response,
    ):
        return await response.json()


@pytest.mark.parametrize(("agent", "status"), [("leaver", 3), ("hooked", 4)])
async def test_code_that_leaves_the_process_is_parked_after_three_deaths_and_others_are_served(
    tmp_path: Path, agent: str, status: int
):
    async with server_process(tmp_path, APP) as server:
        with pytest.raises(aiohttp.ClientError):
            await ask(server, f"{agent}/a")
        assert await server.ended() == status
    deaths = 1
    while deaths < 6:
        try:
            async with server_process(tmp_path, APP) as server:
                await until(lambda s=server: not s.alive or "parked" in s.log(), "the next end")
                if server.alive:
                    assert (await ask(server, "quiet/b"))["text"] == "still here"
                    shown = await told(server, f"{agent}/a")
                    assert [message["role"] for message in shown][:1] == ["user"]
                    break
        except AssertionError as error:
            if "did not start" not in str(error):
                raise
        deaths += 1
    assert deaths == 3


async def test_without_file_descriptors_open_sockets_are_served_and_others_wait(tmp_path: Path):
    async with server_process(tmp_path, APP) as server, aiohttp.ClientSession() as http:
        address = f"{server.ws}/agents/quiet/a"
        async with http.ws_connect(address) as first:
            await first.receive_json()
            most, before = few_descriptors(server.pid, 3)
            knocking = [asyncio.ensure_future(http.ws_connect(address)) for _ in range(8)]
            await until(lambda: server.descriptors() >= most, "no descriptor is left")
            await first.send_json(question("q1"))
            assert (await answered(first, "q1"))["outcome"] == "completed"
            assert server.alive
            resource.prlimit(server.pid, resource.RLIMIT_NOFILE, before)
            for socket in await asyncio.gather(*knocking, return_exceptions=True):
                if isinstance(socket, aiohttp.ClientWebSocketResponse):
                    await socket.close()
        assert (await ask(server, "quiet/a"))["text"] == "still here"


def question(request: str) -> dict[str, Any]:
    message = {"id": f"m-{request}", "role": "user", "parts": [{"type": "text", "text": "hi"}]}
    init = {"method": "POST", "body": json.dumps({"messages": [message]})}
    return {"type": "cf_agent_use_chat_request", "id": request, "init": init}


async def answered(socket: aiohttp.ClientWebSocketResponse, request: str) -> dict[str, Any]:
    while True:
        frame = await socket.receive_json()
        if frame.get("id") == request and frame.get("done"):
            return frame
