"""A chat over a link: ask, follow the answer, stop it, join one that is already running.

Owned here: which frames belong to the answer being shown and when it is over. Showing is the
`Screen`'s work. The transcript is the server's; the last one seen is sent along, as browsers do.
"""

from __future__ import annotations

from typing import Any, Protocol

from thinkwell.cli.links import Link, LinkError
from thinkwell.core.ids import new_id
from thinkwell.core.json import dumps, loads


class Screen(Protocol):
    """Shows an answer as it comes."""

    def chunk(self, chunk: dict[str, Any]) -> None:
        """One piece of the answer."""
        ...

    def end(self, outcome: str, error: str | None) -> None:
        """The answer is over."""
        ...


class Conversation:
    """One terminal's view of one agent."""

    def __init__(self, link: Link, screen: Screen) -> None:
        self._link = link
        self._screen = screen
        self._running: str | None = None
        self.messages: list[dict[str, Any]] = []

    async def connect(self) -> None:
        """Take the connect sequence; afterwards `messages` is the transcript."""
        while (frame := await self._next())["type"] != "cf_agent_mcp_servers":
            if frame["type"] == "cf_agent_stream_resuming":
                self._running = frame["id"]

    async def resume(self) -> None:
        """Follow the answer that was running when we came, if there was one."""
        if self._running is not None:
            await self._send({"type": "cf_agent_stream_resume_ack", "id": self._running})
            await self._follow(self._running)

    async def ask(self, text: str) -> None:
        """Send a message and show the answer until it is over."""
        message = {"id": new_id(), "role": "user", "parts": [{"type": "text", "text": text}]}
        body = {"messages": [*self.messages, message], "trigger": "submit-message"}
        self._running = request_id = new_id()
        await self._send(
            {
                "type": "cf_agent_use_chat_request",
                "id": request_id,
                "init": {"method": "POST", "body": dumps(body)},
            }
        )
        await self._follow(request_id)

    async def stop(self) -> None:
        """Stop the running answer, if there is one."""
        if self._running is not None:
            await self._send({"type": "cf_agent_chat_request_cancel", "id": self._running})

    async def _follow(self, request_id: str) -> None:
        while True:
            frame = await self._next()
            if frame["type"] != "cf_agent_use_chat_response" or frame["id"] != request_id:
                continue
            if frame["done"]:
                break
            if frame["body"]:
                self._screen.chunk(loads(frame["body"]))
        self._running = None
        error = frame["body"] if frame.get("error") else None
        self._screen.end(frame.get("outcome", "completed"), error)

    async def _next(self) -> dict[str, Any]:
        frame: dict[str, Any] = {"type": "", **loads(await self._link.next_frame())}
        if not frame["type"] and "error" in frame:
            raise LinkError(str(frame["error"]))
        if frame["type"] == "cf_agent_chat_messages":
            self.messages = frame["messages"]
        return frame

    async def _send(self, frame: dict[str, Any]) -> None:
        await self._link.send(dumps(frame))
