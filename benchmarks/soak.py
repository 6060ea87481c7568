"""`python -m benchmarks.soak [TURNS]`: does a server that only chats grow?

A real server process on a real file, through the real command line; clients over WebSocket. Each
has a few agents that stay awake, and one after another that is left after some turns: agents come,
sleep and go. Turns call a tool now and then; sockets reconnect, conversations are cleared. What
counts is the memory of the server once it has answered the first turns (its caches are full then),
against that at the end.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import aiohttp
import psutil

from benchmarks.processes import ROOT

TURNS = 15_000
WARM_UP = 3_000
CLIENTS = 8
TURNS_PER_AGENT = 15
STANDING = 6
"""Agents of each client that stay awake."""
ROUNDS = 20
"""Turns after which a standing conversation is cleared."""
IDLE_TIMEOUT = 2.0
"""Seconds after which an agent sleeps; a server waits longer, but would need a longer soak."""
LIMIT = 10e6
"""Bytes the server may grow after the warm-up."""
REPORTS = 10


class Soak:
    """The clients and what they have done so far."""

    def __init__(self, url: str, turns: int) -> None:
        self._url = url
        self._turns = turns
        self.done = 0
        self._agents = 0

    async def client(self) -> None:
        """One person after another, until all turns are done."""
        async with aiohttp.ClientSession() as http, AsyncExitStack() as stack:
            standing: list[Standing] = []
            for number in range(STANDING):
                url = f"{self._url}/agents/soaked/standing-{id(stack)}-{number}"
                socket = await stack.enter_async_context(http.ws_connect(url, max_msg_size=0))
                standing.append(Standing(socket, url))
            while self.done < self._turns:
                self._agents += 1
                await self._person(http, f"{self._url}/agents/soaked/agent-{self._agents}")
                for each in standing:
                    await each.turn()
                    self.done += 1

    async def _person(self, http: aiohttp.ClientSession, url: str) -> None:
        messages: list[dict[str, Any]] = []
        for half in range(2):  # the second half on a new socket
            async with http.ws_connect(url, max_msg_size=0) as socket:
                for number in range(TURNS_PER_AGENT // 2 + half):
                    await ask(socket, messages, f"{url}-{half}-{number}")
                    self.done += 1
                if half and self._agents % 5 == 0:
                    await socket.send_json({"type": "cf_agent_chat_clear"})


class Standing:
    """A conversation that goes on as long as the soak."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, url: str) -> None:
        self._socket = socket
        self._url = url
        self._rounds = 0
        self._messages: list[dict[str, Any]] = []

    async def turn(self) -> None:
        """Ask once more; every so often begin anew."""
        self._rounds += 1
        await ask(self._socket, self._messages, f"{self._url}-{self._rounds}")
        if self._rounds % ROUNDS == 0:
            await self._socket.send_json({"type": "cf_agent_chat_clear"})
            self._messages.clear()


async def ask(
    socket: aiohttp.ClientWebSocketResponse,
    messages: list[dict[str, Any]],
    turn: str,
    begun: Callable[[], object] = lambda: None,
) -> None:
    """Ask, as the stock client does with its whole list, and read until the end.

    `begun` is called at the first chunk.
    """
    first = True
    text = f"What about {turn}? " + "Some more words. " * 20
    user = {"id": f"u-{turn}", "role": "user", "parts": [{"type": "text", "text": text}]}
    messages.append(user)
    body = json.dumps({"messages": messages, "trigger": "submit-message"})
    await socket.send_json(
        {
            "type": "cf_agent_use_chat_request",
            "id": turn,
            "init": {"method": "POST", "body": body},
        }
    )
    while True:
        frame = json.loads((await socket.receive()).data)
        if frame["type"] == "cf_agent_chat_messages":
            messages[:] = frame["messages"]
        if frame.get("id") == turn and first:
            first = False
            begun()
        if frame.get("id") == turn and frame.get("done"):
            return


async def soak(turns: int) -> float:
    """Run it; how many bytes the server grew after the warm-up."""
    with tempfile.TemporaryDirectory() as folder:
        process, url = await serve(Path(folder))
        try:
            return await _measure(psutil.Process(process.pid), Soak(url, turns), turns)
        finally:
            process.terminate()
            await process.wait()


async def _measure(server: psutil.Process, run: Soak, turns: int) -> float:
    began, warm, last = time.monotonic(), 0, 0
    clients = [asyncio.ensure_future(run.client()) for _ in range(CLIENTS)]
    waiting = asyncio.gather(*clients)
    step = max(turns // REPORTS, 1)
    while not waiting.done():
        await asyncio.wait([waiting], timeout=0.2)
        memory = server.memory_info().rss
        if not warm and run.done >= min(WARM_UP, turns // 3):
            warm = memory
        if run.done // step > last:
            last = run.done // step
            print(f"{run.done:>7} turns  {memory / 1e6:7.1f} MB  {_open(server)} descriptors")
    await waiting
    await asyncio.sleep(3 * IDLE_TIMEOUT)  # the last agents go to sleep
    grown = server.memory_info().rss - warm
    seconds = time.monotonic() - began
    print(
        f"| {run.done} turns in {seconds:.0f} s | {grown / 1e6:+.1f} MB after {WARM_UP} turns "
        f"| ≤ {LIMIT / 1e6:.0f} MB | {'met' if grown <= LIMIT else 'MISSED'} |"
    )
    return grown


def _open(server: psutil.Process) -> int:
    return server.num_fds()


async def serve(folder: Path) -> tuple[asyncio.subprocess.Process, str]:
    """A server on a file in that folder, and its address."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.soak_server", f"sqlite:///{folder / 'soak.db'}"),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    if process.stdout is None:
        raise RuntimeError("the server has no output")
    async for line in process.stdout:
        if found := re.search(rb"http://127\.0\.0\.1:\d+", line):
            return process, found[0].decode()
    raise RuntimeError("the server did not start")


def main() -> None:
    """Print how the memory went; fails when the server grew too much."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("turns", nargs="?", type=int, default=TURNS)
    grown = asyncio.run(soak(parser.parse_args().turns))
    sys.exit(0 if grown <= LIMIT else 1)


if __name__ == "__main__":
    main()
