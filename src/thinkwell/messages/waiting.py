"""What a message still waits for, and whether the conversation can go on (spec/01 §11.8, §11.14).

Pure decisions over a stored or streaming message. A call waits when a person has to allow it or a
client has to run it; which tools clients run is not written in a message, so callers name them:
the client's own, and those of the server that have no function. The barrier itself, as one
question with three answers, is `decide_continuation`; asking it again after each answer and after
each turn is the caller's, and so is starting the continuation in the transaction of the answer.

Invariant: a continuation never starts beside a call that still waits for its answer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Literal

from thinkwell.messages.message import (
    Part,
    UIMessage,
    approval_of,
    is_settled,
    tool_name,
    tool_parts,
)

ContinuationDecision = Literal["run", "wait", "nothing"]
"""Start a continuation now; ask again after the next answer or turn; nobody asked for one."""


def open_interactions(message: UIMessage, client_tool_names: Collection[str]) -> list[Part]:
    """The calls that wait for a person or a client, in order."""
    if message["role"] != "assistant":
        return []
    return [part for part in tool_parts(message) if _waits(part, client_tool_names)]


def has_pending_interaction(
    messages: Iterable[UIMessage], client_tool_names: Collection[str]
) -> bool:
    """Whether any message waits for a person or a client (spec/02 §3.9)."""
    return any(open_interactions(message, client_tool_names) for message in messages)


def is_half_answered(message: UIMessage, client_tool_names: Collection[str] | None = None) -> bool:
    """Whether an answered call stands beside one that is not (11.8).

    With `client_tool_names`, a call of a server tool that died before its result holds nobody up.
    """
    calls = list(tool_parts(message))
    answered = any(is_settled(p) or p.get("state") == "approval-responded" for p in calls)
    return answered and any(_waits(part, client_tool_names) for part in calls)


def approved_calls(message: UIMessage) -> list[Part]:
    """The calls that were allowed and have not run, in order: work for the continuation (11.12)."""
    return [
        part
        for part in tool_parts(message)
        if approval_of(part).get("approved") is True
        and (part.get("preliminary") is True or _is_ready(part))  # a crash may cut a result
    ]


def _is_ready(part: Part) -> bool:
    return part.get("state") == "approval-responded" and not is_settled(part)


def decide_continuation(
    *, armed: bool, streaming: bool, half_answered: bool
) -> ContinuationDecision:
    """The barrier (11.7-11.8, spec/02 §3.11): does a continuation start now?

    `armed`: an answer that changed the newest assistant message asked to go on, and no
    continuation has started since. `streaming`: a turn holds the slot. `half_answered`: see
    `is_half_answered`, of that message.
    """
    if not armed:
        return "nothing"
    return "wait" if streaming or half_answered else "run"


def _waits(part: Part, client_tool_names: Collection[str] | None) -> bool:
    if is_settled(part) or part.get("providerExecuted") is True:
        return False
    if part.get("state") == "approval-requested":
        return True
    # A call of a server tool that has no result is not waiting, it is dead: `repair.py` settles
    # it.
    by_client = client_tool_names is None or tool_name(part) in client_tool_names
    return part.get("state") == "input-available" and by_client
