"""The bare path: provider socket -> one commit -> client socket, with the libraries we use.

What somebody writes by hand who wants every told word to be stored first: uvicorn with
`websockets-sansio` and uvloop, aiohttp to the provider, sqlite3 in WAL mode, msgspec for JSON.
Whatever a read of the provider's socket brought is one transaction, then the frames of it. The last
one also stores both messages, the turn and what a turn must keep to be explained later: the model
request, its finish, the packed stream. There are no agents, hooks, tools, policies, queue, second
tabs, resuming clients or recovery: that is what ours is measured against.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import time
import uuid
import zlib
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from typing import Any

import aiohttp
import msgspec
import uvicorn

Event = MutableMapping[str, Any]
Send = Callable[[Event], Awaitable[None]]
encode, decode = msgspec.json.encode, msgspec.json.decode

SCHEMA = """
CREATE TABLE IF NOT EXISTS turns (id TEXT PRIMARY KEY, agent TEXT, status TEXT, created_at REAL);
CREATE TABLE IF NOT EXISTS messages (id TEXT PRIMARY KEY, agent TEXT, content TEXT);
CREATE TABLE IF NOT EXISTS journal (pos INTEGER PRIMARY KEY, turn TEXT, body TEXT);
CREATE TABLE IF NOT EXISTS packed (turn TEXT PRIMARY KEY, body BLOB);
"""
SYSTEM = {"role": "system", "content": "You are a careful assistant."}
WINDOW = 40
"""Messages the model is sent at most."""


class Server:
    """The database, the connection pool and the conversations."""

    def __init__(self, database: str, provider: str) -> None:
        self._url = f"{provider}/chat/completions"
        self._db = sqlite3.connect(database, isolation_level=None)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = NORMAL")
        self._db.executescript(SCHEMA)
        self._http: aiohttp.ClientSession | None = None
        self._known: dict[str, list[dict[str, str]]] = {}

    async def __call__(self, scope: Event, receive: Callable[[], Awaitable[Event]], send: Send):
        """One socket: its questions, one after the other."""
        if scope["type"] != "websocket":
            return
        await receive()
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.send", "text": '{"type":"cf_agent_identity"}'})
        while (event := await receive())["type"] == "websocket.receive":
            await self._answer(scope["path"].rpartition("/")[2], decode(event["text"]), send)

    async def _answer(self, agent: str, asked: dict[str, Any], send: Send) -> None:
        if self._http is None:
            connector, cookies = aiohttp.TCPConnector(limit=0), aiohttp.DummyCookieJar()
            self._http = aiohttp.ClientSession(connector=connector, cookie_jar=cookies)
        turn = Turn(agent, asked)
        known = self._known.setdefault(agent, [])
        known.append({"role": "user", "content": turn.question["parts"][0]["text"]})
        turn.request = encode(
            {
                "model": agent.partition(".")[0],
                "messages": [SYSTEM, *known[-WINDOW:]],
                "stream": True,
                "stream_options": {"include_usage": True},
            }
        )
        async with self._http.post(self._url, data=turn.request, headers=HEADERS) as response:
            async for piece in response.content.iter_any():
                if chunks := [encode(chunk).decode() for chunk in turn.take(piece)]:
                    self._commit(turn, chunks)
                    for chunk in chunks:
                        await send(frame(turn.id, chunk))
        known.append({"role": "assistant", "content": turn.text})
        await send(frame(turn.id, "", done=True))

    def _commit(self, turn: Turn, chunks: list[str]) -> None:
        turn.chunks += chunks
        run = self._db.execute
        run("BEGIN IMMEDIATE")
        if turn.done:
            self._settle(turn)
        else:
            row = (turn.id, ",".join(chunks))
            added = run("INSERT INTO journal (turn, body) VALUES (?, ?)", row)
            turn.start = turn.start or added.lastrowid
        run("COMMIT")

    def _settle(self, turn: Turn) -> None:
        run = self._db.execute
        part = {"type": "text", "text": turn.text}
        answer = {"id": turn.message_id, "role": "assistant", "parts": [part]}
        for each in (turn.question, answer):
            row = (each["id"], turn.agent, encode(each).decode())
            run("INSERT INTO messages VALUES (?, ?, ?)", row)
        row = (turn.id, turn.agent, "completed", time.time())
        run("INSERT INTO turns VALUES (?, ?, ?, ?)", row)
        whole = ",".join(turn.chunks).encode() + turn.request + encode(turn.usage)
        run("INSERT INTO packed VALUES (?, ?)", (turn.id, zlib.compress(whole, 1)))
        if turn.start:
            run("DELETE FROM journal WHERE pos >= ? AND turn = ?", (turn.start, turn.id))


class Turn:
    """One question and what has come of its answer."""

    def __init__(self, agent: str, asked: dict[str, Any]) -> None:
        self.agent = agent
        self.id: str = asked["id"]
        self.question = decode(asked["init"]["body"])["messages"][-1]
        self.request = b""
        self.message_id = str(uuid.uuid4())
        self.chunks: list[str] = []
        self.text = ""
        self.usage: Any = None
        self.start: int | None = None
        """Where its journal begins."""
        self.done = False
        self._rest = b""

    def take(self, piece: bytes) -> Iterator[dict[str, Any]]:
        """The chunks of the AI SDK's stream that a read brings."""
        *events, self._rest = (self._rest + piece).split(b"\n\n")
        for event in events:
            payload = event[6:]
            if payload == b"[DONE]":
                self.done = True
                yield {"type": "text-end", "id": "txt-0"}
                yield {"type": "finish-step"}
                yield {"type": "finish"}
                return
            chunk = decode(payload)
            if not chunk["choices"]:
                self.usage = chunk["usage"]
            elif text := chunk["choices"][0]["delta"].get("content"):
                if not self.text:
                    yield {"type": "start", "messageId": self.message_id}
                    yield {"type": "start-step"}
                    yield {"type": "text-start", "id": "txt-0"}
                self.text += text
                yield {"type": "text-delta", "id": "txt-0", "delta": text}


def frame(turn: str, body: str, *, done: bool = False) -> Event:
    """A chunk as the npm client reads it."""
    told = {"type": "cf_agent_use_chat_response", "id": turn, "body": body, "done": done}
    return {"type": "websocket.send", "text": encode(told).decode()}


HEADERS = {"Content-Type": "application/json", "Authorization": "Bearer none"}

if __name__ == "__main__":
    uvicorn.run(
        Server(os.environ["BENCH_DATABASE"], os.environ["OPENAI_BASE_URL"]),
        host="127.0.0.1",
        port=int(sys.argv[1]),
        loop="uvloop",
        ws="websockets-sansio",
        ws_per_message_deflate=False,
        ws_max_size=16 * 1024 * 1024,
        log_level="warning",
        access_log=False,
        lifespan="off",
    )
