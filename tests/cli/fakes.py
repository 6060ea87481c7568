"""A link that gives the frames a test wrote, and a screen that writes down what it is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from thinkwell.cli.conversation import TerminalChat
from thinkwell.cli.links import Link, LinkError
from thinkwell.core.json import dumps, loads
from thinkwell.messages.message import UIMessage
from thinkwell.wire import encode

LOST = "the connection is lost here"


class FakeLink:
    """One connection; `{id}` in its frames is the last chat request, `{call}` the last call and
    `{probe}` the last probe.
    """

    def __init__(self, network: Network, frames: list[str]) -> None:
        self._network = network
        self._frames = frames

    async def send(self, text: str) -> None:
        self._network.sent.append(loads(text))

    async def next_frame(self) -> str:
        await asyncio.sleep(0)
        assert self._frames, "the conversation waits for a frame that the test did not write"
        frame = self._frames.pop(0)
        if frame == LOST:
            raise LinkError(LOST)
        sent = self._network.sent
        frame = frame.replace("{call}", sent[-1].get("id", "") if sent else "")
        frame = frame.replace("{probe}", sent[-1].get("probeId", "") if sent else "")
        return frame.replace("{id}", self._network.request_id)

    def has_frames(self) -> bool:
        return bool(self._frames)


class Network:
    """Answers each dial with the next list of frames, behind the greeting of a chat agent."""

    def __init__(self, *connections: list[str]) -> None:
        self._connections = list(connections)
        self.sent: list[dict[str, Any]] = []
        self.names: list[str] = []
        self.naps: list[float] = []
        self.open = 0
        self._frames: list[str] = []

    @property
    def request_id(self) -> str:
        asked = [frame["id"] for frame in self.sent if frame["type"] == "cf_agent_use_chat_request"]
        return asked[-1] if asked else ""

    @property
    def sent_types(self) -> list[str]:
        return [frame["type"].removeprefix("cf_agent_") for frame in self.sent]

    @asynccontextmanager
    async def dial(self, name: str) -> AsyncIterator[Link]:
        self.names.append(name)
        frames = self._connections.pop(0)
        if frames == [LOST]:
            raise LinkError(LOST)
        self._frames = frames
        self.open += 1
        try:
            yield FakeLink(self, frames)
        finally:
            self.open -= 1

    def say(self, *frames: str) -> None:
        """More frames over the connection that is open."""
        self._frames.extend(frames)

    async def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)

    def conversation(self, screen: FakeScreen) -> TerminalChat:
        return TerminalChat(self.dial, screen, sleep=self.sleep)


class FakeScreen:
    """Writes down what would be shown."""

    def __init__(self) -> None:
        self.shown: list[Any] = []
        self.text = ""

    def begin(self) -> None: ...

    def chunk(self, chunk: Mapping[str, Any], *, live: bool) -> None:
        self.shown.append(chunk["type"])
        self.text += chunk.get("delta", "")

    def update(self, message: UIMessage) -> None:
        self.shown.append(("update", message["id"]))

    def message(self, message: UIMessage) -> None:
        self.shown.append(("message", message["id"]))

    def end(self, outcome: str, error: str | None) -> None:
        self.shown.append((outcome, error))

    def note(self, text: str) -> None:
        self.shown.append(("note", text))

    def status(self, text: str) -> None:
        self.shown.append(("status", text))

    def refresh(self) -> None: ...

    def tick(self) -> None: ...


def encoded(messages: Sequence[Mapping[str, Any]]) -> list[bytes]:
    return [dumps(dict(message)).encode() for message in messages]


def greeting(*messages: Mapping[str, Any], first: str | None = None) -> list[str]:
    """What an agent sends on connect: a transcript, or `first` instead of it."""
    transcript = str(encode.chat_messages((), encoded(messages), connect=True))
    return [
        first or transcript,
        encode.identity("default", "assistant", state_follows=False),
        encode.mcp_servers(),
    ]


def transcript(*messages: Mapping[str, Any]) -> str:
    return str(encode.chat_messages((), encoded(messages)))


def chunks(
    *kinds: str, request_id: str = "{id}", start: int = 0, replay: bool = False
) -> list[str]:
    """Chunk frames, numbered from `start`."""
    live = encode.chunk_frame_maker(request_id, continuation=False)
    frames: list[str] = []
    for number, kind in enumerate(kinds, start):
        body = dumps({"type": kind})
        replayed = encode.replay_chunk(request_id, body, number, continuation=False)
        frames.append(replayed if replay else live(body, number))
    return frames


def done(outcome: Any = "completed", *, request_id: str = "{id}", replay: bool = False) -> str:
    return encode.done(
        request_id, message_ids=[], outcome=outcome, continuation=False, replay=replay
    )
