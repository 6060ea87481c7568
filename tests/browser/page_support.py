"""The page in front of an agent that says what a test has written down."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import aiohttp
from playwright.async_api import Locator, Page, expect
from starlette.applications import Starlette
from starlette.routing import Mount

from tests.cli.commands import environment
from tests.wire.serving import serving
from thinkwell import App, Think, ToolError, tool
from thinkwell.features import Suggestions
from thinkwell.testing import ScriptedModel

expect.set_options(timeout=30_000)


@dataclass
class Backstage:
    """What a test and its agent share."""

    model: ScriptedModel = field(default_factory=ScriptedModel)
    deleted: list[str] = field(default_factory=list[str])
    """What the tool `delete_report` was allowed to do."""
    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    """Lets the tool `look_around` come to its end."""


class Talker(Think):
    """Has a tool of every kind."""

    features: ClassVar = [Suggestions({"A tour": "What can you do?"})]
    backstage: Backstage

    def get_model(self) -> Any:
        return self.backstage.model

    @tool
    async def get_weather(self, city: str) -> dict[str, str]:
        """Weather."""
        return {"city": city, "sky": "sunny"}

    @tool
    async def look_around(self) -> AsyncIterator[str]:
        """Says how far it is."""
        yield "half way"
        await self.backstage.go_on.wait()
        yield "all seen"

    @tool
    async def fails(self) -> str:
        """Never works."""
        raise ToolError("no such luck")

    @tool(needs_approval=True)
    async def delete_report(self, title: str) -> str:
        """Somebody has to allow it."""
        self.backstage.deleted.append(title)
        return f"{title} is gone"


def app_with(backstage: Backstage, store: str = "sqlite://:memory:", **options: Any) -> App:
    """An app whose only agent has this backstage."""
    agent = type("Talker", (Talker,), {"backstage": backstage})
    return App(agents=[agent], store=store, **options)


class ChatPage:
    """The page, in a reader's words."""

    def __init__(self, page: Page, backstage: Backstage | None = None) -> None:
        self.page = page
        self.backstage = backstage or Backstage()
        self.model = self.backstage.model
        self.answers = page.get_by_role("article", name="Assistant")
        self.asked = page.get_by_role("article", name="You")
        self.status = page.get_by_label("Status")
        self.field = page.get_by_label("Message", exact=True)
        self.view = page.get_by_role("log")

    def tool(self, name: str) -> Locator:
        """The card of a tool call."""
        return self.page.get_by_label(f"Tool {name}")

    def button(self, name: str) -> Locator:
        """A button by its name."""
        return self.page.get_by_role("button", name=name, exact=True)

    async def say(self, words: str) -> None:
        """Type and press Enter."""
        await self.field.fill(words)
        await self.field.press("Enter")

    async def settled(self) -> None:
        """The answer is complete and the page says so."""
        await expect(self.status).to_have_text("ready")

    async def exchange(self, words: str, answer: str) -> None:
        """Say something and wait for the whole answer."""
        self.model.add(answer)
        await self.say(words)
        await expect(self.page.get_by_text(answer, exact=True)).to_be_visible()
        await self.settled()

    async def prose(self) -> list[str]:
        """The text of every answer, without its buttons."""
        return await self.answers.locator(".prose").all_inner_texts()


@asynccontextmanager
async def chatting(page: Page, *, mounted_at: str = "") -> AsyncIterator[ChatPage]:
    """Serve an agent, perhaps inside another app, and open the page in front of it."""
    backstage = Backstage()
    app = app_with(backstage)
    outer = Starlette(routes=[Mount(mounted_at, app=app)]) if mounted_at else app
    async with app, serving(outer) as url:
        await page.goto(url + mounted_at)
        chat = ChatPage(page, backstage)
        await chat.settled()
        try:
            yield chat
        finally:
            backstage.go_on.set()
            await page.goto("about:blank")  # before the server goes, or the page would complain


class Served:
    """`thinkwell serve`, or another command: can be killed and started at the same address."""

    def __init__(self, agents: Path, store: Path, *command: str) -> None:
        self._command = command or ("serve",)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self._arguments = [str(agents), "--port", str(self._port), "--store", f"sqlite:///{store}"]
        self._process: asyncio.subprocess.Process | None = None
        self.url = f"http://127.0.0.1:{self._port}"

    async def start(self) -> None:
        """Returns once it answers."""
        command = [sys.executable, "-m", "thinkwell.cli", *self._command, *self._arguments]
        self._process = await asyncio.create_subprocess_exec(*command, env=environment())
        async with aiohttp.ClientSession() as client:
            while True:
                assert self._process.returncode is None, "the server did not start"
                with contextlib.suppress(aiohttp.ClientError):
                    async with client.get(f"{self.url}/healthz") as answer:
                        if answer.status == 200:
                            return
                await asyncio.sleep(0.05)

    async def stop(self) -> None:
        """As Ctrl-C does: what it started ends as well."""
        if self._process and self._process.returncode is None:
            self._process.terminate()
            await self._process.wait()

    async def kill(self) -> None:
        """As `kill -9` does."""
        if self._process and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()
