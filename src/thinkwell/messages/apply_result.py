"""An answer from outside, applied to the call that waits for it (spec/01 §11.3-11.5).

Two kinds of answers exist: the result of a tool that a client ran, and a person's yes or no. Each
is matched against the state of its call: a result settles a call that waits for a client, never
one that waits for leave, and a decision answers only a call that asks for one (DESIGN §8.12). An
answer that comes too late, or names an unknown call, changes nothing. Finding the message among the
stored ones is `find_call`; storing it, telling the clients and going on with the turn
(`waiting.py`) are the caller's. An answer for a message that is still streaming goes into its
`Fold` with `replace_call(applied.part)`.

Invariant: the first settled outcome stays for ever; an unchanged message comes back as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from thinkwell.messages.message import (
    Part,
    UIMessage,
    approval_of,
    is_settled,
    is_tool_part,
    tool_parts,
    with_parts,
)

CLIENT_ERROR_TEXT = "Tool execution denied by user"
"""Stands for the error a client did not explain."""

TAKES_RESULT = "input-available"
"""The state of a call that a client can give a result for."""
TAKES_APPROVAL = "approval-requested"
"""The state of a call that a person can decide about."""


class Applied(msgspec.Struct, frozen=True):
    """What an answer did."""

    message: UIMessage
    """The message to go on with; the one handed in when nothing changed."""
    changed: bool
    """Whether the message must be stored again and the clients told."""
    part: Part | None = None
    """The answered call as it is now, when something changed."""


class StoredCall(NamedTuple):
    """A call and the message it stands in."""

    message: UIMessage
    """The message."""
    part: Part
    """Its tool part."""


def find_call(messages: Sequence[UIMessage], tool_call_id: str) -> StoredCall | None:
    """The call with that id in the newest message that has it: providers use ids again."""
    for message in reversed(messages):
        if message["role"] != "assistant":
            continue
        for part in tool_parts(message):
            if part.get("toolCallId") == tool_call_id:
                return StoredCall(message, part)
    return None


def apply_tool_result(
    message: UIMessage,
    tool_call_id: str,
    *,
    output: Any | UnsetType = UNSET,
    error_text: str | UnsetType | None = UNSET,
) -> Applied:
    """Settle a call with what a client says came of it: an output, or an error (11.3).

    Exactly one of both is given; an `error_text` of None or "" is an error without an explanation.
    """
    if (output is UNSET) == (error_text is UNSET):
        raise ValueError("apply_tool_result needs either output= or error_text=")
    part = _open_call(message, tool_call_id, TAKES_RESULT)
    if part is None:
        return Applied(message, changed=False)
    if error_text is UNSET:
        outcome = {"state": "output-available", "output": output, "preliminary": False}
    else:
        outcome = {"state": "output-error", "errorText": error_text or CLIENT_ERROR_TEXT}
    return _replaced(message, part, {**part, **outcome})


def apply_approval(
    message: UIMessage, tool_call_id: str, *, approved: bool, reason: str | None = None
) -> Applied:
    """Allow or refuse a call (11.4). What is known of the approval is kept."""
    part = _open_call(message, tool_call_id, TAKES_APPROVAL)
    if part is None:
        return Applied(message, changed=False)
    asked = approval_of(part)
    approval = {**asked, "id": asked.get("id") or tool_call_id, "approved": approved}
    if reason is not None:
        approval["reason"] = reason
    state = "approval-responded" if approved else "output-denied"
    return _replaced(message, part, {**part, "state": state, "approval": approval})


def _open_call(message: UIMessage, tool_call_id: str, state: str) -> Part | None:
    for part in message["parts"]:
        if is_tool_part(part) and part.get("toolCallId") == tool_call_id:
            waits = part.get("state") == state and not is_settled(part)
            return part if waits and part.get("providerExecuted") is not True else None
    return None


def _replaced(message: UIMessage, old: Part, new: Part) -> Applied:
    parts = [new if part is old else part for part in message["parts"]]
    return Applied(with_parts(message, parts), changed=True, part=new)
