"""A transcript a model will accept: no call without an outcome, no input that is not an object.

Runs before each model call (spec/01 §7.10, spec/02 §10.3). A call that was approved and waits to
run is left alone. A new user turn settles what a client or a person never answered like any dead
call; a continuation names those calls as `waiting` and leaves them alone (10.4). What a dead call
turns into is the application's to decide (`repair_part`); storing the changed messages, telling
the clients and the `chat:transcript:repaired` event are the caller's.

Invariant: inputs are never changed, unchanged messages keep their identity, and twice equals
once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TypeAlias

import msgspec

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

INTERRUPTED_TEXT = "The tool call was interrupted before a result was recorded."
NOT_ALLOWED_TEXT = "Not run: the conversation went on before anybody allowed it."
NOT_ANSWERED_TEXT = "Not answered: the conversation went on."

RepairPart: TypeAlias = Callable[[Part], Part]
"""The part to keep in place of a dead call: settled, a text, or the same one to leave it.

Contract: must not change its argument; called once for each dead call, in order; may raise, then
the repair fails as a whole."""


class RepairResult(msgspec.Struct, frozen=True, kw_only=True):
    """The repaired transcript and what had to be done."""

    messages: list[UIMessage]
    """The list to go on with; the one handed in when nothing was wrong."""
    changed_ids: tuple[str, ...] = ()
    """Ids of the messages that must be stored again."""
    removed_tool_calls: int = 0
    """How many dead calls were replaced."""
    normalized_inputs: int = 0
    """How many inputs were made objects."""
    tool_call_ids: tuple[str, ...] = ()
    """The calls concerned, in order."""


def repair_interrupted_tool_part(part: Part, client_tools: Collection[str] = ()) -> Part:
    """The default: the call failed, because nothing came of it. The text says why.

    `client_tools` are the names of those that clients answer.
    """
    text = INTERRUPTED_TEXT
    if part.get("state") == "approval-requested":
        text = NOT_ALLOWED_TEXT
    elif part.get("state") == "input-available" and tool_name(part) in client_tools:
        text = NOT_ANSWERED_TEXT
    return {**part, "state": "output-error", "errorText": text}


def repair_transcript(
    messages: list[UIMessage],
    repair_part: RepairPart = repair_interrupted_tool_part,
    *,
    waiting: Collection[str] = (),
) -> RepairResult:
    """Settle every dead call and make every tool input an object.

    `waiting` are the ids of calls that still get an answer: they stay open.
    """
    repair = _Repair(repair_part, _settled_ids(messages).union(waiting))
    repaired = [repair.message(m) if m["role"] == "assistant" else m for m in messages]
    changed = [new["id"] for new, old in zip(repaired, messages, strict=True) if new is not old]
    if not changed:
        return RepairResult(messages=messages)
    return RepairResult(
        messages=repaired,
        changed_ids=tuple(changed),
        removed_tool_calls=repair.removed,
        normalized_inputs=repair.normalized,
        tool_call_ids=tuple(dict.fromkeys(repair.call_ids)),
    )


def is_intact(message: UIMessage) -> bool:
    """Whether a message needs no repair whatever stands around it."""
    return not repair_transcript([message]).changed_ids


class _Repair:
    def __init__(self, repair_part: RepairPart, answered_ids: frozenset[str]) -> None:
        self._repair_part = repair_part
        self._answered_ids = answered_ids
        self.removed = 0
        self.normalized = 0
        self.call_ids: list[str] = []

    def message(self, message: UIMessage) -> UIMessage:
        parts = [self._part(p) if is_tool_part(p) else p for p in message["parts"]]
        return with_parts(message, parts)

    def _part(self, part: Part) -> Part:
        if "input" in part and not isinstance(part["input"], dict):
            part = {**part, "input": normalize_input(part["input"])}
            self.normalized += 1
            self._note(part)
        return self._revived(part) if self._is_dead(part) else part

    def _is_dead(self, part: Part) -> bool:
        if is_settled(part) or part.get("state") == "approval-responded":
            return False
        # Its result stands in another message or is still to come: a second outcome would be one
        # too many.
        return part.get("toolCallId") not in self._answered_ids

    def _revived(self, part: Part) -> Part:
        replacement = self._repair_part(part)
        if replacement is part:
            return part
        self.removed += 1
        self._note(part)
        if is_tool_part(replacement) and not isinstance(replacement.get("input"), dict):
            replacement = {**replacement, "input": normalize_input(replacement.get("input"))}
        return replacement

    def _note(self, part: Part) -> None:
        self.call_ids.append(str(part.get("toolCallId")))


def _settled_ids(messages: Iterable[UIMessage]) -> frozenset[str]:
    return frozenset(
        str(part.get("toolCallId"))
        for message in messages
        for part in tool_parts(message)
        if is_settled(part)
    )
