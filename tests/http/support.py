"""A real server with one chat agent, and a client that reads its event streams."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from io import BytesIO
from pathlib import Path
from types import TracebackType
from typing import Any

import aiohttp

from tests.unit.messages.helpers import fold_chunks
from tests.wire.serving import serving
from thinkwell import App, Think, tool
from thinkwell.core.errors import ModelError
from thinkwell.messages.message import UIMessage, user_message
from thinkwell.testing import ScriptedModel
from thinkwell.tools.tool import client_tool
from thinkwell.wire.http import HttpRequest, HttpResponse

Chunk = dict[str, Any]
DOWN = ModelError("the model is down", provider="scripted")


class Guide(Think):
    """Has a tool of each kind: run here, run by the client, run when a person allows it."""

    time_limits = {"grace": 0.0}
    model_of: dict[str, ScriptedModel]
    runs: list[str]

    def get_model(self) -> Any:
        return self.model_of[self.name]

    @tool
    async def add(self, a: int, b: int) -> int:
        """Add."""
        return a + b

    @tool(needs_approval=True)
    async def delete(self, path: str) -> str:
        """Delete a file."""
        self.runs.append(path)
        return f"deleted {path}"

    def get_tools(self) -> Any:
        return {"ask": client_tool("ask")}

    def on_request(self, request: HttpRequest) -> Any:
        """Shows what came, or whatever the path asks for."""
        match request.path:
            case "echo":
                who = request.principal and request.principal.id
                asked = {"method": request.method, "query": dict(request.query)}
                return {**asked, "body": request.body.decode(), "who": who}
            case "runs":
                return self.runs
            case "text":
                return "plain"
            case "bytes":
                return b"\0raw"
            case "own":
                return HttpResponse(status=418, body=b"teapot", headers={"x-own": "1"})
            case "breaks":
                raise RuntimeError("secret")
            case _:
                return None


class Stream:
    """An answer that is a stream of events, read as it comes."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self.answer = answer
        self.chunks: list[Chunk] = []
        self.comments: list[str] = []
        self.done = False

    async def __aenter__(self) -> Stream:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.answer.close()

    async def next(self) -> bool:
        """Read one event; False at the end of the answer."""
        line = (await self.answer.content.readline()).decode()
        if not line:
            return False
        assert await self.answer.content.readline() == b"\n"
        assert not self.done, "nothing may follow [DONE]"
        if line.startswith(":"):
            self.comments.append(line.strip())
        elif line == "data: [DONE]\n":
            self.done = True
        else:
            self.chunks.append(json.loads(line.removeprefix("data: ")))
        return True

    async def until(self, kind: str, count: int = 1) -> None:
        """Read until that many chunks of that kind have come."""
        while sum(chunk["type"] == kind for chunk in self.chunks) < count:
            assert await self.next(), f"the stream ended before {kind}"

    async def read(self) -> list[Chunk]:
        """Read to the end; the chunks of the whole stream."""
        while await self.next():
            pass
        assert self.done
        return self.chunks

    def kinds(self) -> list[str]:
        """The kinds of all chunks so far."""
        return [chunk["type"] for chunk in self.chunks]

    def text(self) -> str:
        """All text so far."""
        return "".join(c["delta"] for c in self.chunks if c["type"] == "text-delta")

    def message(self) -> UIMessage:
        """What a client that had nothing would show."""
        return fold_chunks(self.chunks, "unknown")


class Client:
    """A program that talks to one agent over HTTP, as `DefaultChatTransport` does."""

    def __init__(self, url: str, session: aiohttp.ClientSession, model: ScriptedModel) -> None:
        self.url = url
        self.session = session
        self.model = model
        self.app: Any = None
        """The app that serves the agent."""
        self.shown: list[UIMessage] = []
        """What the client shows; sent with every request."""

    async def post(self, path: str, body: Any = None, **headers: str) -> aiohttp.ClientResponse:
        """Post JSON."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"content-type": "application/json"} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        return await self.session.post(f"{self.url}/{path}", data=BytesIO(data), headers=headers)

    async def get(self, path: str) -> aiohttp.ClientResponse:
        """Get."""
        return await self.session.get(f"{self.url}/{path}")

    async def send(self, text: str, **body: Any) -> Stream:
        """Say something new."""
        self.shown.append(user_message(f"u{len(self.shown)}", text))
        return await self.submit(**body)

    async def submit(self, trigger: str = "submit-message", **body: Any) -> Stream:
        """Send the list as it is shown."""
        sent = {"id": "chat", "messages": self.shown, "trigger": trigger, **body}
        answer = await self.post("chat", sent)
        assert answer.status == 200, await answer.text()
        return Stream(answer)

    async def resume(self) -> Stream | None:
        """Join what runs."""
        answer = await self.get("chat/my%20chat/stream")
        if answer.status == 204:
            return None
        assert answer.status == 200
        return Stream(answer)

    async def runs(self) -> list[str]:
        """What the agent has written down."""
        return await (await self.get("runs")).json()

    async def stored(self) -> list[UIMessage]:
        """The server's transcript."""
        return await (await self.get("get-messages")).json()

    async def say(self, text: str, **body: Any) -> UIMessage:
        """Say something and show the answer."""
        stream = await self.send(text, **body)
        await stream.read()
        self.shown.append(stream.message())
        return self.shown[-1]

    def settle(self, call_id: str, **fields: Any) -> None:
        """Change a call of the last message shown, as `addToolOutput` and the like do."""
        for part in self.shown[-1]["parts"]:
            if part.get("toolCallId") == call_id:
                part.update(fields)

    async def socket(self) -> aiohttp.ClientWebSocketResponse:
        """Open a tab that talks over a WebSocket."""
        return await self.session.ws_connect(self.url)


@asynccontextmanager
async def talking(
    *steps: Any,
    store: str = "sqlite://:memory:",
    cls: type[Guide] = Guide,
    names: Sequence[str] = ("x",),
    **options: Any,
) -> AsyncIterator[Client]:
    """Serve agents whose model plays `steps`; the client talks to the first."""
    model = ScriptedModel(steps)
    fields = {"model_of": dict.fromkeys(names, model), "runs": []}
    made = type("Served", (cls,), fields, name="guide")
    app = App(agents=[made], store=store, **options)
    async with serving(app) as url, aiohttp.ClientSession() as session:
        client = Client(f"{url}/agents/guide/{names[0]}", session, model)
        client.app = app
        yield client


def file_store(folder: Path) -> str:
    """A store in a real file."""
    return f"sqlite:///{folder / 'test.db'}"


async def frames_until(
    socket: aiohttp.ClientWebSocketResponse, kind: str, **fields: Any
) -> list[dict[str, Any]]:
    """The frames of a tab up to the first of that kind with these fields."""
    frames: list[dict[str, Any]] = []
    async with asyncio.timeout(30):
        while True:
            frames.append(await socket.receive_json())
            if frames[-1]["type"] == kind and fields.items() <= frames[-1].items():
                return frames
