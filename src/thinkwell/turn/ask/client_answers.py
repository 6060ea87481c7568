"""An answer that a client gives: which call it means, whether it may, then it is applied.

What the answer is about comes from what is stored, never from the client. It counts for that one
message only: a call of the same id elsewhere, stored meanwhile, is not meant (providers use ids
again).
"""

from __future__ import annotations

from typing import Literal

import msgspec

from thinkwell.core.authority import Subject
from thinkwell.core.principal import Principal
from thinkwell.journal.turns import TurnRecord, answering_turn
from thinkwell.messages.forged import is_forged
from thinkwell.messages.message import Part, UIMessage, is_settled, tool_name
from thinkwell.messages.waiting import approved_calls
from thinkwell.turn.approvers import is_named
from thinkwell.turn.ask.answers import Answer, find_stored_call, runs_here
from thinkwell.turn.ask.authority import NotAllowed, demand
from thinkwell.turn.ask.chat_request import Asker
from thinkwell.turn.ask.forgery import report
from thinkwell.turn.turns import Turns


class Meant(msgspec.Struct, frozen=True):
    """The call an answer is for."""

    message: UIMessage
    part: Part
    turn: TurnRecord | None


class AnswerRefused(NotAllowed):
    """Whoever answered may not; `message` is how things stand."""

    def __init__(self, subject: Subject, message: UIMessage) -> None:
        super().__init__(subject)
        self.message = message


async def answer_as_client(
    turns: Turns, answer: Answer, asker: Asker, *, origin: str | None = None
) -> bool:
    """Apply a client's answer. False if nothing waited for it; raises `AnswerRefused`.

    One that names its message, as our own code does, means the call in that one.
    """
    meant = await _find(turns, answer.tool_call_id, answer.message_id)
    if meant is None:
        return False
    _report_forged(turns, answer, meant, asker.principal)
    await _demand(turns, meant, asker, "answer" if answer.outcome == "client" else "approve")
    allowed = msgspec.structs.replace(
        answer, message_id=meant.message["id"], by=asker.principal, by_client=True
    )
    return await turns.answer(allowed, origin=origin)


async def demand_approved(turns: Turns, message: UIMessage, asker: Asker) -> None:
    """Whether they may let a stored answer go on: that runs the calls that were allowed in it.

    Raises `AnswerRefused` unless they could have allowed them themselves.
    """
    parts = turns.parts
    for part in approved_calls(message):
        turn = await answering_turn(parts.store, parts.owner.agent_id, message["id"])
        await _demand(turns, Meant(message, part, turn), asker, "approve")


async def _demand(
    turns: Turns, meant: Meant, asker: Asker, action: Literal["answer", "approve"]
) -> None:
    subject = Subject(
        read_only=asker.read_only,
        asker=None if meant.turn is None else meant.turn.principal,
        request_id=None if meant.turn is None else meant.turn.request_id,
        message_id=meant.message["id"],
        tool_call_id=meant.part["toolCallId"],
        tool_name=tool_name(meant.part),
        input=meant.part.get("input"),
    )
    try:
        named = await is_named(turns.parts, asker.principal, subject)
        subject = msgspec.structs.replace(subject, named=named)
        await demand(turns.parts.agent_ref, action, asker.principal, subject)
    except NotAllowed as refused:
        raise AnswerRefused(subject, meant.message) from refused


def _report_forged(turns: Turns, answer: Answer, meant: Meant, principal: Principal | None) -> None:
    """An answer that no honest client gives. It settles nothing either (`apply_answer`)."""
    claim = "result" if answer.outcome == "client" else "approval"
    running = turns.running
    growing = running if running is not None and running.message_id == meant.message["id"] else None
    is_open = not is_settled(meant.part)
    runs = claim == "result" and is_open and runs_here(turns.parts, meant.part, growing)
    if runs or is_forged(claim, meant.part):
        ids = {"message_id": meant.message["id"], "tool_call_id": answer.tool_call_id}
        report(turns, claim, principal, **ids)


async def _find(turns: Turns, tool_call_id: str, message_id: str | None) -> Meant | None:
    running, parts = turns.running, turns.parts
    if running is not None and not running.reply.stored:
        part = running.reply.fold.tool_call(tool_call_id)
        if part is not None and message_id in (None, running.message_id):
            return Meant(running.reply.fold.snapshot(), part, running.record)
    found = await find_stored_call(parts.store, parts, tool_call_id, message_id)
    if found is None:
        return None
    turn = await answering_turn(parts.store, parts.owner.agent_id, found.message["id"])
    return Meant(found.message, found.part, turn)
