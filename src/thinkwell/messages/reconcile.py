"""The list a client posts, brought in line with what the server has stored (spec/01 §7.2-7.5).

Clients keep their own copies: under ids of their own, with tool calls whose outcome they have not
heard. Each incoming assistant message is first resolved to at most one stored row, and only from
that row does it take outcomes, because providers use the same call id again in later turns.
Storing the result, and never deleting what a client left out, are the caller's.

Invariant: inputs are never changed; a copy never stands beside the row it is a copy of; an
unchanged message keeps its identity, and so does an unchanged list.
"""

from __future__ import annotations

from typing import cast

from thinkwell.core import json
from thinkwell.messages.message import (
    Part,
    UIMessage,
    is_settled,
    is_tool_part,
    normalize_input,
    tool_name,
    tool_parts,
    with_parts,
)
from thinkwell.messages.sanitize import sanitize_message
from thinkwell.messages.tool_states import INPUT_STREAMING

_OPEN_STATES = frozenset({"input-available", "approval-requested", "approval-responded"})
_OUTCOME_FIELD = {
    "output-available": "output",
    "output-error": "errorText",
    "output-denied": "approval",
}


def reconcile(incoming: list[UIMessage], stored: list[UIMessage]) -> list[UIMessage]:
    """`incoming` under the ids and with the tool outcomes the server knows."""
    taken = {message["id"] for message in incoming}
    rows = _Rows(stored, taken)
    result: list[UIMessage] = []
    for message in incoming:
        settled = _reconciled(message, rows) if message["role"] == "assistant" else message
        if settled["id"] != message["id"]:
            # A second copy of a row would overwrite the one that came under its own id.
            if settled["id"] in taken:
                continue
            taken.add(settled["id"])
        result.append(settled)
    return incoming if _same_objects(result, incoming) else result


def _same_objects(a: list[UIMessage], b: list[UIMessage]) -> bool:
    return len(a) == len(b) and all(x is y for x, y in zip(a, b, strict=True))


class _Rows:
    """The stored assistant messages, by id, by content and by the calls they own."""

    def __init__(self, stored: list[UIMessage], taken: set[str]) -> None:
        self._assistants = [message for message in stored if message["role"] == "assistant"]
        self._by_id = {message["id"]: message for message in self._assistants}
        self._claimed = self._by_id.keys() & taken
        self._by_content: dict[str, list[UIMessage]] | None = None
        self._by_call: dict[str, list[UIMessage]] | None = None

    def of(self, message: UIMessage) -> UIMessage | None:
        """The row an incoming message is a copy of."""
        if (row := self._by_id.get(message["id"])) is not None:
            return row
        if any(tool_parts(message)):
            return self._owner(message)
        return self._same_content(message)

    def _same_content(self, message: UIMessage) -> UIMessage | None:
        if self._by_content is None:
            self._by_content = {}
            for row in self._assistants:
                if not any(tool_parts(row)):
                    self._by_content.setdefault(_content_key(row), []).append(row)
        for row in self._by_content.get(_content_key(message), ()):
            if row["id"] not in self._claimed:
                self._claimed.add(row["id"])
                return row
        return None

    def _owner(self, message: UIMessage) -> UIMessage | None:
        if self._by_call is None:
            self._by_call = {}
            for row in self._assistants:
                for part in tool_parts(row):
                    self._by_call.setdefault(str(part.get("toolCallId")), []).append(row)
        for part in tool_parts(message):
            for row in self._by_call.get(str(part.get("toolCallId")), ()):
                if _find_call(row, part) is not None:
                    return row
        return None


def _reconciled(message: UIMessage, rows: _Rows) -> UIMessage:
    row = rows.of(message)
    if row is None:
        return message
    parts = [_with_outcome(p, row) if is_tool_part(p) else p for p in message["parts"]]
    result = with_parts(message, parts)
    if result["id"] == row["id"]:
        return result
    return cast("UIMessage", {**result, "id": row["id"]})


def _with_outcome(part: Part, row: UIMessage) -> Part:
    if part.get("state") not in _OPEN_STATES:
        return part
    known = _find_call(row, part)
    field = _OUTCOME_FIELD.get(known.get("state", "")) if known and is_settled(known) else None
    if known is None or field is None:
        return part
    result = {**part, "state": known["state"]}
    if field in known:
        result[field] = known[field]
    return result


def _find_call(row: UIMessage, part: Part) -> Part | None:
    return next((known for known in tool_parts(row) if _same_call(known, part)), None)


def _same_call(a: Part, b: Part) -> bool:
    if a.get("toolCallId") != b.get("toolCallId") or tool_name(a) != tool_name(b):
        return False
    # While an input streams, each side holds as much of it as it has seen.
    if INPUT_STREAMING in (a.get("state"), b.get("state")):
        return True
    return normalize_input(a.get("input")) == normalize_input(b.get("input"))


def _content_key(message: UIMessage) -> str:
    # AI SDK clients keep the stream's id on a reasoning part, stored messages do not.
    parts = [
        {k: v for k, v in part.items() if k != "id"} if part.get("type") == "reasoning" else part
        for part in sanitize_message(message)["parts"]
    ]
    return json.canonical(parts)
