"""Replays the client's side of a recording and collects the server's side.

The player sends a recorded client frame only after everything the server had sent before it in the
recording has arrived: it waits for states, never for time. Afterwards each socket is asked for a
resume; whatever comes before the answer was too much.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import aiohttp

TRACES = Path(__file__).parent / "traces"
PATIENCE = 10.0
LAST_PROBE = "last-one"


def load(name: str) -> dict[str, Any]:
    return json.loads((TRACES / f"{name}.json").read_text())


class Heard:
    """What one side said: frames per connection, and HTTP answers."""

    def __init__(self) -> None:
        self.frames: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.http: list[dict[str, Any]] = []
        self._names: dict[str, str] = {}

    def add_frame(self, connection: str, frame: dict[str, Any]) -> dict[str, Any]:
        frame = self._normal(frame)
        self.frames[connection].append(frame)
        return frame

    def add_http(self, exchange: dict[str, Any]) -> None:
        answer = {key: exchange[key] for key in ("path", "method", "status")}
        answer["type"] = exchange["headers"]["content-type"]
        answer["body"] = self._normal(exchange.get("json", exchange.get("text")))
        self.http.append(answer)

    def _normal(self, value: Any) -> Any:
        """Bodies decoded, and ids the server made replaced by the order they came in."""
        if isinstance(value, list):
            return [self._normal(item) for item in value]
        if not isinstance(value, dict):
            return value
        result = {key: self._normal(item) for key, item in value.items()}
        if value.get("type") == "cf_agent_use_chat_response" and value["body"].startswith("{"):
            result["body"] = self._normal(json.loads(value["body"]))
        if value.get("role") == "assistant":
            result["id"] = self._name(value["id"])
        if value.get("type") == "start":
            result["messageId"] = self._name(value["messageId"])
        return result

    def _name(self, made_id: str) -> str:
        return self._names.setdefault(made_id, f"assistant-{len(self._names) + 1}")


def recorded(trace: dict[str, Any]) -> Heard:
    """The server's side of a recording."""
    heard = Heard()
    for event in _events(trace):
        if event.get("dir") == "s2c":
            heard.add_frame(event["conn"], event["json"])
        elif "method" in event:
            heard.add_http(event)
    return heard


async def replay(trace: dict[str, Any], url: str, added: asyncio.Event) -> Heard:
    """The server's side of the same conversation with the server at `url`."""
    heard = Heard()
    sockets: dict[str, aiohttp.ClientWebSocketResponse] = {}
    async with aiohttp.ClientSession() as session:
        try:
            for event in _events(trace):
                if event.get("event") == "ws-connect":
                    path = _address(trace, event["conn"])
                    sockets[event["conn"]] = await session.ws_connect(
                        f"{url}{path}?_pk={event['t']}"
                    )
                elif event.get("dir") == "c2s":
                    await sockets[event["conn"]].send_json(event["json"])
                elif event.get("dir") == "s2c":
                    frame = await _receive(sockets[event["conn"]], heard, event["conn"])
                    if frame.get("body", {}) and frame["body"]["type"] == "tool-output-available":
                        added.set()
                else:
                    heard.add_http(await _request(session, url, event))
            for connection, socket in sockets.items():
                await _drain(socket, heard, connection)
        except TimeoutError:
            pass  # the comparison shows what did not come
    return heard


def _events(trace: dict[str, Any]) -> list[dict[str, Any]]:
    return sorted([*trace["frames"], *trace.get("http", [])], key=lambda event: event["t"])


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
