"""Peers that answer a POST with server-sent events: agno's AgentOS and pydantic-ai."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import aiohttp

from benchmarks.driver.arrivals import Arrivals
from benchmarks.driver.conversation import Place, Turns


class SseConversation:
    """One POST per turn over a kept connection."""

    delta_marks: tuple[bytes, ...] = ()
    """An event with one of these in it carries a delta."""
    end_mark = b""
    """The event with this in it ends the answer."""
    error_mark = b'"error"'

    def __init__(self, place: Place, arrivals: Arrivals) -> None:
        self.place = place
        self._turns = Turns(arrivals)
        self._session: aiohttp.ClientSession | None = None

    def url(self) -> str:
        """Where turns are posted."""
        raise NotImplementedError

    def request(self) -> Mapping[str, Any]:
        """The request's body, as aiohttp's keyword arguments."""
        raise NotImplementedError

    async def open(self) -> None:
        """Connections are opened by the first turn."""
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None))

    async def turn(self) -> None:
        """Ask once and read the stream to its end."""
        assert self._session is not None
        ended = self._turns.begin()
        async with self._session.post(self.url(), **self.request()) as response:
            if response.status != 200:
                raise RuntimeError(f"{response.status}: {(await response.text())[:500]}")
            rest = b""
            async for piece in response.content.iter_any():
                *events, rest = (rest + piece).split(b"\n\n")
                for event in events:
                    self.read(event)
        self._turns.end("the stream ended before the answer did")
        await ended

    async def close(self) -> None:
        """Close the connection."""
        if self._session is not None:
            await self._session.close()

    def read(self, event: bytes) -> None:
        """One event of the stream."""
        if any(mark in event for mark in self.delta_marks):
            self._turns.deltas(event)
        elif self.end_mark in event:
            self._turns.end()
        elif self.error_mark in event:
            self._turns.end(event.decode())


class PydanticAiConversation(SseConversation):
    """The Vercel AI protocol. Nothing is remembered, and no history is sent."""

    delta_marks = (b'"text-delta"',)
    end_mark = b"[DONE]"

    def url(self) -> str:
        """The path names the model."""
        return f"{self.place.base}/chat/{self.place.model}"

    def request(self) -> Mapping[str, Any]:
        """What `useChat` posts."""
        part = {"type": "text", "text": "hi"}
        message = {"id": "m1", "role": "user", "parts": [part]}
        body = {"id": self.place.name, "trigger": "submit-message", "messages": [message]}
        return {"json": body}


class AgnoConversation(SseConversation):
    """AgentOS runs: the session is stored on the server."""

    delta_marks = (b"event: RunContent\n",)
    end_mark = b"event: RunCompleted\n"
    error_mark = b"event: RunError"

    def url(self) -> str:
        """There is one agent per model."""
        return f"{self.place.base}/agents/{self.place.model}/runs"

    def request(self) -> Mapping[str, Any]:
        """A form."""
        form = {"message": "hi", "stream": "true", "session_id": self.place.name}
        return {"data": {**form, "user_id": "bench"}}
