"""Going on with a reply whose calls a client has answered in its own copy (spec/01 §14.7).

A client sends its whole list; the last message is its copy of the reply, with outputs and
decisions in it. What is new there is applied like any answer from outside, and the turn goes on
when no call waits any more. The rest of the copy is not believed: the stored reply counts.
"""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

from thinkwell.core.authority import Subject
from thinkwell.messages.message import (
    Part,
    UIMessage,
    approval_of,
    count_steps,
    is_settled,
    tool_parts,
)
from thinkwell.turn.ask.admission import TurnRequest
from thinkwell.turn.ask.answers import Answer, approval_answer, result_answer
from thinkwell.turn.ask.authority import demand
from thinkwell.turn.ask.chat_request import Asker, ask_as_client, read_client_tools
from thinkwell.turn.ask.client_answers import answer_as_client, demand_approved
from thinkwell.turn.ask.forgery import report_copies
from thinkwell.turn.handle import TurnHandle
from thinkwell.turn.turns import Turns
from thinkwell.wire.frames import ChatRequest
from thinkwell.wire.http_body import Refusal

MOVED_ON = "This conversation has moved on meanwhile. Reload it and try again."


class WentOn(NamedTuple):
    """What came of a client's copy."""

    handle: TurnHandle | None
    """The turn that goes on with the reply."""
    stored: UIMessage | None = None
    """The reply as it stands, if none does."""


async def go_on(turns: Turns, copy: UIMessage, asked: ChatRequest, asker: Asker) -> WentOn:
    """Apply what is new in the client's copy of a reply, and go on if nothing waits any more.

    Raises `NotAllowed`, and `Refusal` for an output that is none, or if the conversation does not
    end with this reply any more.
    """
    forged = await report_copies(turns, [copy], asker.principal)
    honest = [part for part in tool_parts(copy) if part["toolCallId"] not in forged]
    await _apply_outcomes(turns, {**copy, "parts": honest}, asked, asker)
    await _until_written(turns, copy["id"])
    async with turns.intake:  # the same request twice: the second finds the turn of the first
        handle = _turn_going_on(turns, copy["id"])
        if handle is not None:
            return WentOn(handle)
        stored = await _newest_reply(turns, copy["id"])
        behind = count_steps(stored["parts"]) > count_steps(copy["parts"])
        if behind or _waits(stored):
            return WentOn(None, stored)
        await demand_approved(turns, stored, asker)
        return WentOn(await _start(turns, copy["id"], asked, asker))


async def _apply_outcomes(turns: Turns, copy: UIMessage, asked: ChatRequest, asker: Asker) -> None:
    tools = read_client_tools(asked.client_tools)
    waiting = await _open_calls(turns, copy["id"])
    # Each call once: a copy can name the one open call as often as fits a body.
    parts = {
        p["toolCallId"]: p for p in reversed([*tool_parts(copy)]) if p["toolCallId"] in waiting
    }
    try:
        answers = [_answer_in(part, tools) for part in reversed([*parts.values()])]
    except ValueError as error:
        raise Refusal(400, f"A tool's output cannot be used: {error}.") from error
    for answer in answers:
        if answer is not None:
            # The first one wins: one that was given before is left out.
            await answer_as_client(turns, answer, asker)


async def _open_calls(turns: Turns, message_id: str) -> set[str]:
    """The calls of this reply that have no outcome yet, as it grows or is stored.

    Only these can be answered: a copy repeats all it has seen, and providers use ids again.
    """
    running = turns.running
    reply: UIMessage | None = None
    if running is not None and running.message_id == message_id and not running.reply.stored:
        reply = running.reply.fold.message if running.reply.known else None
    if reply is None:
        reply = await turns.parts.session.get_message(message_id)
    calls = () if reply is None else tool_parts(reply)
    return {part["toolCallId"] for part in calls if not is_settled(part)}


def _answer_in(part: Part, tools: tuple[dict[str, Any], ...] | None) -> Answer | None:
    call_id: str = part["toolCallId"]
    match part.get("state"):
        case "output-available" if part.get("preliminary") is not True:
            return result_answer(call_id, output=part.get("output"), client_tools=tools)
        case "output-error":
            error = part.get("errorText")
            text = error if isinstance(error, str) else None
            return result_answer(call_id, error=text, client_tools=tools)
        case "approval-responded" | "output-denied":
            approval = approval_of(part)
            approved, reason = approval.get("approved"), approval.get("reason")
            if not isinstance(approved, bool):
                return None  # guessing here could run what nobody allowed
            said = reason if isinstance(reason, str) else None
            return approval_answer(call_id, approved=approved, reason=said)
        case _:
            return None


async def _until_written(turns: Turns, message_id: str) -> None:
    """Until no turn writes this reply for the first time: its end decides who goes on."""
    news = asyncio.Event()
    leave = turns.watch(lambda _: news.set())
    try:
        while _is_first_written(turns, message_id):
            news.clear()
            await news.wait()
    finally:
        leave()


def _is_first_written(turns: Turns, message_id: str) -> bool:
    running = turns.running
    if running is None or running.message_id != message_id:
        return False
    return not running.record.continuation


def _turn_going_on(turns: Turns, message_id: str) -> TurnHandle | None:
    line = turns.handles()
    mine = (t for t in line if t.record.continuation and t.record.message_id == message_id)
    return next(mine, None)


async def _newest_reply(turns: Turns, message_id: str) -> UIMessage:
    """The stored reply, if the conversation still ends with it."""
    session = turns.parts.session
    head = await session.get_head()
    stored = await session.get_message(message_id)
    if stored is None or head is None or head.id != message_id:
        raise Refusal(409, MOVED_ON)
    return stored


async def _start(turns: Turns, message_id: str, asked: ChatRequest, asker: Asker) -> TurnHandle:
    """Every call has its result, and nobody has gone on yet: do it now."""
    subject = Subject(read_only=asker.read_only, request_id=asked.id, message_id=message_id)
    await demand(turns.parts.agent_ref, "send", asker.principal, subject)
    request = TurnRequest(
        trigger=asker.trigger,
        request_id=asked.id,
        continues=message_id,
        body=asked.body or None,
        client_tools=read_client_tools(asked.client_tools),
        principal=asker.principal,
        read_only=asker.read_only,
    )
    _, handle = await ask_as_client(turns, request, asker)
    if handle is None:
        raise RuntimeError("a turn with a new id was known before")
    return handle


def _waits(message: UIMessage) -> bool:
    """Whether a call of the reply has no outcome yet."""
    open_states = ("input-available", "approval-requested")
    return any(
        not is_settled(part) and part.get("state") in open_states for part in tool_parts(message)
    )
