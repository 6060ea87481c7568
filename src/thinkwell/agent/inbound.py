"""One connection of a chat agent: a frame comes in, the right method is called. One `match`.

Whatever a client sends, nothing is raised to the edge and the connection stays usable (spec/01
§3.3).
"""

from __future__ import annotations

import logging
from typing import Any, assert_never

from thinkwell.agent.turns import Turns
from thinkwell.core.errors import ThinkwellError
from thinkwell.core.signal import AbortSignal
from thinkwell.hooks.contexts import ChatErrorContext
from thinkwell.live.watchers import Watcher
from thinkwell.messages.message import UIMessage
from thinkwell.messages.sanitize import strip_reserved_metadata
from thinkwell.messages.validate import check_message
from thinkwell.turn.admission import TurnRequest
from thinkwell.wire import encode
from thinkwell.wire.decode import decode_frame
from thinkwell.wire.frames import (
    BadChatRequest,
    ChatCancel,
    ChatClear,
    ChatRequest,
    ClientMessages,
    NotProtocol,
    ResumeAck,
    ResumeRequest,
    RpcCall,
    StateUpdate,
    ToolApproval,
    ToolResult,
)

log = logging.getLogger("thinkwell.agent")

CHANNEL = "web"
"""Stamped on user messages that come over a socket."""


class ChatConnection:
    """One open connection."""

    def __init__(self, turns: Turns, watcher: Watcher) -> None:
        self._turns = turns
        self._watcher = watcher

    async def receive(self, data: str | bytes) -> None:
        """Act on one message of the client."""
        try:
            await self._act(data)
        except ThinkwellError:
            log.exception("a client frame could not be served", extra={"action": "receive"})

    async def close(self) -> None:
        """The socket is gone; turns go on."""
        self._turns.live.disconnect(self._watcher)

    async def _act(self, data: str | bytes) -> None:
        live, watcher = self._turns.live, self._watcher
        frame = decode_frame(data)
        match frame:
            case ChatRequest():
                await self._chat(frame)
            case BadChatRequest():
                await self._refuse(frame.id, frame.reason)
            case ChatCancel(id=request_id):
                await self._turns.cancel(request_id, "stopped by the user")
            case ChatClear():
                await self._turns.clear(but=watcher.id)
            case ResumeRequest(probe_id=probe_id):
                live.resume_request(watcher, probe_id)
            case ResumeAck(id=request_id):
                await live.resume(watcher, request_id)
            case StateUpdate():
                watcher.send(encode.state_error("State update rejected"))
            case RpcCall():
                watcher.send(encode.rpc_error(frame.id, f"Method {frame.method} is not callable"))
            case ToolResult() | ToolApproval() | ClientMessages() | NotProtocol():
                pass
            case _:
                assert_never(frame)

    async def _chat(self, frame: ChatRequest) -> None:
        try:
            messages = tuple(_incoming(message) for message in frame.messages)
        except ValueError as error:
            await self._refuse(frame.id, str(error))
            return
        regenerate = frame.trigger == "regenerate-message" and messages
        request = TurnRequest(
            trigger="ws-chat",
            request_id=frame.id,
            messages=messages,
            branch_from=messages[-1]["id"] if regenerate else None,
            body=frame.body or None,
            message_ids=trailing_user_ids(messages),
        )
        await self._turns.ask(request, origin=self._watcher.id)

    async def _refuse(self, request_id: str | None, reason: str) -> None:
        """A request that cannot run: nothing is stored; its sender is told (spec/01 §3.3 ★,
        spec/02 AC87).
        """
        parts = self._turns.parts
        error = ValueError(reason)
        context = ChatErrorContext(
            request_id=request_id or "",
            trigger="ws-chat",
            continuation=False,
            agent=parts.agent_ref,
            abort_signal=AbortSignal(),
            stage="parse",
            messages_persisted=False,
            partial=None,
            attempt=0,
        )
        decided = await parts.hooks.on_chat_error(error, context)
        if request_id is not None:
            frame = encode.error_done(request_id, str(decided), message_ids=(), continuation=False)
            self._watcher.send(frame)


def trailing_user_ids(messages: tuple[UIMessage, ...]) -> tuple[str, ...]:
    """The run of user messages at the end: what the client wants answered (spec/01 §3.4.4)."""
    ids: list[str] = []
    for message in reversed(messages):
        if message["role"] != "user":
            break
        ids.append(message["id"])
    return tuple(reversed(ids))


def _incoming(value: Any) -> UIMessage:
    message = strip_reserved_metadata(check_message(value))
    if message["role"] != "user":
        return message
    metadata = {**message.get("metadata", {}), "channel": CHANNEL}
    return {**message, "metadata": metadata}
