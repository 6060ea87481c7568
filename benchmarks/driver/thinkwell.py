"""Ours: one WebSocket per tab, frames as the npm client sends and reads them; `useChat` over HTTP.

The tab that asks sends all it shows with every question, as the npm clients do.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Any, ClassVar

from benchmarks.driver.arrivals import Arrivals
from benchmarks.driver.conversation import Place, Turns
from benchmarks.driver.socket import WebSocket
from benchmarks.driver.sse import SseConversation
from thinkwell.core import json
from thinkwell.core.ids import new_id

MESSAGE_ID = re.compile(rb'messageId\\*":\\*"([^"\\]+)')
DELTA = re.compile(rb'delta\\*":\\*"([^"\\]*)')


class Shown:
    """The messages a client shows. Put together between two turns, outside of what is measured."""

    def __init__(self) -> None:
        self._messages: list[dict[str, Any]] = []
        self._arrived: list[bytes] = []

    def arrive(self, text: bytes) -> None:
        """A piece of the answer."""
        self._arrived.append(text)

    def ask(self) -> list[dict[str, Any]]:
        """All of them with a new question at the end."""
        arrived = b"".join(self._arrived)
        self._arrived.clear()
        if found := MESSAGE_ID.search(arrived):
            text = b"".join(DELTA.findall(arrived)).decode()
            self._messages.append(message(found[1].decode(), "assistant", text))
        self._messages.append(message(new_id(), "user", "hi"))
        return self._messages


def message(name: str, role: str, text: str) -> dict[str, Any]:
    """One of them."""
    return {"id": name, "role": role, "parts": [{"type": "text", "text": text}]}


class Tab:
    """One client of an agent."""

    def __init__(self, url: str, arrivals: Arrivals) -> None:
        self._url = url
        self._socket: WebSocket | None = None
        self.turns = Turns(arrivals)
        self._identified = asyncio.get_running_loop().create_future()
        self._shown = Shown()

    async def open(self) -> None:
        """Connect and wait for the identity frame, which closes the connect sequence."""
        self._socket = await WebSocket.connect(f"{self._url}?_pk={new_id()}", self._read)
        self._socket.closed.add_done_callback(lambda why: self.turns.end(why.result()))
        await self._identified

    def ask(self) -> None:
        """Send a message with the transcript before it, as the real clients do."""
        assert self._socket is not None
        body = json.dumps({"messages": self._shown.ask(), "trigger": "submit-message"})
        request = {
            "type": "cf_agent_use_chat_request",
            "id": new_id(),
            "init": {"method": "POST", "body": body},
        }
        self._socket.send(json.dump_bytes(request))

    def close(self) -> None:
        """Disconnect."""
        if self._socket is not None:
            self._socket.close()

    def _read(self, text: bytes) -> None:
        if b"text-delta" in text:
            self._shown.arrive(text)
            self.turns.deltas(text)
        elif b'"done":true' in text:  # it names its message too
            self.turns.end(text.decode() if b'"error":true' in text else None)
        elif b"messageId" in text:
            self._shown.arrive(text)
        elif b"cf_agent_identity" in text and not self._identified.done():
            self._identified.set_result(None)


class ThinkwellConversation:
    """An agent with all its tabs; the first one asks."""

    agent: ClassVar = "served"

    def __init__(self, place: Place, arrivals: Arrivals) -> None:
        address = place.base.replace("http://", "ws://")
        # The part before the dot is the model, see `subjects/served.py`.
        url = f"{address}/agents/{self.agent}/{place.model}.{place.name}"
        self._tabs = [Tab(url, arrivals) for _ in range(place.tabs)]

    async def open(self) -> None:
        """Connect every tab."""
        for tab in self._tabs:
            await tab.open()

    async def turn(self) -> None:
        """Ask once; every tab has to see the end."""
        ends = [tab.turns.begin() for tab in self._tabs]
        self._tabs[0].ask()
        await asyncio.gather(*ends)

    async def close(self) -> None:
        """Disconnect every tab."""
        for tab in self._tabs:
            tab.close()


class BridgedConversation(ThinkwellConversation):
    """The same with the model behind the bridge."""

    agent = "bridged"


class ThinkwellHttpConversation(SseConversation):
    """What `useChat` with its default transport does: all messages with every POST."""

    delta_marks = (b'"text-delta"',)
    end_mark = b"[DONE]"

    def __init__(self, place: Place, arrivals: Arrivals) -> None:
        super().__init__(place, arrivals)
        self._shown = Shown()

    def url(self) -> str:
        """The agent's chat."""
        return f"{self.place.base}/agents/served/{self.place.model}.{self.place.name}/chat"

    def request(self) -> Mapping[str, Any]:
        """The whole list."""
        body = {"id": "chat", "messages": self._shown.ask(), "trigger": "submit-message"}
        return {"data": json.dump_bytes(body), "headers": {"content-type": "application/json"}}

    def read(self, event: bytes) -> None:
        """Keep what is shown."""
        self._shown.arrive(event)
        super().read(event)
