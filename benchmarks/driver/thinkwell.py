"""Ours: one WebSocket per tab, frames as the npm client sends and reads them."""

from __future__ import annotations

import asyncio
from typing import Any

from benchmarks.driver.arrivals import Arrivals
from benchmarks.driver.conversation import Place, Turns
from benchmarks.driver.socket import WebSocket
from thinkwell.core import json
from thinkwell.core.ids import new_id


class Tab:
    """One client of an agent."""

    def __init__(self, url: str, arrivals: Arrivals) -> None:
        self._url = url
        self._socket: WebSocket | None = None
        self.turns = Turns(arrivals)
        self._identified = asyncio.get_running_loop().create_future()
        self._transcript = b""

    async def open(self) -> None:
        """Connect and wait for the identity frame, which closes the connect sequence."""
        self._socket = await WebSocket.connect(f"{self._url}?_pk={new_id()}", self._read)
        self._socket.closed.add_done_callback(lambda why: self.turns.end(why.result()))
        await self._identified

    def ask(self) -> None:
        """Send a message with the transcript before it, as the real clients do."""
        assert self._socket is not None
        question = {"id": new_id(), "role": "user", "parts": [{"type": "text", "text": "hi"}]}
        body = json.dumps({"messages": [*self._known(), question], "trigger": "submit-message"})
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

    def _known(self) -> list[Any]:
        return json.loads(self._transcript)["messages"] if self._transcript else []

    def _read(self, text: bytes) -> None:
        if b"text-delta" in text:
            self.turns.deltas(text)
        elif b"cf_agent_chat_messages" in text:
            self._transcript = text  # decoded when it is needed, outside of what is measured
        elif b'"done":true' in text:
            self.turns.end(text.decode() if b'"error":true' in text else None)
        elif b"cf_agent_identity" in text and not self._identified.done():
            self._identified.set_result(None)


class ThinkwellConversation:
    """An agent with all its tabs; the first one asks."""

    def __init__(self, place: Place, arrivals: Arrivals) -> None:
        address = place.base.replace("http://", "ws://")
        # The part before the dot is the model, see `subjects/served.py`.
        url = f"{address}/agents/served/{place.model}.{place.name}"
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
