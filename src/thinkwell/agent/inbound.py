"""One connection of a chat agent: a frame comes in, the right method is called. One `match`.

Whatever a client sends, nothing is raised to the edge and the connection stays usable (spec/01
§3.3).
"""

from __future__ import annotations

import logging
from typing import Any, assert_never, cast

from thinkwell.agent.intake import Plan, read_policy
from thinkwell.agent.interactions import approval_answer, result_answer
from thinkwell.agent.turns import Turns
from thinkwell.core.errors import ThinkwellError, ToolDefinitionError
from thinkwell.core.signal import AbortSignal
from thinkwell.hooks.contexts import ChatErrorContext
from thinkwell.live.watchers import Watcher
from thinkwell.messages.message import UIMessage
from thinkwell.messages.sanitize import strip_reserved_metadata
from thinkwell.messages.validate import check_message
from thinkwell.tools.tool import client_tool
from thinkwell.turn.admission import TurnRequest
from thinkwell.turn.settle import SAFE_ERROR
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
        self._policy = read_policy(turns.parts.agent.message_concurrency)

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
        frame = decode_frame(data)
        match frame:
            case ChatRequest():
                await self._chat(frame)
            case BadChatRequest():
                await self._refuse(frame.id, frame.reason)
            case ChatCancel(id=request_id):
                await self._turns.cancel(request_id, "stopped by the user")
            case ChatClear():
                await self._turns.clear(but=self._watcher.id)
            case ToolResult():
                await self._tool_result(frame)
            case ToolApproval():
                await self._approval(frame)
            case _:
                await self._act_beside_chat(frame)

    async def _act_beside_chat(
        self,
        frame: ResumeRequest | ResumeAck | ClientMessages | StateUpdate | RpcCall | NotProtocol,
    ) -> None:
        watcher = self._watcher
        match frame:
            case ResumeRequest(probe_id=probe_id):
                self._turns.live.resume_request(watcher, probe_id)
            case ResumeAck(id=request_id):
                await self._turns.live.resume(watcher, request_id)
            case ClientMessages():
                log.debug("a client sent its transcript; the server's counts")
            case StateUpdate():
                watcher.send(encode.state_error("State update rejected"))
            case RpcCall():
                watcher.send(encode.rpc_error(frame.id, f"Method {frame.method} is not callable"))
            case NotProtocol():
                pass
            case _:
                assert_never(frame)

    async def _chat(self, frame: ChatRequest) -> None:
        try:
            messages = tuple(_incoming(message) for message in frame.messages)
        except ValueError as error:
            await self._refuse(frame.id, str(error))
            return
        try:
            async with self._turns.intake:  # two tabs at once: the second sees the first in line
                await self._accept(frame, messages)
        except ThinkwellError:  # not accepted: whoever asked must not wait for ever
            log.exception("a chat request could not be accepted", extra={"action": "accept"})
            self._watcher.send(
                encode.error_done(frame.id, SAFE_ERROR, message_ids=(), continuation=False)
            )

    async def _accept(self, frame: ChatRequest, messages: tuple[UIMessage, ...]) -> None:
        regenerate = frame.trigger == "regenerate-message" and messages
        plan = Plan() if regenerate else self._turns.plan(self._policy)
        if plan.drop:
            await self._drop(frame.id)
            return
        request = TurnRequest(
            trigger="ws-chat",
            request_id=frame.id,
            messages=messages,
            branch_from=messages[-1]["id"] if regenerate else None,
            body=frame.body or None,
            client_tools=None if frame.client_tools is None else _tools(frame.client_tools),
            message_ids=trailing_user_ids(messages),
            supersedes=tuple(ticket.record for ticket in plan.supersedes),
            not_before=plan.not_before,
            steer=plan.steer,
        )
        admission, ticket = await self._turns.ask(request, origin=self._watcher.id)
        if ticket is None:  # sent twice: the sender may have missed what became of it
            await self._turns.live.tell_again(self._watcher, admission.record)

    async def _drop(self, request_id: str) -> None:
        """Policy `drop`: nothing is stored; the sender gets the transcript back (spec/01 §8.1)."""
        transcript = await self._turns.transcript(growing=True)
        self._watcher.send(
            encode.chat_messages(transcript),
            encode.done(request_id, message_ids=(), outcome="skipped", continuation=False),
        )

    async def _tool_result(self, frame: ToolResult) -> None:
        failed = frame.state == "output-error"
        value: dict[str, Any] = {"error": frame.error_text} if failed else {"output": frame.output}
        answer = result_answer(
            frame.tool_call_id,
            **value,
            auto_continue=frame.auto_continue,
            client_tools=None if frame.client_tools is None else _tools(frame.client_tools),
        )
        await self._turns.answer(answer, origin=self._watcher.id)

    async def _approval(self, frame: ToolApproval) -> None:
        answer = approval_answer(
            frame.tool_call_id,
            approved=frame.approved,
            reason=frame.reason,
            auto_continue=frame.auto_continue,
        )
        await self._turns.answer(answer, origin=self._watcher.id)

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
            error=error,
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


def _tools(schemas: list[Any]) -> tuple[dict[str, Any], ...]:
    """The client's tools by name, the last of a name winning; what is no tool is left out."""
    found: dict[str, dict[str, Any]] = {}
    for schema in schemas:
        if isinstance(schema, dict):
            fields = cast("dict[str, Any]", schema)
            try:
                made = client_tool(
                    fields.get("name"), fields.get("description"), fields.get("parameters")
                )
            except ToolDefinitionError as error:
                log.warning("a client tool was left out: %s", error)
                continue
            found[made.name] = fields
    return tuple(found.values())


def _incoming(value: Any) -> UIMessage:
    message = strip_reserved_metadata(check_message(value))
    if message["role"] != "user":
        return message
    metadata = {**message.get("metadata", {}), "channel": CHANNEL}
    return {**message, "metadata": metadata}
