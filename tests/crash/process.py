"""A real server process: started, killed, stopped, and started again on the same store."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
DEADLINE = 30.0
"""Seconds after which a state that never comes fails the test."""
POLL = 0.01


class World:
    """The folder of one test: the store and everything the processes leave behind."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = folder / "crash.db"
        self.servers: list[Server] = []

    async def start(self, crash_at: str = "") -> Server:
        """A new process; `crash_at` arms a crash point in it."""
        server = Server(self, crash_at)
        self.servers.append(server)
        await server.start()
        return server

    async def run_into(self, point: str) -> None:
        """A process that an armed point kills, perhaps before it listens."""
        server = Server(self, point)
        self.servers.append(server)
        await server.spawn()
        await server.crashed()

    async def end(self) -> None:
        """Kill what still runs."""
        for server in self.servers:
            await server.kill()

    def hold(self, name: str) -> None:
        """From now on, whoever comes to `hold:name` waits."""
        (self.folder / name).touch()

    def release(self, name: str) -> None:
        (self.folder / name).unlink()

    def lines(self, name: str) -> list[dict[str, Any]]:
        """What was left in `name`.jsonl."""
        file = self.folder / f"{name}.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def effects(self, note: str) -> list[dict[str, Any]]:
        """One line for each time the tool call `note` ran."""
        return [line for line in self.lines("effects") if line["note"] == note]

    def model_calls(self, label: str) -> int:
        """How often the model was called for a question."""
        return len([line for line in self.lines("calls") if line["label"] == label])


class Server:
    """One process."""

    def __init__(self, world: World, crash_at: str) -> None:
        self._world = world
        self._crash_at = crash_at
        self._process: asyncio.subprocess.Process | None = None
        self.url = ""

    async def start(self) -> None:
        """Returns once it listens; fails with its output if it ends instead."""
        process = await self.spawn()
        assert process.stdout is not None
        async with asyncio.timeout(DEADLINE):
            async for line in process.stdout:
                if found := re.search(r"http://127\.0\.0\.1:\d+", line.decode()):
                    self.url = found[0]
                    return
        raise AssertionError(f"the server did not start: {await self.output()}")

    async def spawn(self) -> asyncio.subprocess.Process:
        """Run it, whatever becomes of it."""
        paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
        changes = {"PYTHONPATH": paths, "THINKWELL_TEST_FOLDER": str(self._world.folder)}
        with (self._world.folder / "stderr.txt").open("ab") as errors:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "tests.crash.serve",
                str(self._world.store),
                env={**os.environ, **changes, "THINKWELL_CRASH_AT": self._crash_at},
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
            )
        return self._process

    @property
    def process(self) -> asyncio.subprocess.Process:
        assert self._process is not None
        return self._process

    @property
    def alive(self) -> bool:
        return self.process.returncode is None

    async def ended(self) -> int:
        """Wait for the end of the process; its exit status, negative for a signal."""
        async with asyncio.timeout(DEADLINE):
            return await self.process.wait()

    async def crashed(self) -> None:
        """Wait until the armed crash point has killed it."""
        assert await self.ended() == -signal.SIGKILL, await self.output()

    async def kill(self) -> None:
        """`kill -9`, now."""
        if self.alive:
            self.process.kill()
        await self.ended()

    async def stop(self) -> int:
        """A planned stop: SIGTERM. The exit status."""
        self.process.terminate()
        return await self.ended()

    async def output(self) -> str:
        return (self._world.folder / "stderr.txt").read_text()


async def until(condition: Callable[[], Any], what: str) -> Any:
    """Wait until `condition` gives something true, and return it."""
    try:
        async with asyncio.timeout(DEADLINE):
            while not (value := condition()):
                await asyncio.sleep(POLL)
            return value
    except TimeoutError:
        raise AssertionError(f"never happened: {what}") from None
