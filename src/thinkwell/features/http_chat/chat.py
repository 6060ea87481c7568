"""Plain `useChat` over HTTP: ask, stop, join what runs (spec/01 §14).

    POST chat                  {id, messages, trigger, messageId?, ...}: the answer is the stream
    POST chat/stop             stops the turn that runs
    GET  chat/{chatId}/stream  joins the turn that runs, from its start; 204 if none does

The same turns as over the socket: the same acceptance, the same queue, the same journal. A client
that leaves stops nothing, and may send the same question again: it gets the same turn. The agent is
the chat, so the chat's id says nothing new.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any, cast

from thinkwell.core import json
from thinkwell.core.errors import MessageTooLargeError
from thinkwell.core.ids import new_id
from thinkwell.features.http_chat.going_on import go_on, joined_stream, told_again
from thinkwell.features.http_chat.sse import DONE, STILL_HERE, STREAM_HEADERS, STREAM_TYPE, events
from thinkwell.features.http_chat.tail import end_of, follow, last_chunks
from thinkwell.journal.turns import TurnRecord
from thinkwell.messages.message import UIMessage
from thinkwell.messages.validate import check_message, check_reference
from thinkwell.turn.ask.chat_request import (
    Asker,
    accept_chat,
    asker_of,
    demand_cancel,
    explain_refusal,
)
from thinkwell.turn.ask.policy import read_policy
from thinkwell.turn.handle import TurnHandle
from thinkwell.turn.turns import Turns
from thinkwell.wire.frames import ChatRequest
from thinkwell.wire.http import HttpRequest, HttpResponse
from thinkwell.wire.http_body import AgentRequest, Refusal, read_object

BUSY = "The agent is busy and takes no other message now. Try again when it has answered."
_OWN_KEYS = frozenset({"id", "messages", "trigger", "messageId", "clientTools"})


async def post_chat(turns: Turns, visit: AgentRequest) -> HttpResponse:
    """Accept what a client asks for and stream the answer."""
    asker = asker_of(visit, "http-chat")
    asked = await _read(visit.request)
    try:
        stream = await _accept(turns, asked, asker)
    except ValueError as error:
        status = 413 if isinstance(error.__cause__, MessageTooLargeError) else 400
        raise Refusal(status, await explain_refusal(turns, asked.id, str(error), asker)) from error
    return stream_response(stream)


async def _accept(turns: Turns, asked: ChatRequest, asker: Asker) -> AsyncIterator[bytes]:
    """Raises `ValueError` for messages that are none; nothing is stored then."""
    answer = _reply_to_go_on_with(asked)
    if answer is not None:
        return await go_on(turns, answer, asked, asker)
    policy = read_policy(turns.parts.agent.message_concurrency)
    accepted = await accept_chat(turns, policy, asked, asker)
    if accepted is None:
        raise Refusal(409, BUSY)
    admission, handle = accepted
    return stream_again(turns, admission.record) if handle is None else turn_stream(handle)


def _reply_to_go_on_with(asked: ChatRequest) -> UIMessage | None:
    """The client's copy of an answer, if that is its last message."""
    if not asked.messages or asked.trigger != "submit-message":
        return None
    last = asked.messages[-1]
    return check_message(last) if check_reference(last).role == "assistant" else None


async def stop_chat(turns: Turns, visit: AgentRequest) -> HttpResponse:
    """Stop the turn that runs, or else the one that would run next."""
    line = turns.handles()
    request_id = line[0].record.request_id if line else ""
    await demand_cancel(turns, request_id, asker_of(visit, "http-chat"))
    if line:
        await turns.cancel(request_id, "stopped by the user")
    return HttpResponse(status=204)


def join_chat(turns: Turns) -> HttpResponse:
    """The stream of the turn that runs, from its start (14.5)."""
    line = turns.handles()
    if not line:
        return HttpResponse(status=204)
    handle = line[0]
    return stream_response(_whole_stream(turns, handle))


def _whole_stream(turns: Turns, handle: TurnHandle) -> AsyncGenerator[bytes]:
    """An answer from its start, for whoever has nothing of it."""
    if handle.record.continuation:
        return joined_stream(turns, handle)
    return turn_stream(handle)


async def stream_again(turns: Turns, record: TurnRecord) -> AsyncGenerator[bytes]:
    """A turn that was asked for before, from its start: as it runs, or as it was stored.

    For a client that does not know what became of its request and sends it once more.
    """
    line = turns.handles()
    mine = (t for t in line if _writes(t, record))
    handle = next(mine, None)
    if handle is not None:
        async for body in _whole_stream(turns, handle):
            yield body
        return
    ended = await turns.find(record.request_id) or record
    stored = await turns.parts.session.get_message(record.message_id or "")
    chunks = [] if stored is None else told_again(stored)
    yield events([*chunks, *last_chunks(ended)]) + DONE


def _writes(handle: TurnHandle, record: TurnRecord) -> bool:
    """Whether this turn is that one, or goes on with its answer."""
    mine = handle.record
    return mine.request_id == record.request_id or (
        mine.continuation and mine.message_id == record.message_id
    )


def stream_response(stream: AsyncIterator[bytes]) -> HttpResponse:
    """An answer that is a stream of events (14.2)."""
    return HttpResponse(content_type=STREAM_TYPE, headers=STREAM_HEADERS, stream=stream)


async def turn_stream(handle: TurnHandle) -> AsyncGenerator[bytes]:
    """A whole turn as events."""
    async with aclosing(follow(handle)) as batches:
        async for bodies in batches:
            yield events(json.loads(body) for body in bodies) if bodies else STILL_HERE
    yield events(last_chunks(end_of(handle))) + DONE


async def _read(request: HttpRequest) -> ChatRequest:
    body = await read_object(request)
    messages, tools = body.get("messages"), body.get("clientTools")
    if not isinstance(messages, list):
        raise Refusal(400, "The body needs a list `messages`.")
    if not messages:
        raise Refusal(400, "`messages` is empty: there is nothing to answer.")
    regenerate = body.get("trigger") == "regenerate-message"
    return ChatRequest(
        id=new_id(),
        messages=cast("list[Any]", messages),
        trigger="regenerate-message" if regenerate else "submit-message",
        client_tools=cast("list[Any]", tools) if isinstance(tools, list) else None,
        body={key: value for key, value in body.items() if key not in _OWN_KEYS},
    )
