"""A server in its own process, whose memory and log a test can look at."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[2]
DEADLINE = 60.0
"""Seconds after which a state that never comes fails the test."""


class ServerProcess:
    """One running server: its address, its memory, its log."""

    def __init__(self, process: asyncio.subprocess.Process, port: int, log: Path) -> None:
        self._process = process
        self._log = log
        self.port = port

    @property
    def http(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def ws(self) -> str:
        return f"ws://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        return self._process.pid

    def memory(self) -> int:
        """The resident memory in bytes."""
        return psutil.Process(self._process.pid).memory_info().rss

    def descriptors(self) -> int:
        """How many files and sockets it has open."""
        return psutil.Process(self._process.pid).num_fds()

    def log(self) -> str:
        """Everything it has written to its log so far."""
        return self._log.read_text()

    def defects(self) -> str:
        """What its log holds from the first traceback on, as far as one wants to read it."""
        _, mark, rest = self.log().partition("Traceback")
        return (mark + rest)[:5_000]

    def terminate(self) -> None:
        """Ask it to stop, as an operator does."""
        self._process.terminate()

    async def ended(self) -> int:
        """Wait until it is gone; its exit status."""
        return await self._process.wait()

    async def until_logged(self, text: str) -> None:
        """Wait until its log says so."""
        while text not in self.log():
            await asyncio.sleep(0.01)

    @property
    def alive(self) -> bool:
        return self._process.returncode is None


@asynccontextmanager
async def server_process(folder: Path, app: str) -> AsyncIterator[ServerProcess]:
    """Serve `module:app` through the real command line on a real file, on a free port."""
    log = folder / "server.log"
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    with log.open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.abuse.serve", app, f"sqlite:///{folder / 'abuse.db'}"),
            cwd=folder,
            env={**os.environ, "PYTHONPATH": paths},
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
        )
    try:
        yield ServerProcess(process, await _port_of(process, log), log)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def _port_of(process: asyncio.subprocess.Process, log: Path) -> int:
    assert process.stdout is not None
    async with asyncio.timeout(DEADLINE):
        async for line in process.stdout:
            if found := re.search(rb"http://127\.0\.0\.1:(\d+)", line):
                return int(found[1])
    raise AssertionError(f"the server did not start: {log.read_text()}")
