"""The chat frames of one connection: each calls the right method. One `match` (spec/01 §3.1)."""

from __future__ import annotations

import logging
from collections.abc import Collection
from contextlib import suppress
from functools import partial
from typing import Any, TypeAlias, assert_never

from thinkwell.agent.connection import Connection
from thinkwell.core import json
from thinkwell.core.authority import Subject
from thinkwell.core.errors import (
    AgentDeletedError,
    HostClosedError,
    StoreUnavailableError,
    ThinkwellError,
)
from thinkwell.core.limits import payer_of
from thinkwell.live.live import Live
from thinkwell.live.watchers import Watcher
from thinkwell.messages.message import visible_message
from thinkwell.turn.ask.answers import Answer, approval_answer, result_answer
from thinkwell.turn.ask.authority import NotAllowed, demand
from thinkwell.turn.ask.chat_request import (
    Asker,
    accept_chat,
    demand_cancel,
    explain_refusal,
    read_client_tools,
)
from thinkwell.turn.ask.client_answers import AnswerRefused, answer_as_client
from thinkwell.turn.ask.policy import read_policy
from thinkwell.turn.end.end_turn import SAFE_ERROR
from thinkwell.turn.turns import Turns
from thinkwell.wire import encode
from thinkwell.wire.frames import (
    BadChatRequest,
    ChatCancel,
    ChatClear,
    ChatRequest,
    ClientMessages,
    ClientToolResult,
    ResumeAck,
    ResumeRequest,
    ToolApproval,
)

log = logging.getLogger("thinkwell.agent")

ChatFrame: TypeAlias = (
    ChatRequest
    | BadChatRequest
    | ChatCancel
    | ChatClear
    | ClientMessages
    | ResumeRequest
    | ResumeAck
    | ClientToolResult
    | ToolApproval
)


class ChatFrames:
    """What one connection does in the chat."""

    def __init__(self, turns: Turns, live: Live, watcher: Watcher, connection: Connection) -> None:
        self._turns = turns
        self._live = live
        self._watcher = watcher
        self._policy = read_policy(turns.parts.agent.message_concurrency)
        self._asker = Asker(
            trigger="ws-chat",
            connection=watcher.id,
            principal=connection.principal,
            read_only=connection.readonly,
            viewer=watcher,
            payer=payer_of(connection.principal, connection.request.client),
        )

    async def stored_ids(self) -> Collection[str]:
        """The ids of the messages a client shows, of which it need not send more."""
        history = self._turns.parts.session.history
        if history.kept is not None:
            with suppress(ThinkwellError):  # accepting does it again, and tells the sender
                await history.kept.refresh()
        return history.known_ids

    async def act(self, frame: ChatFrame) -> None:
        """Act on one frame."""
        try:
            await self._act(frame)
        except StoreUnavailableError as error:  # its sender sees what is true instead
            log.warning("a frame was refused: %s", error.reason, extra={"action": "refuse"})
            self._watcher.show(await self._turns.transcript(growing=True))

    async def _act(self, frame: ChatFrame) -> None:
        match frame:
            case ChatRequest():
                await self._chat(frame)
            case BadChatRequest():
                await self._refuse(frame.id, frame.reason)
            case ChatCancel(id=request_id):
                await self._cancel(request_id)
            case ChatClear():
                await self._clear()
            case ClientToolResult() | ToolApproval():
                await self._answer(frame)
            case ResumeRequest(probe_id=probe_id):
                self._live.resume_request(self._watcher, probe_id)
            case ResumeAck(id=request_id):
                await self._live.resume(self._watcher, request_id)
            case ClientMessages():
                log.debug("a client sent its transcript; the server's counts")
            case _:
                assert_never(frame)

    async def _chat(self, frame: ChatRequest) -> None:
        try:
            accepted = await accept_chat(self._turns, self._policy, frame, self._asker)
        except NotAllowed as refused:
            await self._show_truth()
            await self._refuse(frame.id, str(refused))
            return
        except ValueError as error:
            await self._refuse(frame.id, str(error))
            return
        except StoreUnavailableError as error:
            text = error.client_text(exposed=self._turns.parts.agent.expose_errors)
            log.warning("a question was refused: %s", error.reason, extra={"action": "refuse"})
            self._watcher.send(
                encode.error_done(frame.id, text, message_ids=(), continuation=False)
            )
            return
        except (AgentDeletedError, HostClosedError) as error:  # no fault of anybody
            log.info("a question was refused: %s", error, extra={"action": "refuse"})
            self._watcher.send(
                encode.error_done(frame.id, str(error), message_ids=(), continuation=False)
            )
            return
        except Exception:  # not accepted: whoever asked must not wait for ever
            log.exception("a chat request could not be accepted", extra={"action": "accept"})
            self._watcher.send(
                encode.error_done(frame.id, SAFE_ERROR, message_ids=(), continuation=False)
            )
            return
        if accepted is None:
            await self._drop(frame.id)
            return
        admission, handle = accepted
        if handle is None:  # sent twice: the sender may have missed what became of it
            await self._live.tell_again(self._watcher, admission.record)

    async def _drop(self, request_id: str) -> None:
        """Policy `drop`: nothing is stored; the sender gets the transcript back (spec/01 §8.1)."""
        await self._show_truth()
        self._watcher.send(
            encode.done(request_id, message_ids=(), outcome="skipped", continuation=False)
        )

    async def _cancel(self, request_id: str) -> None:
        try:
            await demand_cancel(self._turns, request_id, self._asker)
        except NotAllowed:
            await self._show_truth()
            return
        await self._turns.cancel(request_id, "stopped by the user")

    async def _clear(self) -> None:
        subject = Subject(read_only=self._asker.read_only)
        try:
            await demand(self._turns.parts.agent_ref, "clear", self._asker.principal, subject)
        except NotAllowed:
            await self._show_truth()
            return
        await self._turns.clear(but=self._watcher.id)

    async def _show_truth(self) -> None:
        """The sender shows already what it asked for, and it did not happen."""
        self._watcher.show(await self._turns.transcript(growing=True))

    async def _answer(self, frame: ClientToolResult | ToolApproval) -> None:
        answer = _result(frame) if isinstance(frame, ClientToolResult) else _decision(frame)
        try:
            await answer_as_client(self._turns, answer, self._asker, origin=self._watcher.id)
        except AnswerRefused as refused:
            shown = json.dumps(visible_message(refused.message))
            self._watcher.send(encode.message_updated(shown))

    async def _refuse(self, request_id: str | None, reason: str) -> None:
        """A request that cannot run: nothing is stored; its sender is told (§3.3 ★)."""
        text = await explain_refusal(self._turns, request_id, reason, self._asker)
        if request_id is not None:
            frame = encode.error_done(request_id, text, message_ids=(), continuation=False)
            self._watcher.send(frame)


def _result(frame: ClientToolResult) -> Answer:
    failed = frame.state == "output-error"
    value: dict[str, Any] = {"error": frame.error_text} if failed else {"output": frame.output}
    make = partial(
        result_answer,
        frame.tool_call_id,
        auto_continue=frame.auto_continue,
        client_tools=read_client_tools(frame.client_tools),
    )
    try:
        return make(**value)
    except ValueError as error:  # a result nobody can store: the model is told, the chat goes on
        return make(error=f"The result cannot be used: {error}.")


def _decision(frame: ToolApproval) -> Answer:
    return approval_answer(
        frame.tool_call_id,
        approved=frame.approved,
        reason=frame.reason,
        auto_continue=frame.auto_continue,
    )
