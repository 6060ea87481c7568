"""A real process that serves the app: started, killed, stopped, and started again."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from pathlib import Path

from thinkwell.testing.chaos.options import ChaosOptions

SERVER_LOG = "server.log"
POLL = 0.005
_ADDRESS = re.compile(r"Thinkwell is running\. Open (http://\S+?)/\s")


class DidNotStartError(Exception):
    """The app ended instead of listening; the text is what it wrote."""


class ServedApp:
    """One life of the app."""

    def __init__(self, options: ChaosOptions, life: int, crash_at: str = "") -> None:
        self._options = options
        self._life = life
        self._crash_at = crash_at
        self._log = options.folder / SERVER_LOG
        self._began = 0
        self._process: asyncio.subprocess.Process | None = None
        self.url = ""
        self.died_alone = True
        """Whether it ended, if it has, without our doing."""

    async def spawn(self) -> None:
        """Begin; `listens` waits for more."""
        options = self._options
        environment = {**os.environ, "THINKWELL_CHAOS_LIFE": str(self._life)}
        environment["THINKWELL_CRASH_AT"] = self._crash_at
        if options.model == "scripted":
            environment["THINKWELL_CHAOS_SCRIPT"] = str(options.seed)
        module = "thinkwell.testing.chaos.child"
        # Not a pipe: an app that prints a lot would fill it and hang.
        with self._log.open("ab") as out:
            self._began = self._log.stat().st_size
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                module,
                str(options.folder),
                options.app,
                env=environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            )

    async def listens(self) -> bool:
        """Wait for its address. False if it was killed first; raises if it ended by itself."""
        deadline = asyncio.timeout(self._options.patience)
        try:
            async with deadline:
                while self.alive:
                    if found := _ADDRESS.search(self.output()):
                        self.url = found[1]
                        return True
                    await asyncio.sleep(POLL)
        except TimeoutError:
            raise DidNotStartError(f"It did not listen in time.\n{self.output()}") from None
        if await self.ended() != -signal.SIGKILL:
            raise DidNotStartError(self.output())
        return False

    def output(self) -> str:
        """What this life has written."""
        with self._log.open("rb") as log:
            log.seek(self._began)
            return log.read().decode(errors="replace")

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self._process is not None and self._process.returncode is None

    async def ended(self) -> int:
        """Wait for its end: the exit status, negative for a signal."""
        assert self._process is not None
        return await self._process.wait()

    async def kill(self) -> int:
        """`kill -9`, now."""
        if self.alive and self._process is not None:
            self.died_alone = False
            self._process.kill()
        return await self.ended()

    async def stop(self) -> int:
        """A planned stop, which has time to store and to say goodbye."""
        if self.alive and self._process is not None:
            self.died_alone = False
            self._process.terminate()
        try:
            async with asyncio.timeout(self._options.patience):
                return await self.ended()
        except TimeoutError:
            return await self.kill()


def last_lines(folder: Path, count: int = 15) -> str:
    """The end of what the app wrote."""
    log = folder / SERVER_LOG
    return "\n".join(log.read_text(errors="replace").splitlines()[-count:]) if log.exists() else ""
