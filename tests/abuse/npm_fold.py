"""Chunks become a message the way the npm clients do it (spec/01 §9.3, §9.4).

Written from the client's side and on purpose not with the server's own fold: the two must agree.
`SdkMessage` is the fold of the tab that asked and, like the real one, fails on a chunk that refers
to nothing; `Observed` is the fold of every other tab, which lets such chunks pass.
"""

from __future__ import annotations

import copy
import json
from typing import Any

Message = dict[str, Any]
Part = dict[str, Any]
Chunk = dict[str, Any]

SETTLED = ("output-available", "output-error", "output-denied")


class StreamError(Exception):
    """What the AI SDK raises: the chat shows an error."""


class SdkMessage:
    """The message of one stream that this tab asked for or joined."""

    def __init__(self, message_id: str, seed: Message | None = None) -> None:
        self.message: Message = copy.deepcopy(seed) or {
            "id": message_id,
            "role": "assistant",
            "parts": [],
        }
        self._open: dict[tuple[str, str], Part] = {}

    def apply(self, chunk: Chunk, *, resumed: bool) -> bool:
        """Take in a chunk. Whether the list is to show it; raises `StreamError`."""
        kind = chunk["type"]
        if kind == "start":
            return self._start(chunk.get("messageId"), resumed=resumed)
        if kind == "start-step":
            self.message["parts"].append({"type": "step-start"})
            return False
        if kind.startswith(("text-", "reasoning-")):
            self._text(kind, chunk)
            return True
        if kind.startswith("tool-"):
            part = self._call(chunk)
            apply_to_call(part, chunk)
            return True
        if kind == "error":
            raise StreamError(chunk["errorText"])
        return False

    def _start(self, message_id: str | None, *, resumed: bool) -> bool:
        if message_id is None:
            return False
        if resumed and message_id != self.message["id"]:
            self.message = {"id": message_id, "role": "assistant", "parts": []}
            self._open.clear()
        self.message["id"] = message_id
        return True

    def _text(self, name: str, chunk: Chunk) -> None:
        kind, _, event = name.partition("-")
        key = (kind, chunk["id"])
        if event == "start":
            self._open[key] = {"type": kind, "text": "", "state": "streaming"}
            self.message["parts"].append(self._open[key])
            return
        if key not in self._open:
            raise StreamError(f"{kind}-{event} for a missing part {chunk['id']!r}")
        if event == "delta":
            self._open[key]["text"] += chunk["delta"]
        else:
            self._open.pop(key)["state"] = "done"

    def _call(self, chunk: Chunk) -> Part:
        part = find_call(self.message["parts"], chunk["toolCallId"])
        if part is None:
            if chunk["type"] not in ("tool-input-start", "tool-input-available"):
                raise StreamError(f"{chunk['type']} for a missing call {chunk['toolCallId']!r}")
            part = new_call(chunk)
            self.message["parts"].append(part)
        return part


class LocalStream:
    """A stream the AI SDK reads in this tab."""

    def __init__(self, request_id: str | None, fold: SdkMessage, *, resumed: bool) -> None:
        self.request_id = request_id
        self.fold = fold
        self.resumed = resumed
        self.probe: str | None = None
        """Set while a continuation waits for its offer."""
        self.batch: list[Chunk] = []
        """Replayed chunks, applied together when the replay pauses."""
        self._open: dict[tuple[str, str], Chunk] = {}

    def skip(self, chunk: Chunk | None) -> None:
        """Leave out a replayed chunk that was applied before the socket closed."""
        if chunk is None:
            return
        kind, _, event = chunk["type"].rpartition("-")
        key = (kind, chunk.get("id") or chunk.get("toolCallId") or "")
        if event == "start" and kind:
            self._open[key] = chunk
        elif event in ("end", "available", "error"):
            self._open.pop(key, None)

    def with_open_parts(self, chunk: Chunk | None) -> list[Chunk]:
        """The chunk, behind the beginnings of the parts that were open where the replay ended."""
        if chunk is None:
            return []
        opened, self._open = list(self._open.values()), {}
        return [*opened, chunk]


class Observed:
    """The message of a stream that another tab asked for."""

    def __init__(self, request_id: str, message_id: str, *, continuation: bool = False) -> None:
        self.request_id = request_id
        self.message_id = message_id
        self.parts: list[Part] = []
        self._continuation = continuation
        self._queued: list[Chunk] | None = [] if continuation else None

    def apply(self, chunk: Chunk) -> None:
        """Take in a chunk; one that refers to nothing finds its place or does nothing."""
        if self._queued is not None:
            self._queued.append(chunk)
        kind = chunk["type"]
        if kind == "start" and chunk.get("messageId") and not self._continuation:
            self.message_id = chunk["messageId"]
        elif kind == "start-step":
            self.parts.append({"type": "step-start"})
        elif kind.startswith(("text-", "reasoning-")):
            self._text(kind, chunk)
        elif kind.startswith("tool-"):
            self._tool(chunk)

    def merged(self, messages: list[Message]) -> list[Message]:
        """The list with this message in it: in its place, or at the end."""
        index = index_of(messages, self.message_id)
        if index < 0 and self._continuation:
            roles = [message["role"] for message in messages]
            index = len(roles) - 1 - roles[::-1].index("assistant") if "assistant" in roles else -1
        if self._queued is not None:
            chunks, self._queued = self._queued, None
            self.parts = copy.deepcopy(messages[index]["parts"]) if index >= 0 else []
            self.message_id = messages[index]["id"] if index >= 0 else self.message_id
            for chunk in chunks:
                self.apply(chunk)
        shown = {"id": self.message_id, "role": "assistant", "parts": copy.deepcopy(self.parts)}
        if index < 0:
            return [*messages, shown]
        return [*messages[:index], {**shown, "id": messages[index]["id"]}, *messages[index + 1 :]]

    def diverges_from(self, messages: list[Message]) -> bool:
        """Whether the list holds a copy whose text this one does not go on with."""
        index = index_of(messages, self.message_id)
        return index >= 0 and not text_of(self.parts).startswith(text_of(messages[index]["parts"]))

    def _text(self, name: str, chunk: Chunk) -> None:
        kind, _, event = name.partition("-")
        last = next((p for p in reversed(self.parts) if p["type"] == kind), None)
        if event == "start" or (event == "delta" and last is None):
            last = {"type": kind, "text": "", "state": "streaming"}
            self.parts.append(last)
        if event == "delta" and last is not None:
            last["text"] += chunk["delta"]
        if event == "end" and last is not None:
            last["state"] = "done"

    def _tool(self, chunk: Chunk) -> None:
        part = find_call(self.parts, chunk["toolCallId"])
        if part is None and chunk["type"] in ("tool-input-start", "tool-input-available"):
            part = new_call(chunk)
            self.parts.append(part)
        if part is not None:
            apply_to_call(part, chunk)


def new_call(chunk: Chunk) -> Part:
    """The part of a call that begins."""
    kind, call_id = f"tool-{chunk['toolName']}", chunk["toolCallId"]
    return {"type": kind, "toolCallId": call_id, "state": "input-streaming"}


def apply_to_call(part: Part, chunk: Chunk) -> None:
    """What a chunk does to the part of its call."""
    match chunk["type"]:
        case "tool-input-available":
            part |= {"state": "input-available", "input": chunk["input"]}
        case "tool-approval-request":
            part |= {"state": "approval-requested", "approval": {"id": chunk["approvalId"]}}
        case "tool-output-available":
            part |= {"state": "output-available", "output": chunk["output"]}
        case "tool-output-error" | "tool-input-error":
            part |= {"state": "output-error", "errorText": chunk["errorText"]}
        case "tool-output-denied":
            part["state"] = "output-denied"
        case _:
            pass


def find_call(parts: list[Part], call_id: str) -> Part | None:
    return next((p for p in reversed(parts) if p.get("toolCallId") == call_id), None)


def index_of(messages: list[Message], message_id: str) -> int:
    ids = [message["id"] for message in messages]
    return ids.index(message_id) if message_id in ids else -1


def text_of(parts: list[Part]) -> str:
    return "".join(part["text"] for part in parts if part["type"] == "text")


def chunk_of(frame: dict[str, Any]) -> Chunk | None:
    """What a response frame carries, if it is no error."""
    return json.loads(frame["body"]) if frame["body"].strip() and not frame.get("error") else None


def seed_of(last: Message | None) -> Message | None:
    """The last answer, if a stream that is joined may go on in it."""
    if last is None or last["role"] != "assistant":
        return None
    open_states = ("input-streaming", "approval-responded")
    return last if any(part.get("state") in open_states for part in last["parts"]) else None
