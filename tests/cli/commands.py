"""Commands of the program, each in a process of its own, with a pipe or a terminal before it."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import re
import signal
import struct
import sys
import termios
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

ROOT = Path(__file__).parents[2]
DEMO = str(ROOT / "examples" / "demo.py")
COMMAND = (sys.executable, "-m", "thinkwell.cli")
KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY")
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x01\x02\r]")


def environment(**extra: str) -> dict[str, str]:
    """The environment without the keys of real models, and without the size of our own terminal."""
    left_out = {*KEYS, "COLUMNS", "LINES"}
    kept = {name: value for name, value in os.environ.items() if name not in left_out}
    return {**kept, "TERM": "xterm-256color", **extra}


def plain(text: str) -> str:
    """A terminal's output without its colours and movements."""
    return ESCAPES.sub("", text)


class Command:
    """A running command and what it has written."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self._text = ""

    async def says(self, pattern: str) -> re.Match[str]:
        """Wait until it writes the pattern, below what an earlier wait has found."""
        assert self.process.stdout is not None
        while not (found := re.search(pattern, self._text)):
            more = await self.process.stdout.read(4096)
            assert more, f"the command ended and never said {pattern!r}:\n{self._text}"
            self._text += more.decode()
        self._text = self._text[found.end() :]
        return found

    async def address(self) -> str:
        """Where a server that has just been started is reached."""
        return (await self.says(r"Open (http://127\.0\.0\.1:\d+)/"))[1]

    def write(self, text: str) -> None:
        """Type into its pipe."""
        assert self.process.stdin is not None
        self.process.stdin.write(text.encode())

    async def ends(self, text: str = "") -> str:
        """Give it its last input and wait for its end; what it wrote since the last wait."""
        output, _ = await self.process.communicate(text.encode())
        return self._text + output.decode()

    @property
    def status(self) -> int | None:
        """Its exit status."""
        return self.process.returncode


def _own_session() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # whoever runs the tests may ignore it
    os.setsid()


@asynccontextmanager
async def thinkwell(
    *arguments: str, store: Path | None = None, env: Mapping[str, str] | None = None
) -> AsyncIterator[Command]:
    """A running command; it and what it started end with the block."""
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        *arguments,
        *(() if store is None else ("--store", f"sqlite:///{store}")),
        stdin=PIPE,
        stdout=PIPE,
        stderr=STDOUT,
        env=environment(**(env or {})),
        preexec_fn=_own_session,
    )
    try:
        yield Command(process)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.communicate()


class Terminal:
    """A person's terminal: what is typed goes in, what is shown is collected."""

    def __init__(self, process: Process, master: int) -> None:
        self.process = process
        self._master = master
        self._arrived = asyncio.Event()
        self._raw = b""
        self._read = 0
        asyncio.get_running_loop().add_reader(master, self._collect)

    @property
    def text(self) -> str:
        """Everything shown so far."""
        return plain(self._raw.decode(errors="ignore"))

    async def shows(self, pattern: str) -> re.Match[str]:
        """Wait until the pattern is shown, below what an earlier wait has found."""
        return (await self.shows_all(pattern))[0]

    async def shows_all(self, *patterns: str) -> list[re.Match[str]]:
        """Wait until all are shown, in whatever order."""
        while True:
            found = [re.search(pattern, self.text[self._read :]) for pattern in patterns]
            matches = [match for match in found if match is not None]
            if len(matches) == len(patterns):
                self._read += max(match.end() for match in matches)
                return matches
            self._arrived.clear()
            await self._arrived.wait()

    def type(self, keys: str) -> None:
        """Press keys; Enter is a newline, Ctrl-C is \\x03."""
        os.write(self._master, keys.encode())

    async def prompt(self) -> None:
        """Wait until the program asks for a message."""
        await self.shows("› ")

    def close(self) -> None:
        """Let go of the terminal."""
        asyncio.get_running_loop().remove_reader(self._master)
        os.close(self._master)

    def _collect(self) -> None:
        try:
            self._raw += os.read(self._master, 65536)
        except OSError:  # the program has ended
            asyncio.get_running_loop().remove_reader(self._master)
        self._arrived.set()


@asynccontextmanager
async def terminal(*arguments: str) -> AsyncIterator[Terminal]:
    """A command in a terminal of 100 × 30; ended with the block if it still runs."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))

    def own_terminal() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # whoever runs the tests may ignore it
        os.setsid()
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)

    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        *arguments,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=environment(),
        preexec_fn=own_terminal,
    )
    os.close(slave)
    shown = Terminal(process, master)
    try:
        yield shown
    except BaseException:
        sys.stdout.write(shown.text)  # what a person saw instead
        raise
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        shown.close()
