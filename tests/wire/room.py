"""One served agent for an acceptance test: real port, real SQLite file, a model that has a script.

`room(*steps, cls=...)` serves `cls` with a `ScriptedModel` that plays the steps. Tabs are opened
with `await room.tab()`; everything is closed at the end of the block.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import new_class
from typing import Any

from tests.wire.client import Browser, Tab, browser
from tests.wire.serving import serving
from thinkwell import App, Think, tool
from thinkwell.messages.message import UIMessage
from thinkwell.testing import ScriptedModel
from thinkwell.tools.tool import client_tool

LOCATE: dict[str, Any] = {"name": "locate", "parameters": {"type": "object"}}
"""A tool that the browser runs."""


class Chat(Think):
    """A chat with one tool of each kind: the server's, the browser's, and one to be allowed."""

    time_limits = {"grace": 0.0}

    @tool
    async def add(self, a: int, b: int) -> int:
        """Add."""
        return a + b

    @tool(needs_approval=True)
    async def destroy(self, target: str) -> str:
        """Must be allowed."""
        return f"destroyed {target}"

    def get_tools(self) -> Any:
        return {"ask_user": client_tool("ask_user")}


class Room:
    """A running server with one agent, and the browser that talks to it."""

    def __init__(self, app: App, the_browser: Browser, model: ScriptedModel, path: str) -> None:
        self.app = app
        self.browser = the_browser
        self.model = model
        self.path = path

    @property
    def agent(self) -> Any:
        """The stub of the agent the tabs talk to."""
        return self.app.agent(self.app.agents[0], self.path.rsplit("/", 1)[-1])

    async def tab(self, connection_id: str | None = None, **query: str) -> Tab:
        """A tab that has read the connect sequence."""
        return await self.browser.tab(self.path, connection_id, **query)

    async def open(self, connection_id: str | None = None, **query: str) -> Tab:
        """A tab that has read nothing."""
        return await self.browser.open(self.path, connection_id, **query)

    async def tabs(self) -> tuple[Tab, Tab]:
        """The tab that asks and another one."""
        return await self.tab("R"), await self.tab("O")

    async def messages(self) -> list[UIMessage]:
        """What `get-messages` shows."""
        status, text = await self.browser.get(f"{self.path}/get-messages")
        assert status == 200
        return json.loads(text)

    async def texts(self) -> list[str]:
        """The texts of the transcript."""
        return [text_of(message) for message in await self.messages()]


def text_of(message: UIMessage) -> str:
    return "".join(part["text"] for part in message["parts"] if part["type"] == "text")


def part_of(message: UIMessage, call: str = "call-1") -> dict[str, Any]:
    """The tool part of a call."""
    (part,) = [part for part in message["parts"] if part.get("toolCallId") == call]
    return part


def with_settings(cls: type[Any], **settings: Any) -> type[Any]:
    """A class with other settings, under the same name in URLs."""
    return new_class(
        cls.__name__, (cls,), {"name": cls.agent_class}, lambda body: body.update(settings)
    )


@asynccontextmanager
async def room(
    *steps: Any,
    cls: type[Any] = Chat,
    name: str = "x",
    store: Path | None = None,
    **options: Any,
) -> AsyncIterator[Room]:
    """Serve one agent class; `options` are those of `App`."""
    model = ScriptedModel(steps)
    if issubclass(cls, Think):
        cls = with_settings(cls, model=model)
    with tempfile.TemporaryDirectory() as folder:
        path = store or Path(folder) / "acceptance.db"
        app = App(agents=[cls], store=f"sqlite:///{path}", **options)
        prefix = options.get("prefix", "agents")
        async with serving(app) as url, browser(url) as the_browser:
            yield Room(app, the_browser, model, f"/{prefix}/{cls.agent_class}/{name}")
