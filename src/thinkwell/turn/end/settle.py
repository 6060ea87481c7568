"""The one way a turn ends.

On failure the hooks decide the text; then one transaction stores message, end, packed journal and
owed hooks; then the clients hear. While the store does not write, the turn keeps its slot and
nobody hears of an end: everything is in memory, and is stored as soon as that works again. Should
the process die first, the next start takes the turn up from its journal, as after any crash.
"""

from __future__ import annotations

import logging
from typing import assert_never

import msgspec

from thinkwell.core import json
from thinkwell.core.budgets import BudgetExceededError
from thinkwell.core.errors import OwnershipLostError, SessionError, StoreError, TurnError
from thinkwell.core.turn_events import ChatRequestFailed, ChatTurnParked
from thinkwell.hooks.contexts import Classification, ModelResponse
from thinkwell.hooks.dispatch import Hooks
from thinkwell.hooks.recovery import recovery_of
from thinkwell.journal.asked import if_not_stored
from thinkwell.journal.crash_points import crash_here
from thinkwell.journal.packing import pack_journal
from thinkwell.journal.tail import Updated
from thinkwell.journal.turns import TurnEnd, TurnRecord, store_incident
from thinkwell.messages.message import UIMessage, count_steps, is_tool_part, with_parts
from thinkwell.session.rows import AUTO, Parent
from thinkwell.store.base import Transaction
from thinkwell.turn.ask.opening import start_continuation
from thinkwell.turn.end.classify import classify, error_context, log_failed, usual_class
from thinkwell.turn.end.end_turn import SAFE_ERROR, announce_end, end_turn
from thinkwell.turn.end.ending import (
    SET_ASIDE,
    Aborted,
    Completed,
    Ending,
    Failed,
    Parked,
    Skipped,
    TurnOutcome,
)
from thinkwell.turn.end.leftovers import settle_leftovers
from thinkwell.turn.end.recovered import report_recovery, wants_exhausted
from thinkwell.turn.run.running import RunningTurn
from thinkwell.turn.run.step_result import has_content, last_block

log = logging.getLogger("thinkwell.turn")

MOVED = "This conversation has moved to another server, where the answer goes on. Reload to see it."
"""What clients hear when another host took the agent over."""
END_EVENTS = ("on_chat_done", "on_chat_abort", "on_chat_response")
FIRST_PAUSE, LAST_PAUSE = 1.0, 60.0
"""Seconds between two tries to end a turn whose row the store refuses to change."""
HOOK_TRIES = 3
"""How often the response hooks of one turn may be begun, crashes included."""


async def settle(turn: RunningTurn, ending: Ending) -> TurnOutcome:
    """Store how the turn ended and tell the clients. Never raises."""
    try:
        # Inside: the agent may be lost while a hook hears of the leftovers, or decides.
        if not isinstance(ending, Completed | Skipped):
            await settle_leftovers(turn, ending)
        error, client_text = await _decide_error(turn, ending)
        stored = await _store_end(turn, _end(turn, ending, (error, client_text)))
    except OwnershipLostError as failure:
        return await _end_elsewhere(turn, failure)
    except (SessionError, StoreError) as failure:  # the reply cannot be stored: end without it
        log.exception("an answer could not be stored", extra={"action": "settle"})
        turn.forget_reply()
        return await settle(turn, Failed("persist", failure))
    if stored is None:
        return await _end_superseded(turn)
    turn.record = stored.record
    turn.parts.session.remember(turn.reply.written)
    crash_here("c11")
    if isinstance(ending, Parked):
        _announce_parked(turn, ending)
    if turn.record.attempt > 1 or turn.past.given_up or turn.past.declined:
        report_recovery(turn, ending, error)
    if isinstance(ending, Aborted) and any(is_tool_part(part) for part in turn.reply.own_parts()):
        # Whoever pressed stop reads no more of the stream; it still has to see its calls end.
        turn.handle.tell(Updated(_kept(turn)))
    reply = turn.reply.written[-1].content if turn.reply.written else None
    await announce_end(turn.handle, turn.record, client_text, reply)
    return TurnOutcome(
        record=turn.record,
        message=_kept(turn),
        error=error,
        output=ending.output if isinstance(ending, Completed) else None,
        response=last_response(turn.reply.fold.message, turn.record.stop_reason),
        continuation=stored.continuation,
    )


async def _store_end(turn: RunningTurn, end: TurnEnd) -> Stored | None:
    """Store the end, however long the store takes. Raises if it refuses the reply itself."""
    parts, pause = turn.parts, FIRST_PAUSE
    while True:
        try:
            return await parts.commits.insist(
                parts.owner,
                lambda tx: _store(tx, turn, end),
                waits=lambda: parts.audience.recovering(turn.record.request_id),
                at_once=True,
            )
        except OwnershipLostError:
            raise
        except StoreError:
            if not turn.reply.forgotten:
                raise
            # Not even its row can be written, a damaged page for example: only this agent waits.
            log.critical("a turn cannot be ended", exc_info=True, extra={"action": "settle"})
        await parts.sleep(pause)
        pause = min(pause * 2, LAST_PAUSE)


async def _decide_error(turn: RunningTurn, ending: Ending) -> tuple[Exception | None, str | None]:
    """The error for callers, and the text for clients (spec/02 §5.12.2, §11.8)."""
    if isinstance(ending, Parked):
        return TurnError(ending.given_up.text), _terminal_text(turn)
    if not isinstance(ending, Failed):
        return None, None
    parts = turn.parts
    classification, decided = await _ask_hooks(turn, ending)
    parts.bus.emit(
        ChatRequestFailed,
        **turn.event_fields(),
        stage=ending.stage,
        messages_persisted=turn.input_applied,
        classification=classification,
        error=decided,
    )
    log_failed(turn, ending)
    error = decided if isinstance(decided, Exception) else TurnError(decided)
    if isinstance(error, BudgetExceededError) and not parts.agent.expose_errors:
        return error, error.client_text
    replaced = decided is not ending.error
    if replaced or parts.agent.expose_errors or ending.stage == "recovery":
        return error, json.error_text(error)
    return error, SAFE_ERROR


def _terminal_text(turn: RunningTurn) -> str:
    return recovery_of(turn.parts.agent.chat_recovery).terminal_message or SET_ASIDE


async def _ask_hooks(
    turn: RunningTurn, ending: Failed
) -> tuple[Classification | None, Exception | str]:
    """What the hooks say of a failure, with what was answered durable and to be read."""
    parts, registry = turn.parts, turn.parts.hooks.registry
    if not registry.hooks("classify_chat_error") and not registry.hooks("on_chat_error"):
        return usual_class(ending.stage, ending.error), ending.error
    if parts.commits.health.problem is None:  # else the hooks are what tells somebody about it
        await parts.commits.flush()
    reply = _kept(turn)
    with parts.session.showing(reply if has_content(reply) else None):
        classification = await classify(turn, ending.stage, ending.error)
        classification = classification or usual_class(ending.stage, ending.error)
        context = error_context(turn, ending.stage, ending.error, classification)
        return classification, await parts.hooks.on_chat_error(ending.error, context)


def _announce_parked(turn: RunningTurn, ending: Parked) -> None:
    given_up = ending.given_up
    log.error("a turn was parked: %s", given_up.text, extra={"action": "park"})
    turn.parts.bus.emit(
        ChatTurnParked,
        **turn.event_fields(),
        places=given_up.places,
        deaths=given_up.count,
        reason=given_up.text,
    )


def _end(
    turn: RunningTurn, ending: Ending, failure: tuple[Exception | None, str | None]
) -> TurnEnd:
    error, client_text = failure
    owes = has_end_hooks(turn.parts.hooks)
    if turn.record.incident.exhausted is not None:
        owes = owes or wants_exhausted(turn.parts)
    if turn.parts.recording is not None:
        owes = False  # nobody hears of the end of a replay: those hooks send mails and bills
    base = TurnEnd(
        status="completed",
        stop_reason="end",
        usage=turn.usage,
        spent=turn.spent,
        steps=len(turn.steps),
        hooks_owed=HOOK_TRIES - 1 if owes else 0,
    )
    match ending:
        case Completed(stop_reason=reason, output=output):
            return msgspec.structs.replace(base, stop_reason=reason, output=output)
        case Aborted(reason=reason):
            return msgspec.structs.replace(
                base, status="aborted", stop_reason="aborted", error=reason
            )
        case Failed():
            return msgspec.structs.replace(
                base,
                status="error",
                stop_reason="error",
                error=None if error is None else json.error_text(error),
                client_error=client_text,
            )
        case Parked():
            return msgspec.structs.replace(
                base,
                status="error",
                stop_reason="parked",
                error=None if error is None else str(error),
                client_error=client_text,
            )
        case Skipped(reason=reason):
            return msgspec.structs.replace(base, status="skipped", stop_reason=reason, hooks_owed=0)
        case _:
            assert_never(ending)


class Stored(msgspec.Struct, frozen=True):
    """What the settling transaction wrote."""

    record: TurnRecord
    continuation: TurnRecord | None


async def _store(tx: Transaction, turn: RunningTurn, end: TurnEnd) -> Stored | None:
    """The settling transaction. None if somebody (a clear) has ended the turn before."""
    if_not_stored(turn.not_stored)
    turn.reply.written = ()
    if turn.past.given_up is not None:
        await store_incident(tx, turn.record)  # why, for whoever hears of it after a crash
    record = await end_turn(tx, turn.parts, turn.record, end)
    if record is None:
        return None
    if end.status != "skipped" and turn.reply.known:
        await _store_reply(tx, turn)
    turn.reply.stored = True
    # Reasoning that is neither sent nor stored must not stay in the journal either.
    kept = turn.parts.agent.store_reasoning
    await pack_journal(tx, turn.record, turn.log, now=record.settled_at or 0.0, hidden=kept)
    turn.log.packed = True
    following = None
    if end.status == "completed" and turn.reply.continuation_owed:
        message = turn.reply.fold.message
        following = await start_continuation(tx, turn.parts, record, message, owed=True)
    return Stored(record, following)


async def _store_reply(tx: Transaction, turn: RunningTurn) -> None:
    message = _kept(turn)
    if turn.record.continuation:
        await turn.parts.session.update(tx, message)
    elif has_content(message):
        parent = await _parent_of_reply(tx, turn)
        turn.reply.written = [await turn.parts.session.append(tx, message, parent)]


async def _parent_of_reply(tx: Transaction, turn: RunningTurn) -> Parent:
    """Its question, or the last of the messages that were added below that while the turn ran.

    So that what a tool writes with `add_messages` stays on the path beside the reply.
    """
    question = turn.reply.parent
    if question is None:
        return AUTO
    history = turn.parts.session.history
    head = await history.head(tx)
    if head is not None and head.id == question:
        return head
    if head is None or head.seq <= turn.reply.newest_at_start:
        return question
    below = {row.id for row in await history.path(head.id, tx)}
    return head.id if question in below else question


def _kept(turn: RunningTurn) -> UIMessage:
    """The reply as it is stored."""
    message = turn.reply.fold.message
    if turn.parts.agent.store_reasoning:
        return message
    return with_parts(message, [p for p in message["parts"] if p.get("type") != "reasoning"])


async def _end_superseded(turn: RunningTurn) -> TurnOutcome:
    """A clear was faster: nothing of this turn is kept (spec/02 §3.7)."""
    turn.record = msgspec.structs.replace(turn.record, status="skipped", stop_reason="cleared")
    # For whoever has seen something of it, it was stopped.
    status = "aborted" if turn.log.written else "skipped"
    await announce_end(turn.handle, msgspec.structs.replace(turn.record, status=status))
    return TurnOutcome(record=turn.record, message=turn.reply.empty(), cleared=True)


async def _end_elsewhere(turn: RunningTurn, failure: OwnershipLostError) -> TurnOutcome:
    """Another host has this agent, and the turn: whoever watches here must look there."""
    told = msgspec.structs.replace(
        turn.record, status="error", stop_reason="error", error=json.error_text(failure)
    )
    await announce_end(turn.handle, told, MOVED)
    return TurnOutcome(record=told, message=turn.reply.fold.message, error=failure)


def has_end_hooks(hooks: Hooks) -> bool:
    """Whether anybody wants to hear of the end."""
    return any(hooks.registry.hooks(event) for event in END_EVENTS)


def last_response(message: UIMessage, finish_reason: str | None) -> ModelResponse:
    """The last step's reply, read from the message."""
    block = last_block(message["parts"]) if count_steps(message["parts"]) else []
    text = "".join(str(part["text"]) for part in block if part.get("type") == "text")
    thought = "".join(str(part["text"]) for part in block if part.get("type") == "reasoning")
    reason = "length" if finish_reason == "length" else "stop"
    return ModelResponse(content=text or None, reasoning=thought or None, finish_reason=reason)
