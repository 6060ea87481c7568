"""The same pages without a browser: jsdom windows in a Node process, on a WebSocket of Node.

Node dispatches all frames of one read without a turn of the microtask queue in between, which no
browser does; what works there works whatever the network joins.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).parent / "windows.mjs"
PATIENCE = 30.0


class Windows:
    """The Node process, and what its windows tell."""

    def __init__(self, process: asyncio.subprocess.Process, socket: str) -> None:
        self._process = process
        self._socket = socket
        self._tabs: dict[int, NodeTab] = {}

    async def tab(self, bundle: str, url: str) -> NodeTab:
        """A new window with one of the bundles."""
        tab = self._tabs[len(self._tabs)] = NodeTab(self, len(self._tabs), bundle)
        tab.address = {"bundle": bundle, "url": url, "socket": self._socket}
        tab.tell("open", **tab.address)
        return tab

    def write(self, command: dict[str, Any]) -> None:
        """Send one command."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command).encode() + b"\n")

    async def read(self) -> None:
        """Hand on what the windows tell, until the process ends."""
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            said = json.loads(line)
            for tab in [self._tabs[said["tab"]]] if "tab" in said else self._tabs.values():
                await tab.heard(said)


class NodeTab:
    """A window, with the verbs of `Tab`."""

    address: dict[str, str]

    def __init__(self, windows: Windows, number: int, bundle: str) -> None:
        self._windows = windows
        self._number = number
        self.bundle = bundle
        self.problems: list[str] = []
        self.seen: list[dict[str, Any]] = []
        """Everything it has shown, in order."""
        self._changed = asyncio.Condition()
        self._forgiven: tuple[str, ...] = ()
        self._values: dict[int, Any] = {}
        self._runs = 0

    def tell(self, command: str, **rest: Any) -> None:
        self._windows.write({"command": command, "tab": self._number, **rest})

    async def heard(self, said: dict[str, Any]) -> None:
        async with self._changed:
            if "shows" in said:
                self.seen.append(said["shows"])
            elif "run" in said:
                self._values[said["run"]] = said.get("value")
            elif not any(text in said["problem"] for text in self._forgiven):
                self.problems.append(said["problem"])
            self._changed.notify_all()

    def forgive(self, *texts: str) -> None:
        """Complaints with one of these texts are part of the scenario."""
        self._forgiven += texts

    async def until(self, wanted: Callable[[dict[str, Any]], bool]) -> None:
        """Wait until the window shows what is wanted."""
        try:
            async with asyncio.timeout(PATIENCE), self._changed:
                await self._changed.wait_for(lambda: bool(self.seen) and wanted(self.seen[-1]))
        except TimeoutError:
            last = self.seen[-3:]
            raise AssertionError(f"it shows {last}, and complains: {self.problems}") from None

    async def connected(self) -> None:
        await self.until(lambda shown: shown["connected"])

    async def say(self, words: str) -> None:
        await self.write(words)
        await self.press("Send")

    async def write(self, words: str) -> None:
        self.tell("write", words=words)

    async def press(self, name: str) -> None:
        await self.until(lambda shown: name in shown["buttons"])
        self.tell("press", name=name)

    async def shows(self, *bubbles: str) -> None:
        await self.until(lambda shown: shown["bubbles"] == list(bubbles))

    async def says_last(self, words: str) -> None:
        """The last bubble ends with these words."""
        await self.until(lambda shown: any(b.endswith(words) for b in shown["bubbles"][-1:]))

    async def mentions(self, words: str, times: int) -> None:
        await self.until(lambda shown: sum(words in b for b in shown["bubbles"]) == times)

    async def offers(self, button: str, times: int) -> None:
        await self.until(lambda shown: sum(button in b for b in shown["buttons"]) == times)

    async def alarms(self) -> None:
        await self.until(lambda shown: bool(shown["alert"]))

    async def status_is(self, status: str) -> None:
        await self.until(lambda shown: shown["status"] == status)

    async def rests_with(self, *bubbles: str) -> None:
        await self.until(
            lambda shown: shown["status"] == "ready" and shown["bubbles"] == list(bubbles)
        )

    async def run(self, script: str, argument: Any = None) -> Any:
        self._runs += 1
        number = self._runs
        self.tell("run", run=number, script=script, argument=argument)
        async with asyncio.timeout(PATIENCE), self._changed:
            await self._changed.wait_for(lambda: number in self._values or self.problems)
        assert self.problems == []
        return self._values[number]

    async def reload(self) -> None:
        self.seen.clear()
        self.tell("open", **self.address)

    async def close(self) -> None:
        self.tell("close")


@asynccontextmanager
async def node_windows(socket: str) -> AsyncIterator[Windows]:
    """A Node process for the windows of one test."""
    process = await asyncio.create_subprocess_exec(
        "node",
        str(SCRIPT),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=64 * 1024 * 1024,
    )
    windows = Windows(process, socket)
    reading = asyncio.create_task(windows.read())
    try:
        yield windows
    finally:
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()
        await reading
