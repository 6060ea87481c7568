"""chainlit: its socket.io protocol over one WebSocket, as its own page speaks it."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

from benchmarks.driver.arrivals import Arrivals
from benchmarks.driver.conversation import Place, Turns
from benchmarks.driver.socket import WebSocket
from thinkwell.core import json

# The first characters of a packet: engine.io's type, then socket.io's.
PING, PONG, CONNECT, EVENT = b"2", b"3", b"40", b"42"


class ChainlitConversation:
    """One session. The text of a message names the model."""

    def __init__(self, place: Place, arrivals: Arrivals) -> None:
        self._place = place
        self._turns = Turns(arrivals)
        self._socket: WebSocket | None = None
        self._ready = asyncio.get_running_loop().create_future()

    async def open(self) -> None:
        """Connect, name the session, wait until chainlit says that it is ready."""
        address = self._place.base.replace("http://", "ws://")
        url = f"{address}/ws/socket.io/?EIO=4&transport=websocket"
        self._socket = await WebSocket.connect(url, self._read)
        self._socket.closed.add_done_callback(lambda why: self._turns.end(why.result()))
        await self._ready

    async def turn(self) -> None:
        """Send a message; `task_end` ends the answer."""
        ended = self._turns.begin()
        message = {
            "id": str(uuid.uuid4()),
            "threadId": "",
            "name": "user",
            "type": "user_message",
            "output": self._place.model,
            "createdAt": "2026-01-01T00:00:00.000Z",
        }
        self._emit("client_message", {"message": message, "fileReferences": []})
        await ended

    async def close(self) -> None:
        """Disconnect."""
        if self._socket is not None:
            self._socket.close()

    def _emit(self, event: str, *data: Any) -> None:
        assert self._socket is not None
        self._socket.send(EVENT + json.dump_bytes([event, *data]))

    def _read(self, packet: bytes) -> None:
        if packet.startswith((b'42["stream_token"', b'42["stream_start"')):
            self._turns.deltas(packet)
        elif packet.startswith(b'42["task_end"'):
            self._ended()
        elif packet == PING and self._socket is not None:
            self._socket.send(PONG)
        elif packet.startswith(b"0"):
            asyncio.get_running_loop().call_soon(self._name_session)
        elif packet.startswith(CONNECT):
            self._emit("connection_successful")
        elif b'"isError":true' in packet:
            self._turns.end(packet.decode())

    def _name_session(self) -> None:
        assert self._socket is not None
        session = {"sessionId": str(uuid.uuid4()), "clientType": "webapp", "userEnv": "{}"}
        self._socket.send(CONNECT + json.dump_bytes(session))

    def _ended(self) -> None:
        if self._ready.done():
            self._turns.end()
        else:
            self._ready.set_result(None)
