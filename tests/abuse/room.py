"""A real server with gated answers, and tabs on real sockets: the stage of the state machine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection
from contextlib import suppress
from itertools import count
from typing import Any

import aiohttp
import websockets
from websockets.asyncio.client import ClientConnection, connect

from tests.abuse.client_frames import Frame
from tests.abuse.npm_fold import Message
from tests.abuse.tab import Tab
from thinkwell import Think, ToolContext, tool
from thinkwell.core.tasks import TaskOwner
from thinkwell.messages.model_messages import TextContent, UserMessage
from thinkwell.models.base import ModelRequest, TextDelta, TextEnd, TextStart
from thinkwell.testing import Gate, ScriptedModel
from thinkwell.testing.scripted import Piece, call

DEADLINE = 30.0
STEPS = 6


class Door(Gate):
    """A gate that tells whether the model stands at it."""

    @property
    def held(self) -> bool:
        return self._reached.is_set() and not self._opened.is_set()

    @property
    def passed(self) -> bool:
        return self._opened.is_set()


class Script:
    """What the model of one agent says, with a gate behind every word."""

    def __init__(self) -> None:
        self.gates: list[Door] = []
        self._answers = 0
        self.open = False
        """Whether gates let everything pass."""

    def answer(self, request: ModelRequest) -> list[Piece]:
        """The next answer: some words, then what the question asks for."""
        self._answers += 1
        words = [f"{self._answers}.{number} " for number in range(3)]
        pieces: list[Piece] = [TextStart("t")]
        for word in words:
            pieces += [TextDelta("t", word), self._gate()]
        return [*pieces, TextEnd("t"), *self._calls(request)]

    def advance(self) -> None:
        """Let the model go on to its next word."""
        self.gates = [gate for gate in self.gates if not gate.passed]
        if self.gates:
            self.gates.pop(0).open()

    def release(self) -> None:
        """Let it say all it has to say."""
        self.open = True
        while self.gates:
            self.advance()

    @property
    def held(self) -> bool:
        """Whether the model stands at a gate."""
        return any(gate.held for gate in self.gates)

    def _gate(self) -> Gate:
        gate = Door()
        if self.open:
            gate.open()
        else:
            self.gates.append(gate)
        return gate

    def _calls(self, request: ModelRequest) -> list[Piece]:
        last = request.messages[-1] if request.messages else None
        if not isinstance(last, UserMessage):
            return []
        said = "".join(part.text for part in last.content if isinstance(part, TextContent))
        names = [name for name in ("ask", "pay", "look") if f"call:{name}" in said]
        return [call(name, {}, id=f"{name}-{self._answers}") for name in names]


SCRIPTS: dict[str, Script] = {}


class Room(Think):
    """An agent whose model waits at gates."""

    def get_model(self) -> ScriptedModel:
        script = SCRIPTS[self.name]
        return ScriptedModel([script.answer] * STEPS)

    @tool
    async def look(self, ctx: ToolContext) -> str:
        """Runs at once."""
        return "seen"

    @tool(needs_approval=True)
    async def pay(self, ctx: ToolContext) -> str:
        """Waits for somebody's leave."""
        return "paid"

    async def is_idle(self) -> bool:
        """Whether no turn runs and none waits."""
        return not self._turns.busy


class Wire:
    """One tab on a real socket; what it says while it is offline waits for the next socket."""

    def __init__(self, url: str, name: str) -> None:
        self._url = url
        self._unsent: list[Frame] = []
        self._socket: ClientConnection | None = None
        self._tasks = TaskOwner("tab")
        self._answers: dict[str, asyncio.Future[Any]] = {}
        self._marks = count()
        self._wake = asyncio.Event()
        self.log: list[str] = []
        self.tab = Tab(name, self._say)
        self._first = True

    @property
    def online(self) -> bool:
        return self._socket is not None

    @property
    def loaded(self) -> bool:
        """Whether something waits for its next socket."""
        return self._socket is None and bool(self._unsent)

    async def open(self) -> None:
        """Connect, as a new page or after a drop."""
        url = self._url.replace("http", "ws", 1)
        pk = f"_pk={self.tab.name}"
        self._socket = await connect(f"{url}?{pk}", max_size=None, close_timeout=DEADLINE)
        self.log.append("-- open")
        self.tab.opened(first=self._first)
        self._first = False
        self._tasks.spawn(self._read(self._socket), name="read")
        self._tasks.spawn(self._write(self._socket), name="write")
        self._wake.set()

    async def load(self) -> None:
        """What a new page does first: fetch the transcript."""
        self.tab.list.messages = await transcript(self._url)

    async def drop(self) -> None:
        """The socket dies without a word: what is under way in either direction is lost."""
        socket, self._socket = self._socket, None
        if socket is not None:
            socket.transport.abort()
            await self._tasks.close()
            self._tasks = TaskOwner("tab")
            self.log.append("-- closed")
            self.tab.closed()

    async def settle(self) -> None:
        """Until everything said so far has been answered, and the answers have been read."""
        if self._socket is None:
            return
        await self.call("barrier")

    async def call(self, method: str) -> Any:
        """Call a method of the agent; None if there is no such method."""
        mark = f"call-{next(self._marks)}"
        answer = self._answers[mark] = asyncio.get_running_loop().create_future()
        self._say({"type": "rpc", "id": mark, "method": method, "args": []})
        async with asyncio.timeout(DEADLINE):
            return await answer

    def _say(self, frame: Frame) -> None:
        self._unsent.append(frame)
        self._wake.set()

    async def _write(self, socket: ClientConnection) -> None:
        with suppress(websockets.ConnectionClosed):
            while True:
                while self._unsent:
                    frame = self._unsent.pop(0)
                    if frame["type"] != "rpc":
                        self.log.append(f"> {json.dumps(frame)}")
                    await socket.send(json.dumps(frame))
                self._wake.clear()
                await self._wake.wait()

    async def _read(self, socket: ClientConnection) -> None:
        with suppress(websockets.ConnectionClosed):
            async for text in socket:
                if socket is not self._socket:
                    return
                frame = json.loads(text)
                if frame["type"] == "rpc":
                    self._answers.pop(frame["id"]).set_result(frame.get("result"))
                    continue
                self._take(frame)

    def _take(self, frame: Frame) -> None:
        self.log.append(f"< {json.dumps(frame)}")
        self.tab.receive(frame)


async def transcript(url: str) -> list[Message]:
    """The server's own view."""
    async with aiohttp.ClientSession() as http, http.get(f"{url}/get-messages") as answer:
        assert answer.status == 200
        return await answer.json()


async def until(condition: Callable[[], Any], what: Callable[[], str]) -> None:
    """Wait for a state."""
    try:
        async with asyncio.timeout(DEADLINE):
            while not await condition():
                await asyncio.sleep(0.005)
    except TimeoutError:
        raise AssertionError(f"never happened: {what()}") from None


def shown(messages: list[Message], cut: Collection[str] = ()) -> list[tuple[Any, ...]]:
    """What a person sees of a list of messages; of those that were `cut`, only that they exist."""
    return [
        (m["id"], m["role"], *([] if m["id"] in cut else [_part(part) for part in m["parts"]]))
        for m in messages
    ]


def _part(part: dict[str, Any]) -> tuple[Any, ...]:
    if part["type"] in ("text", "reasoning"):
        return (part["type"], part["text"])
    if "toolCallId" in part:
        seen = ("toolCallId", "state", "output", "errorText")
        return (part["type"], *(part.get(name) for name in seen))
    return (part["type"],)
