"""Chunks in, message out: what a client shows and what the server stores (spec/01 §9.3).

For a legal stream the result is the AI SDK's own. An illegal one never raises: a chunk that
refers to nothing known, or lacks what it needs, finds its place or does nothing. `Fold` works on
its own copy of the message it is given; the chunks it is given may be shared and are never
changed.

Left to the caller: what an `error` or `abort` means for the turn. A continuation also settles the
calls of the message it goes on with; their first outcome stays (F13).

Invariant: no chunk takes a tool part back to an earlier state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias, cast

import msgspec

from thinkwell.messages import tool_states
from thinkwell.messages.chunks import Chunk, is_data_kind
from thinkwell.messages.growing import GrowingParts
from thinkwell.messages.message import (
    Part,
    UIMessage,
    approval_of,
    is_settled,
    is_tool_part,
    parse_object,
    tool_name,
)
from thinkwell.messages.plain_parts import PLAIN_PARTS

_Handler: TypeAlias = Callable[[Chunk], None]


class OpenPart(msgspec.Struct, frozen=True):
    """Something a stream began and has not ended: a text, a reasoning or a tool input."""

    kind: Literal["text", "reasoning", "tool-input"]
    """What is open."""
    id: str
    """The chunk id of a text or reasoning, the tool call id of an input."""
    text: str
    """What has come so far: the text, or the collected JSON text of the input."""
    tool_name: str = ""
    """The tool, when an input is open."""


class Fold:
    """One message growing under its chunks. A continuation keeps its id and goes on in it."""

    def __init__(self, message: UIMessage, *, continuation: bool = False) -> None:
        parts = [dict(part) for part in message["parts"]]
        self._message = cast("UIMessage", {**message, "parts": parts})
        self._parts = parts
        self._continuation = continuation
        self._text = GrowingParts("text", parts, continuation=continuation)
        self._reasoning = GrowingParts("reasoning", parts, continuation=continuation)
        self._calls: dict[str, Part] = {}
        self._inputs: dict[str, list[str]] = {}
        self._provisional: set[str] = set()
        self._index_calls()
        # Fixed now: calls the continuation itself opens settle by the usual rule.
        self._earlier = frozenset(self._calls) if continuation else frozenset[str]()
        self._handlers = self._make_handlers()

    @property
    def message(self) -> UIMessage:
        """The message as of now; the same dict every time, changed by the next chunk."""
        self._text.flush()
        self._reasoning.flush()
        return self._message

    def snapshot(self) -> UIMessage:
        """A copy of the message that later chunks leave alone."""
        return _deep_copy(self.message)

    def apply(self, chunk: Chunk) -> None:
        """Take in one chunk. Never raises; an unknown kind does nothing (F17)."""
        kind = chunk.get("type")
        if not isinstance(kind, str):
            return
        handler = self._handlers.get(kind)
        if handler is not None:
            handler(chunk)
        elif is_data_kind(kind):
            self._take_data(chunk, kind)

    def open_parts(self) -> list[OpenPart]:
        """What has begun and not ended, in the order of the message."""
        texts, reasonings = self._text.open_ids(), self._reasoning.open_ids()
        found: list[OpenPart] = []
        if not (texts or reasonings or self._inputs):
            return found
        for part in self.message["parts"]:
            if (part_id := texts.get(id(part))) is not None:
                found.append(OpenPart("text", part_id, part.get("text", "")))
            elif (part_id := reasonings.get(id(part))) is not None:
                found.append(OpenPart("reasoning", part_id, part.get("text", "")))
            elif (pieces := self._inputs.get(part.get("toolCallId", ""))) is not None:
                collected = "".join(pieces)
                found.append(OpenPart("tool-input", part["toolCallId"], collected, tool_name(part)))
        return found

    @property
    def has_calls(self) -> bool:
        """Whether it holds any tool call."""
        return bool(self._calls)

    def tool_call(self, tool_call_id: str) -> Part | None:
        """The part of a call, or None. Read it; only `apply` changes it."""
        return self._calls.get(tool_call_id)

    def replace_call(self, part: Part) -> None:
        """Put an answered call in the place of the one with its id.

        For an answer that comes while the stream still runs (`apply_result.py`).
        """
        known = self._calls.get(part["toolCallId"])
        if known is not None:
            # In place: the list of parts and the index hold this very dict.
            known.clear()
            known.update(part)
            self._input_is_final(part["toolCallId"])

    def call_keeper(self, tool_call_id: str) -> Callable[[], None]:
        """What puts a call back as it is now, whatever else comes until then.

        For an outcome that could not be stored: the only way a call goes back to an earlier state.
        """
        part = self._calls.get(tool_call_id)
        kept = None if part is None else dict(part)
        pieces, provisional = self._inputs.get(tool_call_id), tool_call_id in self._provisional

        def put_back() -> None:
            self._input_is_final(tool_call_id)
            now = self._calls.get(tool_call_id)
            if now is not None and kept is not None:
                now.clear()
                now.update(kept)
                if pieces is not None:
                    self._inputs[tool_call_id] = pieces
                if provisional:
                    self._provisional.add(tool_call_id)
            elif now is not None:
                del self._calls[tool_call_id]
                self._parts[:] = [each for each in self._parts if each is not now]

        return put_back

    def awaits_input(self, tool_call_id: str) -> bool:
        """Whether a call is known whose complete input has not come yet (F7, F9)."""
        part = self._calls.get(tool_call_id)
        if part is None:
            return False
        if part.get("state") == tool_states.INPUT_STREAMING:
            return True
        missing = "input" not in part or tool_call_id in self._provisional
        return part.get("state") == "approval-requested" and missing

    def _make_handlers(self) -> dict[str, _Handler]:
        handlers: dict[str, _Handler] = {
            "text-delta": self._text.delta,
            "reasoning-delta": self._reasoning.delta,
            "tool-input-delta": self._collect_input,
            "text-start": self._text.start,
            "text-end": self._text.end,
            "reasoning-start": self._reasoning.start,
            "reasoning-end": self._reasoning.end,
            "start": self._start,
            "start-step": self._start_step,
            "finish-step": self._finish_step,
            "reset-step": self._reset_step,
            "tool-input-start": self._open_call,
            "tool-input-available": self._take_input,
            "tool-input-error": self._fail_input,
            "tool-approval-request": self._request_approval,
            "tool-approval-response": self._answer_approval,
            "tool-output-available": self._settle,
            "tool-output-error": self._settle,
            "tool-output-denied": self._settle,
            "message-metadata": self._merge_metadata,
            "finish": self._merge_metadata,
        }
        return handlers | dict.fromkeys(PLAIN_PARTS, self._append_as_is)

    def _start(self, chunk: Chunk) -> None:
        message_id = chunk.get("messageId")
        if isinstance(message_id, str) and not self._continuation:
            self._message["id"] = message_id
        self._merge_metadata(chunk)

    def _merge_metadata(self, chunk: Chunk) -> None:
        metadata = chunk.get("messageMetadata")
        if isinstance(metadata, dict):
            known = self._message.get("metadata", {})
            self._message["metadata"] = _merged(known, cast("dict[str, Any]", metadata))

    def _start_step(self, chunk: Chunk) -> None:  # noqa: ARG002 - a handler
        self._parts.append({"type": "step-start"})

    def _finish_step(self, chunk: Chunk) -> None:  # noqa: ARG002 - a handler
        self._text.close_all()
        self._reasoning.close_all()

    def _reset_step(self, chunk: Chunk) -> None:  # noqa: ARG002 - a handler
        # The step's own `step-start` stays: what is said anew belongs to the same step.
        begin = len(self._parts)
        while begin and self._parts[begin - 1].get("type") != "step-start":
            begin -= 1
        self._text.flush()
        self._reasoning.flush()
        del self._parts[begin:]
        self._text.forget_removed()
        self._reasoning.forget_removed()
        self._index_calls()

    def _append_as_is(self, chunk: Chunk) -> None:
        plain = PLAIN_PARTS[chunk["type"]]
        if any(chunk.get(name) is None for name in plain.required):
            return
        part: Part = {"type": chunk["type"]}
        part |= {name: chunk[name] for name in plain.fields if chunk.get(name) is not None}
        self._parts.append(part)

    def _take_data(self, chunk: Chunk, kind: str) -> None:
        if chunk.get("transient") is True or "data" not in chunk:
            return
        data_id = chunk.get("id")
        part = self._data_part(kind, data_id) if data_id is not None else None
        if part is not None:
            part["data"] = chunk["data"]
            return
        part = {"type": kind} if data_id is None else {"type": kind, "id": data_id}
        part["data"] = chunk["data"]
        self._parts.append(part)

    def _data_part(self, kind: str, data_id: Any) -> Part | None:
        # From the end: what is updated again and again is usually near it.
        return next(
            (p for p in reversed(self._parts) if p.get("type") == kind and p.get("id") == data_id),
            None,
        )

    def _open_call(self, chunk: Chunk) -> None:
        if _names_call(chunk) and chunk["toolCallId"] not in self._calls:
            tool_states.describe_call(self._add_call(chunk), chunk)

    def _collect_input(self, chunk: Chunk) -> None:
        call_id, delta = chunk.get("toolCallId"), chunk.get("inputTextDelta")
        if isinstance(call_id, str) and isinstance(delta, str):
            pieces = self._inputs.get(call_id)
            if pieces is not None:
                pieces.append(delta)

    def _take_input(self, chunk: Chunk) -> None:
        if not _names_call(chunk):
            return
        call_id = chunk["toolCallId"]
        # An input without a start is legal: providers that do not stream arguments send only the
        # whole.
        part = self._calls.get(call_id) or self._add_call(chunk)
        if self.awaits_input(call_id):
            tool_states.take_input(part, chunk)
            self._input_is_final(call_id)

    def _fail_input(self, chunk: Chunk) -> None:
        if not _names_call(chunk):
            return
        part = self._calls.get(chunk["toolCallId"]) or self._add_call(chunk)
        if not is_settled(part):
            tool_states.fail_input(part, chunk)
            self._input_is_final(chunk["toolCallId"])

    def _request_approval(self, chunk: Chunk) -> None:
        part = self._call_of(chunk)
        if part is None or not isinstance(chunk.get("approvalId"), str):
            return
        if not tool_states.takes_approval_request(part):
            return
        if part.get("state") == tool_states.INPUT_STREAMING:
            # A person must see what is asked for before the input is complete; the complete one
            # replaces it.
            self._take_provisional_input(part)
        tool_states.request_approval(part, chunk)

    def _answer_approval(self, chunk: Chunk) -> None:
        approval_id = chunk.get("approvalId")
        if not isinstance(approval_id, str) or not isinstance(chunk.get("approved"), bool):
            return
        for part in self._calls.values():
            if approval_of(part).get("id") == approval_id and not is_settled(part):
                tool_states.answer_approval(part, chunk)
                return

    def _settle(self, chunk: Chunk) -> None:
        part = self._call_of(chunk)
        if part is None:
            return
        call_id = part["toolCallId"]
        settle = tool_states.settle_late if call_id in self._earlier else tool_states.settle
        if settle(part, chunk):
            self._input_is_final(call_id)

    def _call_of(self, chunk: Chunk) -> Part | None:
        call_id = chunk.get("toolCallId")
        return self._calls.get(call_id) if isinstance(call_id, str) else None

    def _add_call(self, chunk: Chunk) -> Part:
        part = tool_states.new_tool_part(chunk)
        self._parts.append(part)
        self._calls[part["toolCallId"]] = part
        self._inputs[part["toolCallId"]] = []
        return part

    def _take_provisional_input(self, part: Part) -> None:
        call_id = part["toolCallId"]
        value = parse_object("".join(self._inputs.pop(call_id, ())))
        if value is not None:
            part["input"] = value
            self._provisional.add(call_id)

    def _input_is_final(self, call_id: str) -> None:
        self._inputs.pop(call_id, None)
        self._provisional.discard(call_id)

    def _index_calls(self) -> None:
        named = (part for part in self._parts if is_tool_part(part) and "toolCallId" in part)
        calls: dict[str, Part] = {part["toolCallId"]: part for part in named}
        streaming = (c for c, p in calls.items() if p.get("state") == tool_states.INPUT_STREAMING)
        self._inputs = {call_id: self._inputs.get(call_id, []) for call_id in streaming}
        self._provisional &= calls.keys()
        self._calls = calls


def _names_call(chunk: Chunk) -> bool:
    return isinstance(chunk.get("toolCallId"), str) and isinstance(chunk.get("toolName"), str)


def _merged(known: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    result = dict(known)
    for key, value in new.items():
        old = result.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            value = _merged(cast("dict[str, Any]", old), cast("dict[str, Any]", value))
        result[key] = value
    return result


def _deep_copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _deep_copy(item) for k, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_deep_copy(item) for item in cast("list[Any]", value)]
    return value
