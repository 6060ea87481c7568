"""The same pages without a browser: jsdom windows in a Node process, on a WebSocket of Node.

Node dispatches all frames of one read without a turn of the microtask queue in between, which no
browser does; what works there works whatever the network joins.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from tests.browser.hooks.tab import SAY_FAST

SCRIPT = Path(__file__).parent / "windows.mjs"
PATIENCE = 30.0
ONE_LINE = 64 * 1024 * 1024
BECOMES = """async (condition) => {
  while (!window.eval(condition)) await new Promise((again) => setTimeout(again, 10));
}"""


@contextmanager
def node_process() -> Iterator[int]:
    """A Node process for the windows of many tests, and the port it listens on."""
    node = ["node", str(SCRIPT)]
    with subprocess.Popen(node, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        port = process.stdout.readline()
        assert port, "the pages did not start in Node: run `make node-tests`"
        yield int(port)
        process.stdin.close()  # the sign for it to end


@asynccontextmanager
async def node_windows(port: int, socket: str) -> AsyncIterator[Windows]:
    """The windows of one test; they close with it. `socket` is the package of their WebSocket."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=ONE_LINE)
    windows = Windows(writer, socket)
    reading = asyncio.create_task(windows.read(reader))
    try:
        yield windows
    finally:
        writer.write_eof()
        await reading
        writer.close()


class Windows:
    """One test's line to the Node process, and what its windows tell."""

    def __init__(self, line: asyncio.StreamWriter, socket: str) -> None:
        self._line = line
        self._socket = socket
        self._tabs: list[NodeTab] = []

    async def tab(self, bundle: str, url: str) -> NodeTab:
        """A new window with one of the bundles."""
        address = {"bundle": bundle, "url": url, "socket": self._socket}
        tab = NodeTab(self, len(self._tabs), address)
        self._tabs.append(tab)
        await tab.reload()
        return tab

    def write(self, command: dict[str, Any]) -> None:
        """Send one command."""
        self._line.write(json.dumps(command).encode() + b"\n")

    async def read(self, line: asyncio.StreamReader) -> None:
        """Hand on what the windows tell, until the line ends."""
        async for text in line:
            said = json.loads(text)
            for tab in [self._tabs[said["tab"]]] if "tab" in said else self._tabs:
                await tab.heard(said)
        for tab in self._tabs:
            await tab.lost()


class NodeTab:
    """A window, with the verbs of `Tab`."""

    def __init__(self, windows: Windows, number: int, address: dict[str, str]) -> None:
        self._windows = windows
        self._number = number
        self._address = address
        self.bundle = address["bundle"]
        self.problems: list[str] = []
        self.seen: list[dict[str, Any]] = []
        """Everything it has shown since it was opened, in order."""
        self._changed = asyncio.Condition()
        self._forgiven: tuple[str, ...] = ()
        self._values: dict[int, Any] = {}
        self._runs = 0
        self._opening = 0
        self._lost = False

    def tell(self, command: str, **rest: Any) -> None:
        self._windows.write(
            {"command": command, "tab": self._number, "opening": self._opening, **rest}
        )

    async def heard(self, said: dict[str, Any]) -> None:
        async with self._changed:
            if "shows" in said:
                if said["opening"] == self._opening:  # not the last words before a reload
                    self.seen.append(said["shows"])
            elif "run" in said:
                self._values[said["run"]] = said["value"]
            elif not any(text in said["problem"] for text in self._forgiven):
                self.problems.append(said["problem"])
            self._changed.notify_all()

    async def lost(self) -> None:
        """There is no process behind it any more."""
        async with self._changed:
            self._lost = True
            self._changed.notify_all()

    def forgive(self, *texts: str) -> None:
        """Complaints with one of these texts are part of the scenario."""
        self._forgiven += texts

    async def until(self, wanted: Callable[[dict[str, Any]], bool]) -> None:
        """Wait until the window shows what is wanted."""
        await self._wait(lambda: bool(self.seen) and wanted(self.seen[-1]))

    async def _wait(self, reached: Callable[[], bool]) -> None:
        try:
            async with asyncio.timeout(PATIENCE), self._changed:
                await self._changed.wait_for(lambda: self._lost or reached())
        except TimeoutError:
            last = self.seen[-3:]
            raise AssertionError(f"it shows {last}, and complains: {self.problems}") from None
        assert not self._lost, f"the line to Node ended; it complained: {self.problems}"

    async def connected(self) -> None:
        await self.until(lambda shown: shown["connected"])

    async def say(self, words: str) -> None:
        await self.write(words)
        await self.press("Send")

    async def say_fast(self, *words: str, pause: int = 0) -> None:
        await self.run(SAY_FAST, [words, pause])

    async def write(self, words: str) -> None:
        await self.until(lambda shown: "Send" in shown["buttons"])
        self.tell("write", words=words)

    async def press(self, name: str) -> None:
        await self.until(lambda shown: name in shown["buttons"])
        self.tell("press", name=name)

    async def shows(self, *bubbles: str) -> None:
        wanted = _as_seen(bubbles)
        await self.until(lambda shown: shown["bubbles"] == wanted)

    async def rests_with(self, *bubbles: str) -> None:
        wanted = ("ready", _as_seen(bubbles))
        await self.until(lambda shown: (shown["labels"].get("Status"), shown["bubbles"]) == wanted)

    async def says_last(self, words: str) -> None:
        (end,) = _as_seen([words])
        await self.until(lambda shown: any(b.endswith(end) for b in shown["bubbles"][-1:]))

    async def mentions(self, words: str, times: int) -> None:
        await self.until(lambda shown: sum(words in b for b in shown["bubbles"]) == times)

    async def offers(self, button: str, times: int) -> None:
        await self.until(lambda shown: shown["buttons"].count(button) == times)

    async def alarms(self) -> None:
        await self.until(lambda shown: bool(shown["alert"]))

    async def label_is(self, name: str, text: str) -> None:
        await self.until(lambda shown: shown["labels"].get(name) == text)

    async def status_is(self, status: str) -> None:
        await self.label_is("Status", status)

    async def run(self, script: str, argument: Any = None) -> Any:
        self._runs += 1
        number = self._runs
        self.tell("run", run=number, script=script, argument=argument)
        await self._wait(lambda: number in self._values or bool(self.problems))
        assert self.problems == []
        return self._values[number]

    async def becomes(self, condition: str) -> None:
        await self.run(BECOMES, condition)

    async def reload(self) -> None:
        self._opening += 1
        self.seen.clear()
        self.tell("open", **self._address)

    async def close(self) -> None:
        self.tell("close")


def _as_seen(texts: Iterable[str]) -> list[str]:
    """With spaces as a person sees them."""
    return [" ".join(text.split()) for text in texts]
