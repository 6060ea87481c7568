"""A client on a real WebSocket that speaks the chat protocol and remembers every frame."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import websockets
from websockets.asyncio.client import ClientConnection, connect

from tests.crash.process import Server, until
from thinkwell.core.ids import new_id
from thinkwell.core.tasks import TaskOwner
from thinkwell.messages.message import UIMessage, user_message

Frame = dict[str, Any]
RESPONSE = "cf_agent_use_chat_response"
OFFER = "cf_agent_stream_resuming"


class Client:
    """One tab."""

    def __init__(self, socket: ClientConnection, *, joins: bool = False) -> None:
        self._socket = socket
        self._joins = joins
        self.frames: list[Frame] = []
        self.gone = False

    async def listen(self) -> None:
        with suppress(websockets.ConnectionClosed):
            async for text in self._socket:
                self.frames.append(frame := json.loads(text))
                if self._joins and frame["type"] == OFFER:
                    await self.ack(frame["id"])
        self.gone = True

    # What it sends

    async def ask(self, question: str, *, request: str, history: list[UIMessage] | None = None):
        """A chat request; the message's id is the request's with an `m` before it."""
        messages = [*(history or []), user_message(f"m{request}", question)]
        await self._request(request, {"messages": messages, "trigger": "submit-message"})

    async def regenerate(self, messages: list[UIMessage], *, request: str) -> None:
        """Ask for another answer to the last of the messages."""
        await self._request(request, {"messages": messages, "trigger": "regenerate-message"})

    async def _request(self, request: str, body: dict[str, Any]) -> None:
        init = {"method": "POST", "body": json.dumps(body)}
        await self._send({"type": "cf_agent_use_chat_request", "id": request, "init": init})

    async def stop(self, request: str) -> None:
        await self._send({"type": "cf_agent_chat_request_cancel", "id": request})

    async def approve(self, tool_call_id: str) -> None:
        """Allow a call, and ask to go on."""
        decision = {"toolCallId": tool_call_id, "approved": True, "autoContinue": True}
        await self._send({"type": "cf_agent_tool_approval", **decision})

    async def call(self, method: str, *args: Any, id: str = "call") -> None:
        """Call a method; the answer comes as a frame with that id."""
        frame = {"type": "rpc", "id": id, "method": method, "args": list(args)}
        await self._send(frame)

    async def resume(self) -> Frame:
        """Ask for a stream to join; the answer that names one, or says that there is none."""
        probe = new_id()
        await self._send({"type": "cf_agent_stream_resume_request", "probeId": probe})
        await self.saw(lambda f: f.get("probeId") == probe, "an answer to the resume request")
        kinds = (OFFER, "cf_agent_stream_resume_none")
        return await self.saw(lambda f: f["type"] in kinds, "a stream to join, or none")

    async def ack(self, request: str) -> None:
        await self._send({"type": "cf_agent_stream_resume_ack", "id": request})

    async def _send(self, frame: Frame) -> None:
        with suppress(websockets.ConnectionClosed):  # the process may be dead already
            await self._socket.send(json.dumps(frame))

    # What it saw

    async def saw(self, picks: Callable[[Frame], Any], what: str) -> Frame:
        """The first frame that `picks` takes, as soon as it is there."""
        return await until(lambda: next((f for f in self.frames if picks(f)), None), what)

    async def done(self, request: str) -> Frame:
        """The frame that ends a stream."""
        return await self.saw(lambda f: _answers(f, request) and f["done"], f"the end of {request}")

    async def chunks(self, request: str, count: int) -> None:
        """Wait for so many chunks."""
        await until(lambda: len(self.bodies(request)) >= count, f"{count} chunks of {request}")

    def bodies(self, request: str) -> list[str]:
        """The chunks of a stream as it read them last, replayed and live: no gap, no double."""
        readings = self._readings(request)
        for reading in readings:
            for before, after in zip(readings[-1], reading, strict=False):  # one may be cut off
                assert before == after
        return readings[-1]

    def _readings(self, request: str) -> list[list[str]]:
        """Every time it read a stream, which begins anew only for a client that was offered it."""
        readings, offers = [list[str]()], 0
        for frame in self.frames:
            if frame["type"] == OFFER and frame["id"] == request:
                offers += 1
            elif _answers(frame, request) and "seq" in frame:
                if frame["seq"] == 0 and readings[-1]:
                    assert offers, "told twice, without an offer"
                    assert frame["replay"]
                    offers -= 1
                    readings.append([])
                assert frame["seq"] == len(readings[-1])
                readings[-1].append(frame["body"])
        return readings

    @property
    def live_chunks(self) -> int:
        """How many chunks came as they were made, of whatever stream."""
        return len([f for f in self.frames if "seq" in f and "replay" not in f])

    @property
    def close_code(self) -> int | None:
        """How the server closed the socket."""
        return self._socket.close_code

    def transcript(self) -> list[UIMessage]:
        """The newest transcript it was shown."""
        return self._transcripts()[-1]

    def transcript_or_nothing(self) -> list[UIMessage]:
        """The same, for a client that may not have been shown any."""
        return next(reversed(self._transcripts()), [])

    def _transcripts(self) -> list[list[UIMessage]]:
        return [f["messages"] for f in self.frames if f["type"] == "cf_agent_chat_messages"]


def _answers(frame: Frame, request: str) -> bool:
    return frame["type"] == RESPONSE and frame["id"] == request


@asynccontextmanager
async def client_of(server: Server, agent: str, *, joins: bool = False) -> AsyncIterator[Client]:
    """A connected client; `agent` is `class/name`. One that `joins` takes every offered stream."""
    url = server.url.replace("http://", "ws://")
    async with connect(f"{url}/agents/{agent}", max_size=None, close_timeout=1) as socket:
        client, tasks = Client(socket, joins=joins), TaskOwner("client")
        tasks.spawn(client.listen(), name="listen")
        await client.saw(lambda f: f["type"] == "cf_agent_identity", "the connect sequence")
        yield client
        await tasks.close()
