"""Text from a client → a typed frame (spec/01 §3.1, §3.3).

`decode_in_pieces` never raises, whatever a client sends: what is not a frame is `NotProtocol`, a
chat request that cannot run is `BadChatRequest` with the reason its sender is shown. Nothing here
looks into messages; reconciling them is the agent's work.
Invariant: what comes out can be encoded again, with stack to spare.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Container
from typing import Any, cast

from thinkwell.core.tasks import Pieces
from thinkwell.wire.client_json import (
    CHAT_REQUEST,
    TooLargeError,
    parse_body,
    parse_frame,
    parse_names,
)
from thinkwell.wire.frames import (
    BadCall,
    BadChatRequest,
    BadState,
    ChatCancel,
    ChatClear,
    ChatRequest,
    ClientMessages,
    ClientToolResult,
    Frame,
    NotProtocol,
    ResumeAck,
    ResumeRequest,
    RpcCall,
    StateUpdate,
    ToolApproval,
)

log = logging.getLogger("thinkwell.wire")

_BODY_KEYS = frozenset({"messages", "trigger", "clientTools"})


def decode_in_pieces(data: str | bytes, stored: Container[str] | None = None) -> Pieces[Frame]:
    """The frame in one WebSocket message, read with pauses in which others go first.

    Of messages that are `stored` little is read (`client_json.parse_body`).
    """
    if isinstance(data, bytes):
        return NotProtocol(data)  # the protocol is text; binary is the app's own
    try:
        value = yield from parse_frame(data)
    except TooLargeError as error:
        log.warning("a frame is not read: %s", error, extra={"action": "decode"})
        return (yield from _too_large(data, str(error)))
    except (ValueError, RecursionError):
        return NotProtocol(data)
    if not isinstance(value, dict):
        return NotProtocol(data)
    frame = cast("dict[str, Any]", value)
    kind = frame.get("type")
    if kind == CHAT_REQUEST:
        return (yield from _chat_request(frame, stored))
    reader = _READERS.get(kind) if isinstance(kind, str) else None
    return (reader(frame) if reader else None) or NotProtocol(data)


def _too_large(data: str, reason: str) -> Pieces[Frame]:
    """A frame that is not read: whoever waits for an answer to it gets one of its kind."""
    named = yield from parse_names(data)
    match named.get("type"), named.get("id"), named.get("toolCallId"):
        case "cf_agent_use_chat_request", str(request_id), _:
            return BadChatRequest(request_id, f"The chat request is too large: {reason}.")
        case "rpc", str(call_id), _:
            return BadCall(call_id, f"The call is too large: {reason}.")
        case "cf_agent_state", _, _:
            return BadState(f"The state is too large: {reason}.")
        case "cf_agent_tool_result", _, str():
            text = f"The result is too large: {reason}."
            # The call must not stay open for ever because its result was too large: it failed,
            # and the model reads why.
            failed = _tool_result({**named, "state": "output-error", "errorText": text})
            return failed or NotProtocol(data)
        case _:
            return NotProtocol(data)


def _chat_request(frame: dict[str, Any], stored: Container[str] | None) -> Pieces[Frame]:
    request_id = frame.get("id")
    init = frame.get("init")
    if not isinstance(request_id, str):
        return BadChatRequest(None, "A chat request needs a string `id`.")
    if not isinstance(init, dict):
        return BadChatRequest(request_id, "A chat request needs an `init` object.")
    options = cast("dict[str, Any]", init)
    # No id: a client that sends another method did not ask for a turn and waits for none.
    if options.get("method") != "POST":
        return BadChatRequest(None, "Only POST starts a turn.")
    text = options.get("body")
    if not isinstance(text, str | bytes) or not text:
        return BadChatRequest(request_id, "The chat request has no body.")
    try:
        value = yield from parse_body(text, stored)
    except RecursionError:
        return BadChatRequest(request_id, "The body of the chat request is nested too deeply.")
    except TooLargeError as error:
        return BadChatRequest(request_id, f"The chat request is too large: {error}.")
    except ValueError:
        return BadChatRequest(request_id, "The body of the chat request is not JSON.")
    return _chat_body(request_id, value, _text(frame, "after"))


def _chat_body(request_id: str, value: Any, after: str | None) -> Frame:
    body = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    messages = body.get("messages")
    if not isinstance(messages, list):
        return BadChatRequest(request_id, "The body of the chat request has no list `messages`.")
    tools = body.get("clientTools")
    regenerate = body.get("trigger") == "regenerate-message"
    return ChatRequest(
        id=request_id,
        messages=cast("list[Any]", messages),
        after=after,
        trigger="regenerate-message" if regenerate else "submit-message",
        client_tools=cast("list[Any]", tools) if isinstance(tools, list) else None,
        body={key: item for key, item in body.items() if key not in _BODY_KEYS},
    )


def _cancel(frame: dict[str, Any]) -> Frame | None:
    request_id = frame.get("id")
    return ChatCancel(request_id) if isinstance(request_id, str) else None


def _resume_request(frame: dict[str, Any]) -> Frame:
    return ResumeRequest(_text(frame, "probeId"))


def _resume_ack(frame: dict[str, Any]) -> Frame | None:
    request_id = frame.get("id")
    return ResumeAck(request_id) if isinstance(request_id, str) else None


def _messages(frame: dict[str, Any]) -> Frame | None:
    messages = frame.get("messages")
    return ClientMessages(cast("list[Any]", messages)) if isinstance(messages, list) else None


def _tool_result(frame: dict[str, Any]) -> Frame | None:
    call_id, tools = frame.get("toolCallId"), frame.get("clientTools")
    if not isinstance(call_id, str):
        return None
    return ClientToolResult(
        tool_call_id=call_id,
        tool_name=_text(frame, "toolName") or "",
        output=frame.get("output"),
        state="output-error" if frame.get("state") == "output-error" else "output-available",
        error_text=_text(frame, "errorText"),
        auto_continue=frame.get("autoContinue") is True,
        client_tools=cast("list[Any]", tools) if isinstance(tools, list) and tools else None,
    )


def _tool_approval(frame: dict[str, Any]) -> Frame | None:
    call_id, approved = frame.get("toolCallId"), frame.get("approved")
    if not isinstance(call_id, str) or not isinstance(approved, bool):
        return None  # guessing here could run what nobody allowed
    return ToolApproval(
        tool_call_id=call_id,
        approved=approved,
        auto_continue=frame.get("autoContinue") is True,
        reason=_text(frame, "reason"),
    )


def _text(frame: dict[str, Any], key: str) -> str | None:
    value = frame.get(key)
    return value if isinstance(value, str) else None


def _state(frame: dict[str, Any]) -> Frame | None:
    return StateUpdate(frame["state"]) if "state" in frame else None


def _rpc(frame: dict[str, Any]) -> Frame | None:
    call_id, method, args = frame.get("id"), frame.get("method"), frame.get("args")
    if isinstance(call_id, str) and isinstance(method, str) and isinstance(args, list):
        return RpcCall(call_id, method, cast("list[Any]", args))
    return None


_READERS: dict[str, Callable[[dict[str, Any]], Frame | None]] = {
    "cf_agent_chat_request_cancel": _cancel,
    "cf_agent_chat_clear": lambda _frame: ChatClear(),
    "cf_agent_chat_messages": _messages,
    "cf_agent_stream_resume_request": _resume_request,
    "cf_agent_stream_resume_ack": _resume_ack,
    "cf_agent_tool_result": _tool_result,
    "cf_agent_tool_approval": _tool_approval,
    "cf_agent_state": _state,
    "rpc": _rpc,
}
