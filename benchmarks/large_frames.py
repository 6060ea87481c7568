"""`python -m benchmarks.large_frames`: does one client with huge frames hold up the others?

A real server process. One client sends frames of about 14 MB, one after the other, in the shapes
that cost a parser most; meanwhile other clients ask small questions, each of its own agent. Told is
how long they wait for the first word, without and with that neighbour.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import aiohttp

from benchmarks.soak import ask, serve

SIZE = 14_000_000
OTHERS = 4
SECONDS = 6.0
PAUSE = 0.2
"""Seconds between two large frames."""


def _chat(body: str) -> str:
    init = {"method": "POST", "body": body}
    return json.dumps({"type": "cf_agent_use_chat_request", "id": "q", "init": init})


def _message(number: int, size: int) -> dict[str, object]:
    role = "assistant" if number % 2 else "user"
    return {"id": f"m{number}", "role": role, "parts": [{"type": "text", "text": "x" * size}]}


SHAPES: dict[str, Callable[[], str]] = {
    "2 million small elements": lambda: '{"messages":[],"x":[' + "{}," * (SIZE // 3) + "0]}",
    "deep nesting": lambda: '{"messages":[],"x":' + "[" * (SIZE // 2) + "]" * (SIZE // 2) + "}",
    "one string": lambda: json.dumps({"messages": [_message(1, SIZE)]}),
    "20,000 messages": lambda: json.dumps(
        {"messages": [_message(n, SIZE // 20_000 - 80) for n in range(20_001)]}
    ),
    "half emoji": lambda: (
        '{"messages":[],"y":"\\ud83d","x":[' + "0," * (SIZE // 2) + "0]}"  # a lone surrogate
    ),
}


async def _heavy(url: str, shape: str) -> None:
    """The neighbour, in a process of its own: making and sending such frames takes time too."""
    text = _chat(SHAPES[shape]())
    async with aiohttp.ClientSession() as http, http.ws_connect(url, max_msg_size=0) as socket:
        while True:
            await socket.send_str(text)
            while json.loads((await socket.receive()).data).get("id") != "q":
                pass
            print("sent", flush=True)
            await asyncio.sleep(PAUSE)


async def _small(url: str, stop: asyncio.Event, waits: list[float]) -> None:
    number = 0
    async with aiohttp.ClientSession() as http, http.ws_connect(url, max_msg_size=0) as socket:
        while not stop.is_set():
            number += 1
            began = time.monotonic()
            await ask(socket, [], f"{url}-{number}", lambda b=began: waits.append(_since(b)))


def _since(began: float) -> float:
    return time.monotonic() - began


async def measure(url: str, shape: str | None) -> tuple[list[float], int]:
    """How long the others waited, and how many large frames were sent meanwhile."""
    waits: list[float] = []
    stop = asyncio.Event()
    heavy = None
    if shape is not None:
        heavy = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "benchmarks.large_frames", shape),
            f"{url}/agents/soaked/heavy-{shape}",
            stdout=asyncio.subprocess.PIPE,
        )
        if heavy.stdout is not None:
            await heavy.stdout.readline()
    others = [
        asyncio.ensure_future(_small(f"{url}/agents/soaked/small-{shape}-{n}", stop, waits))
        for n in range(OTHERS)
    ]
    await asyncio.sleep(SECONDS)
    stop.set()
    await asyncio.gather(*others)
    if heavy is None:
        return waits, 0
    heavy.kill()
    said, _ = await heavy.communicate()
    return waits, said.count(b"sent")


async def main() -> None:
    """Print a line for each shape."""
    with tempfile.TemporaryDirectory() as folder:
        process, url = await serve(Path(folder))
        try:
            for shape in (None, *SHAPES):
                waits, sent = await measure(url, shape)
                cuts = statistics.quantiles(waits, n=100)
                print(
                    f"| {shape or 'no neighbour'} | {sent} frames | {len(waits)} questions "
                    f"| p50 {cuts[49] * 1e3:.0f} ms | p99 {cuts[98] * 1e3:.0f} ms "
                    f"| max {max(waits) * 1e3:.0f} ms |",
                    flush=True,
                )
        finally:
            process.terminate()
            await process.wait()


if __name__ == "__main__":
    asyncio.run(_heavy(sys.argv[2], sys.argv[1]) if len(sys.argv) > 1 else main())
