"""Replays the client's side of a recording and collects the server's side.

The player sends a recorded client frame only after everything the server had sent before it in the
recording has arrived: it waits for states, never for time. Afterwards each socket is asked for a
resume; whatever comes before the answer was too much.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from tests.wire.ref_agents import Pace

TRACES = Path(__file__).parent / "traces"
PATIENCE = 30.0
LAST_PROBE = "last-one"


def load(name: str) -> dict[str, Any]:
    return json.loads((TRACES / f"{name}.json").read_text())


class Heard:
    """What one side said: frames per connection, and HTTP answers.

    Ids that a server made are replaced by a name: their kind and the order they came in.
    """

    def __init__(self, trace: dict[str, Any]) -> None:
        self.frames: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.http: list[dict[str, Any]] = []
        self.names: dict[str, str] = {}
        self.stream: list[dict[str, Any]] = []
        """The chunks that a witness got."""
        asked = [e["json"] for e in trace["frames"] if e.get("json", {}).get("init")]
        self._by_client = json.dumps(asked)

    def add_frame(self, connection: str, frame: dict[str, Any]) -> dict[str, Any]:
        frame = self._normal(frame)
        self.frames[connection].append(frame)
        return frame

    def add_http(self, exchange: dict[str, Any]) -> None:
        answer = {key: exchange[key] for key in ("path", "method", "status")}
        answer["type"] = exchange["headers"]["content-type"]
        answer["body"] = self._normal(exchange.get("json", exchange.get("text")))
        self.http.append(answer)

    def in_words_of(self, other: Heard, frame: dict[str, Any]) -> dict[str, Any]:
        """A frame of the other side's client, with the ids this side has given."""
        ours = {name: made_id for made_id, name in self.names.items()}
        text = json.dumps(frame)
        for made_id, name in other.names.items():
            text = text.replace(made_id, ours.get(name, made_id))
        return json.loads(text)

    def _normal(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._normal(item) for item in value]
        if not isinstance(value, dict):
            return value
        result = {key: self._normal(item) for key, item in value.items()}
        if value.get("type") == "cf_agent_use_chat_response" and value["body"].startswith("{"):
            result["body"] = self._normal(json.loads(value["body"]))
        for key, kind in self._made_ids(value):
            result[key] = self.names.setdefault(value[key], f"{kind}-{self._count(kind)}")
        return result

    def _made_ids(self, value: dict[str, Any]) -> list[tuple[str, str]]:
        """The fields of an object that hold an id of the server."""
        fields = {
            "id": "assistant" if value.get("role") == "assistant" else None,
            "messageId": "assistant" if "messageId" in value else None,
            "approvalId": "approval" if "approvalId" in value else None,
            "requestId": "request" if "requestId" in value else None,
        }
        if value.get("type") in HAVE_REQUEST_ID or value.get("role") == "user":
            kind = "user" if "role" in value else "request"
            fields["id"] = None if value["id"] in self._by_client else kind
        if "approved" in value or value.keys() == {"id"}:
            fields["id"] = "approval"
        return [(key, kind) for key, kind in fields.items() if kind is not None]

    def _count(self, kind: str) -> int:
        return sum(name.startswith(kind) for name in self.names.values()) + 1


HAVE_REQUEST_ID = (
    "cf_agent_use_chat_response",
    "cf_agent_stream_resuming",
    "cf_agent_stream_pending",
)


def recorded(trace: dict[str, Any]) -> Heard:
    """The server's side of a recording."""
    heard = Heard(trace)
    for event in _events(trace):
        if event.get("dir") == "s2c":
            heard.add_frame(event["conn"], event["json"])
        elif "method" in event:
            heard.add_http(event)
    return heard


class Player:
    """Plays the client's side of a recording to a server."""

    def __init__(self, trace: dict[str, Any], reference: Heard, server: Served) -> None:
        self._trace = trace
        self._reference = reference
        self._server = server
        self._paced: set[tuple[str, int]] = set()
        self._sockets: dict[str, aiohttp.ClientWebSocketResponse] = {}
        self.heard = Heard(trace)

    async def _leave(self, session: aiohttp.ClientSession, event: dict[str, Any]) -> None:
        raise AssertionError(f"this recording needs another player: {event}")

    async def play(self) -> Heard:
        """Everything, or as much as was answered in time: the comparison shows what is missing."""
        async with aiohttp.ClientSession() as session:
            with suppress(TimeoutError):
                for event in _events(self._trace):
                    await self._step(session, event)
                for connection, socket in self._sockets.items():
                    await _drain(socket, self.heard, connection)
        return self.heard

    async def _step(self, session: aiohttp.ClientSession, event: dict[str, Any]) -> None:
        if event.get("event") == "ws-connect":
            address = f"{self._server.url}{_address(self._trace, event['conn'])}?_pk={event['t']}"
            self._sockets[event["conn"]] = await session.ws_connect(address)
        elif "event" in event:
            await self._leave(session, event)
        elif event.get("dir") == "c2s":
            frame = self.heard.in_words_of(self._reference, event["json"])
            await self._sockets[event["conn"]].send_json(frame)
        elif event.get("dir") == "s2c":
            self._expect(event["json"])
            await self._hear(event["conn"])
        elif "note" in event:
            await self._server.act(event["note"])
        else:
            self.heard.add_http(await _request(session, self._server.url, event))

    def _expect(self, frame: dict[str, Any]) -> None:
        """A paced delta is said when a client waits for it."""
        body = frame.get("body", "")
        key = (str(frame.get("id")), int(frame.get("seq", -1)))
        if '"delta":"w' in body and not frame.get("replay") and key not in self._paced:
            self._paced.add(key)
            self._server.pace.allow()

    async def _hear(self, connection: str) -> dict[str, Any]:
        frame = await _receive(self._sockets[connection], self.heard, connection)
        body = frame.get("body")
        if isinstance(body, dict) and body["type"] == "tool-output-available":
            self._server.added.set()
        return frame


class ReconnectPlayer(Player):
    """Plays a recording in which a tab drops out while the answer is streamed.

    What the next tab is replayed was said while nobody listened. So a witness nobody else hears of
    listens until that much is durable; only then does the recording go on.
    """

    async def _leave(self, session: aiohttp.ClientSession, event: dict[str, Any]) -> None:
        left: Any = self._sockets.pop(event["conn"])
        left._conn.transport.abort()  # as if the cable was cut: no close frame
        missed = [e["json"] for e in self._trace["frames"] if e.get("json", {}).get("replay")]
        deltas = [frame for frame in missed if '"delta":"w' in frame["body"]]
        for frame in deltas:
            self._expect({**frame, "replay": False})
        path = _address(self._trace, event["conn"])
        async with session.ws_connect(f"{self._server.url}{path}") as witness:
            await _listen_for(witness, deltas[-1])


async def _listen_for(socket: aiohttp.ClientWebSocketResponse, last: dict[str, Any]) -> None:
    async with asyncio.timeout(PATIENCE):
        await socket.send_json({"type": "cf_agent_stream_resume_ack", "id": last["id"]})
        while (await socket.receive_json()).get("body") != last["body"]:
            pass


class ContinuationPlayer(Player):
    """Plays a recording in which the sender of an answer is offered the continuation.

    When it takes the offer is a matter of timing, so from the answer on it does what the stock
    client does, instead of what the recorded one happened to do: it takes the first offer and
    listens until the end. A witness nobody else hears of gets the stream as it comes.
    """

    _witness: aiohttp.ClientWebSocketResponse

    _answered = False
    _over = False

    async def _step(self, session: aiohttp.ClientSession, event: dict[str, Any]) -> None:
        frame = event.get("json", {}) if "dir" in event else {}
        if frame.get("autoContinue"):
            self._answered = True
            path = _address(self._trace, event["conn"])
            self._witness = await session.ws_connect(f"{self._server.url}{path}")
            while (await self._witness.receive_json())["type"] != "cf_agent_chat_messages":
                pass
        free = self._answered and event.get("dir") == "s2c"
        if free and not self._over:
            await self._listen(event["conn"])
        elif not free and frame.get("type") != "cf_agent_stream_resume_ack":
            await super()._step(session, event)

    async def _listen(self, connection: str) -> None:
        taken = False
        while not self._over:
            frame = await self._hear(connection)
            if frame["type"] == "cf_agent_stream_resuming" and not taken:
                taken = True
                ids = {name: made_id for made_id, name in self.heard.names.items()}
                ack = {"type": "cf_agent_stream_resume_ack", "id": ids[frame["id"]]}
                await self._sockets[connection].send_json(ack)
            self._over = bool(frame.get("done"))
        await self._listen_to_witness()

    async def _listen_to_witness(self) -> None:
        async with asyncio.timeout(PATIENCE):
            while not (frame := await self._witness.receive_json()).get("done"):
                if "seq" in frame:
                    self.heard.stream.append(json.loads(frame["body"]))


@dataclass
class Served:
    """The server under test."""

    url: str
    pace: Pace
    added: asyncio.Event
    act: Callable[[str], Awaitable[None]]


def _events(trace: dict[str, Any]) -> list[dict[str, Any]]:
    frames = [event for event in trace["frames"] if event.get("event") != "ws-close"]
    events = [*frames, *trace.get("http", []), *trace.get("notes", [])]
    return sorted(events, key=lambda event: event["t"])


def _address(trace: dict[str, Any], connection: str) -> str:
    for event in trace["frames"]:
        frame = event.get("json", {})
        if event["conn"] == connection and frame.get("type") == "cf_agent_identity":
            return f"/agents/{frame['agent']}/{frame['name']}"
    raise AssertionError(f"connection {connection} has no identity frame")


async def _receive(
    socket: aiohttp.ClientWebSocketResponse, heard: Heard, connection: str
) -> dict[str, Any]:
    async with asyncio.timeout(PATIENCE):
        return heard.add_frame(connection, await socket.receive_json())


async def _drain(socket: aiohttp.ClientWebSocketResponse, heard: Heard, connection: str) -> None:
    await socket.send_json({"type": "cf_agent_stream_resume_request", "probeId": LAST_PROBE})
    async with asyncio.timeout(PATIENCE):
        while (frame := await socket.receive_json()).get("probeId") != LAST_PROBE:
            heard.add_frame(connection, frame)


async def _request(
    session: aiohttp.ClientSession, url: str, exchange: dict[str, Any]
) -> dict[str, Any]:
    async with session.request(
        exchange["method"], url + exchange["path"], json=exchange.get("requestBody")
    ) as answer:
        kind = "json" if "json" in exchange else "text"
        return {
            **{key: exchange[key] for key in ("path", "method")},
            "status": answer.status,
            "headers": answer.headers,
            kind: json.loads(await answer.text()) if kind == "json" else await answer.text(),
        }
