"""One record per frame a client may send (spec/01 §3.1).

Owned here: the shapes after decoding, nothing else. `decode.py` makes them, the agent acts on them.
Frames the server sends have no records: `encode.py` writes their text directly.
Invariant: every value inside a frame is JSON data that can be encoded again.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from thinkwell.messages.message import UIMessage
from thinkwell.messages.validate import check_message, check_reference

Trigger = Literal["submit-message", "regenerate-message"]
ResultState = Literal["output-available", "output-error"]


class ChatRequest(msgspec.Struct, frozen=True, kw_only=True):
    """C3: run a turn. `id` becomes the request id of the turn."""

    id: str
    messages: list[Any]
    """The client's whole list, unchecked: entries may be anything JSON can hold."""
    trigger: Trigger = "submit-message"
    after: str | None = None
    """Of a client that sends only what is new: the id of the message before that in its list."""
    client_tools: list[Any] | None = None
    """None when the key is absent (keep the stored ones); an empty list clears them (§6.2)."""
    body: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    """Every other key of the request body."""

    def copied_answer(self) -> UIMessage | None:
        """The client's copy of an answer, if that is its last message: it brings no question.

        Raises `ValueError` if that is no message.
        """
        if not self.messages or self.trigger != "submit-message":
            return None
        last = self.messages[-1]
        return check_message(last) if check_reference(last).role == "assistant" else None


class ChatCancel(msgspec.Struct, frozen=True):
    """C4: stop the turn with that request id."""

    id: str


class ChatClear(msgspec.Struct, frozen=True):
    """C5: delete the conversation."""


class ClientMessages(msgspec.Struct, frozen=True):
    """C6: the list one client shows. The server's transcript is the truth, so nothing is stored."""

    messages: list[Any]
    """Unchecked: entries may be anything JSON can hold."""


class ResumeRequest(msgspec.Struct, frozen=True):
    """C7: is there a stream to join? The answer echoes `probe_id`."""

    probe_id: str | None = None


class ResumeAck(msgspec.Struct, frozen=True):
    """C8: send me the stream with that request id, from its start."""

    id: str


class ClientToolResult(msgspec.Struct, frozen=True, kw_only=True):
    """C9: a client has run one of its tools."""

    tool_call_id: str
    tool_name: str = ""
    """Informational: the call says which tool it is."""
    output: Any = None
    state: ResultState = "output-available"
    error_text: str | None = None
    """What went wrong, with the state `output-error`; None when the client did not say."""
    auto_continue: bool = False
    """Whether the model should go on with the answer."""
    client_tools: list[Any] | None = None
    """The client's tools as of now; None keeps the stored ones. Never empty (§11.3)."""


class ToolApproval(msgspec.Struct, frozen=True, kw_only=True):
    """C10: somebody allows or refuses a call."""

    tool_call_id: str
    approved: bool
    auto_continue: bool = False
    """Whether the model should go on with the answer."""
    reason: str | None = None
    """Why; the model reads it when the call is refused (spec/02 §3.12)."""


class StateUpdate(msgspec.Struct, frozen=True):
    """C1: replace the agent's state by `state` (any JSON value, null included)."""

    state: Any


class RpcCall(msgspec.Struct, frozen=True):
    """C2: call a method."""

    id: str
    method: str
    args: list[Any]


class BadChatRequest(msgspec.Struct, frozen=True):
    """A C3 that cannot run. With an `id` its sender is owed an error frame, else nothing."""

    id: str | None
    reason: str


class BadCall(msgspec.Struct, frozen=True):
    """A C2 that is not read; its sender is told."""

    id: str
    reason: str


class BadState(msgspec.Struct, frozen=True):
    """A C1 that is not read; its sender is told."""

    reason: str


class NotProtocol(msgspec.Struct, frozen=True):
    """Anything else, as it came: it belongs to the app's `on_client_message`."""

    data: str | bytes


Frame: TypeAlias = (
    ChatRequest
    | ChatCancel
    | ChatClear
    | ClientMessages
    | ResumeRequest
    | ResumeAck
    | ClientToolResult
    | ToolApproval
    | StateUpdate
    | RpcCall
    | BadChatRequest
    | BadCall
    | BadState
    | NotProtocol
)
