"""A client that never gives up: it connects to every life of the app and writes down all it reads.

It behaves like a browser tab with the stock client: it sends the conversation as it shows it, joins
streams it is offered, sends again what was never taken, answers approvals and client tools, and now
and then presses stop. What it read goes into a file, one line each, for the checker.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO, cast

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from thinkwell.core import json
from thinkwell.messages.fold import Fold
from thinkwell.messages.message import UIMessage, tool_parts, user_message
from thinkwell.testing.chaos.door import Door
from thinkwell.testing.chaos.plan import read_script

RESPONSE = "cf_agent_use_chat_response"
TRANSCRIPT = "cf_agent_chat_messages"
OFFER = "cf_agent_stream_resuming"
UPDATED = "cf_agent_message_updated"
RETRY = 0.02
"""Seconds before it knocks again at a process that sent it away."""
AGREES = 0.75
"""How often it allows a call that waits for leave."""
WAITING = ("approval-requested", "input-available")


class Tab:
    """One client of one conversation."""

    def __init__(self, log: Path, agent: str, door: Door, headers: Mapping[str, str]) -> None:
        self.agent = agent
        """`class/name`."""
        self.live = 0
        """Chunks it read as they were made, in all lives."""
        self.ends = 0
        """Ends of replies it read as they came."""
        self._door = door
        self._headers = headers
        self._log: TextIO = log.open("w", buffering=1 << 16)
        self._socket: ClientConnection | None = None
        self._informed = False
        self._asked: dict[str, str] = {}
        self._heard: set[str] = set()
        self._sent: set[str] = set()
        self._stops: set[str] = set()
        self._answered: set[str] = set()
        self._shown: dict[str, UIMessage] = {}
        self._streams: dict[str, list[str]] = {}
        self._note("agent", agent=agent)

    async def run(self) -> None:
        """Connect, read until the line is cut, and again, until the task is cancelled."""
        try:
            while True:
                life, url = await self._door.opened()
                try:
                    await self._visit(life, url)
                except (OSError, WebSocketException, TimeoutError) as error:
                    self._note("cut", why=type(error).__name__)
                self._socket, self._informed = None, False
                await asyncio.sleep(RETRY)
        finally:
            self._log.close()

    async def _visit(self, life: int, url: str) -> None:
        address = f"{url.replace('http', 'ws', 1)}/{self._door.prefix}/{self.agent}"
        headers = dict(self._headers)
        async with connect(
            address, max_size=None, close_timeout=1, additional_headers=headers
        ) as socket:
            self._socket = socket
            self._sent, self._answered, self._streams = set(), set(), {}
            self._note("open", life=life)
            async for text in socket:
                await self._read(json.loads(text))
            self._note("closed", code=socket.close_code)

    # What it does

    async def ask(self, question: str, *, stop: bool = False) -> None:
        """Send a question now, or as soon as there is somebody to send it to."""
        script = read_script(question)
        request = f"chaos-{script.label}" if script is not None else f"chaos-{len(self._asked)}"
        self._asked[request] = question
        if stop:
            self._stops.add(request)
        await self._send_unheard()

    async def _send_unheard(self) -> None:
        for request, question in self._asked.items():
            if self._informed and request not in self._heard | self._sent:
                self._sent.add(request)
                self._note("sent", id=request, question=question)
                messages = [*self._history(), user_message(f"m-{request}", question)]
                body = json.dumps({"messages": messages, "trigger": "submit-message"})
                init = {"method": "POST", "body": body}
                await self._send({"type": "cf_agent_use_chat_request", "id": request, "init": init})

    async def _send(self, frame: Mapping[str, Any]) -> None:
        if self._socket is not None:
            await self._socket.send(json.dumps(frame))

    def _history(self) -> list[UIMessage]:
        """What it shows: the transcript, its own questions, and replies as far as it heard them."""
        shown = dict(self._shown)
        for request in self._heard & self._asked.keys():
            shown.setdefault(f"m-{request}", user_message(f"m-{request}", self._asked[request]))
            partial = _partial(self._streams.get(request, []))
            if partial is not None:
                shown.setdefault(partial["id"], partial)
        return list(shown.values())

    # What it reads

    async def _read(self, frame: dict[str, Any]) -> None:
        kind = frame.get("type")
        if kind == RESPONSE:
            await self._response(frame)
        elif kind == TRANSCRIPT:
            await self._transcript(frame)
        elif kind == UPDATED:
            message = cast("UIMessage", frame["message"])
            self._shown[message["id"]] = message
            self._note("updated", id=message["id"])
            await self._answer_open_calls()
        elif kind == OFFER:
            self._note("offer", id=frame["id"])
            await self._send({"type": "cf_agent_stream_resume_ack", "id": frame["id"]})
        else:
            self._note("frame", frame=frame)

    async def _response(self, frame: dict[str, Any]) -> None:
        request = str(frame["id"])
        self._heard.add(request)
        kept = {key: value for key, value in frame.items() if key != "type"}
        self._note("response", **kept)
        if "seq" in frame:
            if frame["seq"] == 0:
                self._streams[request] = []
            self._streams.setdefault(request, []).append(frame["body"])
            self.live += "replay" not in frame
            if request in self._stops:
                self._stops.discard(request)
                self._note("stop", id=request)
                await self._send({"type": "cf_agent_chat_request_cancel", "id": request})
        elif frame.get("done"):
            self.ends += "replay" not in frame
            await self._answer_open_calls()

    async def _transcript(self, frame: dict[str, Any]) -> None:
        messages = cast("list[UIMessage]", frame["messages"])
        self._shown = {message["id"]: message for message in messages}
        self._heard |= {r for r in self._asked if f"m-{r}" in self._shown}
        self._note("transcript", ids=list(self._shown))
        self._informed = True
        await self._send_unheard()
        await self._answer_open_calls()

    async def _answer_open_calls(self) -> None:
        waiting = [p for m in self._shown.values() for p in tool_parts(m) if p["state"] in WAITING]
        for part in waiting:
            call = part["toolCallId"]
            if call in self._answered:
                continue
            self._answered.add(call)
            # By the place in the script: another tab, or this one after a crash, decides the same.
            place = call.partition("~")[0]
            agrees = place.startswith("rehearsal") or random.Random(place).random() < AGREES
            self._note("answer", call=call, approved=agrees)
            if part["state"] == "approval-requested":
                frame = {"type": "cf_agent_tool_approval", "approved": agrees}
            else:
                frame = {"type": "cf_agent_tool_result", "output": "chaos", "toolName": ""}
            await self._send({**frame, "toolCallId": call, "autoContinue": True})

    def leave(self) -> None:
        """Its user closes it: whatever it still shows is nobody's spinner any more."""
        self._note("closed", code=None)

    # What the run asks about it

    def open_calls(self) -> list[dict[str, Any]]:
        """Calls at the end of the conversation that wait for a person or a client."""
        last = next(reversed(self._shown.values()), None)
        if last is None or last["role"] != "assistant":
            return []
        return [part for part in tool_parts(last) if part["state"] in WAITING]

    @property
    def unheard(self) -> list[str]:
        """Requests it has no word about yet."""
        return [request for request in self._asked if request not in self._heard]

    @property
    def unsent(self) -> list[str]:
        """Requests that are still to be sent in this life."""
        return [request for request in self.unheard if request not in self._sent]

    def _note(self, event: str, **fields: Any) -> None:
        if not self._log.closed:
            self._log.write(json.dumps({"event": event, **fields}) + "\n")

    def flush(self) -> None:
        """Make sure that what it read is in its file."""
        if not self._log.closed:
            self._log.flush()


def _partial(bodies: list[str]) -> UIMessage | None:
    chunks = [json.loads(body) for body in bodies]
    if not chunks or "messageId" not in chunks[0]:
        return None
    fold = Fold({"id": str(chunks[0]["messageId"]), "role": "assistant", "parts": []})
    for chunk in chunks:
        fold.apply(chunk)
    return fold.message
