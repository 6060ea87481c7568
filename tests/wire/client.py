"""A tab of a browser, on a real WebSocket: it says frames and reads the server's, one by one.

`expect` takes the very next frame, `until` reads on to one, and `nothing_more` proves that nothing
else was sent: it calls a method that does not exist, and the refusal has to be the next frame.
Frames are named without the `cf_agent_` in front of most types.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import aiohttp

from thinkwell.messages.message import user_message

Frame = dict[str, Any]
PATIENCE = 30.0
"""Seconds until a frame that does not come fails the test."""
RESPONSE = "use_chat_response"
_numbers = count(1)


def kind_of(frame: Frame) -> str:
    """The short name of a frame; of the answer to a request, what it carries."""
    return str(frame.get("type")).removeprefix("cf_agent_")


def kinds(frames: Sequence[Frame]) -> list[str]:
    return [kind_of(frame) for frame in frames]


def chunk_of(frame: Frame) -> dict[str, Any]:
    """The chunk inside an answer frame."""
    return json.loads(frame["body"])


class Stream:
    """The frames of one request, in order."""

    def __init__(self, frames: Sequence[Frame]) -> None:
        self.frames = list(frames)

    @property
    def bodies(self) -> list[str]:
        """The chunks as they were sent, byte for byte."""
        return [frame["body"] for frame in self.frames if "seq" in frame]

    @property
    def chunks(self) -> list[dict[str, Any]]:
        return [json.loads(body) for body in self.bodies]

    @property
    def chunk_kinds(self) -> list[str]:
        return [chunk["type"] for chunk in self.chunks]

    @property
    def text(self) -> str:
        """The words a person reads."""
        return "".join(chunk["delta"] for chunk in self.chunks if chunk["type"] == "text-delta")

    @property
    def end(self) -> Frame:
        """The only frame that says `done`, and the last one."""
        (end,) = [frame for frame in self.frames if frame["done"]]
        assert self.frames[-1] is end
        return end


class Tab:
    """One connection."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, connection_id: str) -> None:
        self.socket = socket
        self.id = connection_id
        self.heard: list[Frame] = []
        """Every frame it has read."""
        self.greeting: list[Frame] = []
        """The frames of the connect sequence."""

    # What it reads

    async def hear(self) -> Frame:
        """The next frame. One that is no object is given as `{"text": ...}`."""
        async with asyncio.timeout(PATIENCE):
            text = await self.socket.receive_str()
        try:
            frame = json.loads(text)
        except ValueError:
            frame = None
        frame = frame if isinstance(frame, dict) else {"text": text}
        self.heard.append(frame)
        return frame

    async def expect(self, kind: str, **fields: Any) -> Frame:
        """The next frame, which has to be of that kind with these fields."""
        frame = await self.hear()
        assert (kind_of(frame), _picked(frame, fields)) == (kind, fields), frame
        return frame

    async def until(self, kind: str | Callable[[Frame], Any], **fields: Any) -> Frame:
        """Read on to a frame of that kind with these fields, or one that a function picks."""
        while True:
            frame = await self.hear()
            if callable(kind):
                if kind(frame):
                    return frame
            elif kind_of(frame) == kind and _picked(frame, fields) == fields:
                return frame

    async def stream(self, request: str = "q1") -> Stream:
        """Read on to the end of a request; its frames."""
        first = len(self.heard)
        await self.until(RESPONSE, id=request, done=True)
        return Stream([f for f in self.heard[first:] if _answers(f, request)])

    async def part(self, request: str = "q1") -> Stream:
        """Read on to the end of the next text part of a request; its frames."""
        first = len(self.heard)
        await self.until(lambda f: _answers(f, request) and '"text-end"' in f["body"])
        return Stream([f for f in self.heard[first:] if _answers(f, request)])

    async def before_now(self) -> list[Frame]:
        """Whatever the server had sent when it read a call of a method that does not exist."""
        first, call = len(self.heard), f"sync-{next(_numbers)}"
        await self.send(type="rpc", id=call, method="noSuchMethod", args=[])
        await self.until("rpc", id=call, success=False)
        return self.heard[first:-1]

    async def nothing_more(self) -> None:
        """The server has sent nothing that was not read."""
        assert await self.before_now() == []

    async def closed(self) -> int | None:
        """Read on to the end of the connection; its code."""
        async with asyncio.timeout(PATIENCE):
            while not self.socket.closed:
                await self.socket.receive()
        return self.socket.close_code

    def of(self, request: str) -> Stream:
        """What it has read of a request."""
        return Stream([frame for frame in self.heard if _answers(frame, request)])

    # What it says

    async def say(self, text: str) -> None:
        """Any text."""
        await self.socket.send_str(text)

    async def send(self, **frame: Any) -> None:
        """Any frame."""
        await self.socket.send_str(json.dumps(frame))

    async def ask(
        self, text: str, request: str = "q1", *, after: Sequence[Any] = (), **body: Any
    ) -> None:
        """Send a message; its id is `u-` and the request's. `after` is what the tab shows."""
        message = user_message(f"u-{request}", text)
        await self.request(request, [*after, message], **body)

    async def request(self, request: str, messages: Sequence[Any], **body: Any) -> None:
        """A chat request with any list of messages."""
        full = {"messages": list(messages), "trigger": "submit-message", **body}
        init = {"method": "POST", "body": json.dumps(full)}
        await self.send(type="cf_agent_use_chat_request", id=request, init=init)

    async def regenerate(self, request: str, messages: Sequence[Any], **body: Any) -> None:
        """Another answer to the last of the messages."""
        await self.request(request, messages, trigger="regenerate-message", **body)

    async def cancel(self, request: str = "q1") -> None:
        await self.send(type="cf_agent_chat_request_cancel", id=request)

    async def clear(self) -> None:
        await self.send(type="cf_agent_chat_clear")

    async def set_state(self, state: Any) -> None:
        await self.send(type="cf_agent_state", state=state)

    async def probe(self, probe: str = "p") -> Frame:
        """Ask for a stream to join; the answer, which has to be the next frame."""
        await self.ask_to_resume(probe)
        frame = await self.hear()
        assert frame.get("probeId") == probe, frame
        return frame

    async def ask_to_resume(self, probe: str) -> None:
        await self.send(type="cf_agent_stream_resume_request", probeId=probe)

    async def ack(self, request: str) -> None:
        await self.send(type="cf_agent_stream_resume_ack", id=request)

    async def result(self, call: str = "call-1", **fields: Any) -> None:
        """The result of a client tool."""
        frame = {"toolName": "locate", "output": "Paris", "autoContinue": True, **fields}
        await self.send(type="cf_agent_tool_result", toolCallId=call, **frame)

    async def decide(self, call: str = "call-1", *, approved: bool, **fields: Any) -> None:
        """Allow or refuse a call."""
        frame = {"approved": approved, "autoContinue": True, **fields}
        await self.send(type="cf_agent_tool_approval", toolCallId=call, **frame)

    async def call(self, method: str, *args: Any) -> list[Frame]:
        """Call a method; its answers up to the last, which have to be the next frames."""
        call = f"call-{next(_numbers)}"
        await self.send(type="rpc", id=call, method=method, args=list(args))
        answers: list[Frame] = []
        while not answers or answers[-1].get("done") is False:
            answers.append(await self.expect("rpc", id=call))
        return answers

    async def close(self) -> None:
        """Close the socket; returns when the server has answered."""
        await self.socket.close()


def _picked(frame: Frame, fields: dict[str, Any]) -> dict[str, Any]:
    return {key: frame[key] for key in fields if key in frame}


def _answers(frame: Frame, request: str) -> bool:
    return kind_of(frame) == RESPONSE and frame["id"] == request


class Browser:
    """Opens tabs and makes requests; closes everything at its end."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self.session = session
        self.url = url

    async def open(self, path: str, connection_id: str | None = None, **query: str) -> Tab:
        """A connected tab that has read nothing yet."""
        connection_id = connection_id or f"tab-{next(_numbers)}"
        query = {"_pk": connection_id, **query}
        async with asyncio.timeout(PATIENCE):
            socket = await self.session.ws_connect(f"{self.url}{path}", params=query)
        return Tab(socket, connection_id)

    async def tab(self, path: str, connection_id: str | None = None, **query: str) -> Tab:
        """A connected tab that has read the connect sequence."""
        tab = await self.open(path, connection_id, **query)
        await tab.until("mcp_servers")
        tab.greeting = list(tab.heard)
        return tab

    async def refused(self, path: str, **headers: str) -> int:
        """The status an upgrade is refused with."""
        try:
            socket = await self.session.ws_connect(f"{self.url}{path}", headers=headers)
        except aiohttp.WSServerHandshakeError as error:
            return error.status
        await socket.close()
        raise AssertionError(f"{path} was not refused")

    async def get(self, path: str) -> tuple[int, str]:
        """Status and text of an HTTP GET."""
        async with self.session.get(f"{self.url}{path}") as answer:
            return answer.status, await answer.text()


@asynccontextmanager
async def browser(url: str) -> AsyncIterator[Browser]:
    """A browser for the server at `url`."""
    async with aiohttp.ClientSession() as session:
        yield Browser(session, url)
