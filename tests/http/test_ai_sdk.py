"""The AI SDK's own chat and HTTP transport from npm against a real server (spec/01 §14).

`chat.mjs` is what `useChat` is without React. Asserted is what a person would see.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.http.support import DOWN, Client, talking
from thinkwell.testing import call, error, pause, reasoning, text

HERE = Path(__file__).parent
SDK = HERE.parent / "ai_sdk"

pytestmark = pytest.mark.xdist_group("ai_sdk")  # one installation


@pytest.fixture(scope="module", autouse=True)
def _installed() -> None:
    if not (SDK / "node_modules" / "ai").is_dir():
        npm = shutil.which("npm") or "npm"
        install = [npm, "install", "--no-audit", "--no-fund", "--no-package-lock"]
        subprocess.run(install, cwd=SDK, check=True, capture_output=True, timeout=50)


class Page:
    """A chat in Node: says what it shows after each command."""

    def __init__(self, process: asyncio.subprocess.Process, client: Client) -> None:
        self._process = process
        self.client = client
        self.messages: list[dict[str, Any]] = []
        self.status = ""
        self.error: str | None = None

    async def do(self, command: str, **options: Any) -> None:
        """Give a command and wait until it is done."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": command, **options}).encode() + b"\n")
        async with asyncio.timeout(40):
            line = await self._process.stdout.readline()
        assert line, "the chat broke"
        shown = json.loads(line)
        self.messages, self.status, self.error = shown["messages"], shown["status"], shown["error"]

    async def settled(self, part: str) -> None:
        """Until the text is there and the chat is ready."""
        await self.do("shows", part=part)
        await self.do("status", status="ready")

    def texts(self) -> list[str]:
        """The texts of each bubble."""
        return [
            "".join(part["text"] for part in message["parts"] if part["type"] == "text")
            for message in self.messages
        ]

    def tool(self, call_id: str = "call-1") -> dict[str, Any]:
        """A tool part that is shown."""
        parts = [part for message in self.messages for part in message["parts"]]
        return next(part for part in parts if part.get("toolCallId") == call_id)

    async def is_what_is_stored(self) -> bool:
        """Whether the bubbles are those of the server, by id and text."""
        stored = await self.client.stored()
        ids = [message["id"] for message in stored]
        return ids == [message["id"] for message in self.messages]


@asynccontextmanager
async def chatting(*steps: Any, **options: Any) -> AsyncIterator[Page]:
    """A page that talks to an agent whose model plays `steps`."""
    async with talking(*steps, **options) as client:
        node = shutil.which("node") or "node"
        process = await asyncio.create_subprocess_exec(
            node,
            str(HERE / "chat.mjs"),
            f"{client.url}/chat",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=2**24,
        )
        try:
            yield Page(process, client)
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


async def test_a_conversation():
    async with chatting([reasoning("hm"), text("one two")], "three") as page:
        await page.do("send", text="a")
        await page.settled("one two")
        await page.do("send", text="b")
        await page.settled("three")
        assert page.texts() == ["a", "one two", "b", "three"]
        assert await page.is_what_is_stored()


async def test_regenerate_and_edit():
    async with chatting("first", "second", "third") as page:
        await page.do("send", text="a")
        await page.settled("first")
        await page.do("regenerate")
        await page.settled("second")
        assert page.texts() == ["a", "second"]
        await page.do("edit", text="b", id=page.messages[0]["id"])
        await page.settled("third")
        assert page.texts() == ["b", "third"]


async def test_a_tool_of_the_server():
    async with chatting([call("add", {"a": 1, "b": 2})], "three") as page:
        await page.do("send", text="1+2?")
        await page.settled("three")
        assert page.tool()["output"] == 3
        assert len(page.messages) == 2


async def test_tools_of_the_client_go_on_by_themselves():
    asks = [call("ask", {"question": "where?"}), call("ask", {"question": "when?"})]
    async with chatting(asks, "here and now") as page:
        await page.do("send", text="?")
        await page.do("waits", id="call-2", state="input-available")
        await page.do("output", tool="ask", id="call-1", output="here")
        await page.do("output", tool="ask", id="call-2", output="now")
        await page.settled("here and now")
        assert page.texts() == ["?", "here and now"]
        assert (page.tool("call-1")["output"], page.tool("call-2")["output"]) == ("here", "now")
        assert await page.is_what_is_stored()


@pytest.mark.parametrize("approved", [True, False])
async def test_an_approval(approved: bool):
    async with chatting([call("delete", {"path": "a"})], "so be it") as page:
        await page.do("send", text="clean up")
        await page.do("waits", id="call-1", state="approval-requested")
        await page.do("decide", id=page.tool()["approval"]["id"], approved=approved)
        await page.settled("so be it")
        assert page.tool()["state"] == ("output-available" if approved else "output-denied")
        assert page.texts() == ["clean up", "so be it"]
        assert await page.client.runs() == (["a"] if approved else [])
        assert await page.is_what_is_stored()


async def test_a_stop():
    """14.6: `stop()` leaves; the endpoint stops"""
    gate = pause()
    async with chatting([text("one "), gate, text("two")], "three") as page:
        await page.do("send", text="a")
        await page.do("shows", part="one")
        await page.client.post("chat/stop")
        await page.do("status", status="ready")
        assert page.texts() == ["a", "one "]
        await page.do("send", text="b")
        await page.settled("three")
        assert await page.is_what_is_stored()


async def test_a_reload_in_the_middle():
    """14.5"""
    gate = pause()
    async with chatting([text("one "), gate, text("two")]) as page:
        await page.do("send", text="a")
        await page.do("shows", part="one")
        await page.do("reload")
        await page.do("shows", part="one")
        gate.open()
        await page.settled("one two")
        assert page.texts() == ["a", "one two"]
        assert await page.is_what_is_stored()


async def test_a_reload_in_the_middle_of_a_continuation():
    gate = pause()
    first = [text("Well. "), call("ask", {"question": "where?"})]
    async with chatting(first, [text("So "), gate, text("it is")]) as page:
        await page.do("send", text="?")
        await page.do("waits", id="call-1", state="input-available")
        await page.do("output", tool="ask", id="call-1", output="here")
        await page.do("shows", part="So")
        await page.do("reload")
        await page.do("shows", part="So")
        gate.open()
        await page.settled("it is")
        assert page.texts() == ["?", "Well. So it is"]
        assert page.tool()["output"] == "here"
        assert await page.is_what_is_stored()


async def test_a_failure_is_shown_and_the_next_message_works():
    async with chatting([text("half "), error(DOWN)], "again") as page:
        await page.do("send", text="a")
        await page.do("status", status="error")
        assert page.error == "Something went wrong while answering. Please try again."
        await page.do("send", text="b")
        await page.settled("again")
        assert page.error is None


async def test_a_refusal_is_shown_with_its_text():
    """14.4"""
    async with chatting(auth=lambda *_: None) as page:
        await page.do("send", text="a")
        await page.do("status", status="error")
        assert page.error == "Unauthorized"
