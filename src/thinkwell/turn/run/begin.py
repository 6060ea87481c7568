"""A turn gets its slot: its row says running, its input joins the tree, in one transaction.

After a crash the same happens again: the input is in the tree already, the journal is read back,
and the budget is asked (`journal/budget.py`), so that a turn that kills its process every time is
parked instead of coming back for ever. A stall counts as an attempt too.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from thinkwell.core.errors import AbortTurn, FailTurn, TurnError
from thinkwell.core.user_code import call_user
from thinkwell.hooks.contexts import TurnStartContext
from thinkwell.hooks.dispatch import HookFailedError
from thinkwell.journal.asked import if_not_stored
from thinkwell.journal.budget import Incident, Spent, after_stall
from thinkwell.journal.crash_points import crash_here
from thinkwell.journal.turns import TurnGoneError, TurnRecord, attempt_body, start_attempt
from thinkwell.messages.convert import to_model_messages
from thinkwell.messages.message import UIMessage, text_of
from thinkwell.messages.validate import check_message
from thinkwell.session.rows import AUTO
from thinkwell.store.base import Transaction
from thinkwell.turn.end.ending import (
    GAVE_UP,
    Aborted,
    Ending,
    Parked,
    Skipped,
    StageError,
    StalledError,
)
from thinkwell.turn.run.interrupt import interruptible
from thinkwell.turn.run.journal_events import note_failure
from thinkwell.turn.run.places import keep_record
from thinkwell.turn.run.resume import judge_attempts, reopen, restore
from thinkwell.turn.run.running import RunningTurn, call_on_message

STALL_DELAY = 0.5
"""Seconds before the attempt after the second stall in a row; doubled each time."""
LONGEST_PAUSE = 30.0


async def begin(turn: RunningTurn) -> Ending | None:
    """Start or restart the turn. Returns an ending when there is nothing left to run."""
    handle, record, signal = turn.handle, turn.record, turn.signal
    first = record.attempt == 0
    if first and record.trigger == "submission" and signal.aborted:
        return Aborted(signal.reason or "")  # withdrawn before its slot: nothing is written
    if first and record.function_input and handle.input_function is None:
        return Skipped("caller_lost")
    if record.continuation and not await _take_up_reply(turn):
        return Skipped("superseded")
    finished = None if first else await restore(turn)
    verdict = record.incident if first else await judge_attempts(turn)
    spent = _count_attempt(turn, verdict, first=first)
    if spent is not None and finished is None:
        return Parked(spent)
    messages = await _input_of(turn)
    stop = await _call_on_start(turn, messages) if first else None
    try:
        await _start_attempt(turn, lambda tx, now: _start(tx, turn, messages, now))
    except TurnGoneError:  # a clear was faster
        return Skipped("cleared")
    turn.input_applied = True
    turn.parts.session.remember(turn.reply.written)
    if handle.crossed:
        await turn.parts.audience.show_asker(turn.record.request_id)
    handle.begin(turn.log)
    crash_here("c2")
    if stop is not None:
        raise stop  # only now: what was accepted is in the tree, however the turn ends
    if first:
        await _call_on_input(turn, messages)
    if finished is not None:
        return finished
    signal.throw_if_aborted()
    return None


async def begin_again(turn: RunningTurn, stall: StalledError) -> None:
    """The model stalled: count an attempt and take the open step up again (DESIGN §8.3)."""
    turn.parts.bus.emit(
        "chat:stream:stalled",
        request_id=turn.record.request_id,
        timeout_ms=None if stall.seconds is None else stall.seconds * 1000,
        reason=str(stall),
    )
    if stall.seconds is not None:  # a connection that was lost is written down where it failed
        note_failure(turn, turn.step_number, stall)
    turn.parts.audience.recovering(turn.record.request_id)
    await turn.parts.commits.flush()
    reopen(turn)
    _count_stall(turn)
    with interruptible(turn.signal):
        await turn.parts.sleep(stall_pause(turn.record.incident.stalls))
    await _start_attempt(
        turn, lambda tx, now: start_attempt(tx, turn.record, now=now, seq=turn.log.written)
    )


async def _start_attempt(
    turn: RunningTurn, work: Callable[[Transaction, float], Awaitable[TurnRecord]]
) -> None:
    """Commit the start of an attempt; the log learns of the mark that `work` has written."""
    parts, seq, now = turn.parts, turn.log.written, turn.parts.clock.now()
    turn.record = await parts.commits.insist(parts.owner, lambda tx: work(tx, now))
    turn.log.note_event("attempt", seq, attempt_body(turn.record.attempt, now))


def stall_pause(stalls: int) -> float:
    """Seconds before the next attempt: none after the first stall, then more and more."""
    return 0.0 if stalls < 2 else min(STALL_DELAY * 2 ** (stalls - 2), LONGEST_PAUSE)


def _count_stall(turn: RunningTurn) -> None:
    """Give up after too many stalls in one step."""
    record, allowed = turn.record, turn.parts.agent.max_recovery_attempts
    verdict = after_stall(record.incident, turn.step_number, max_attempts=allowed)
    if _count_attempt(turn, verdict) is not None:
        raise StageError("recovery", TurnError(GAVE_UP))


def _count_attempt(
    turn: RunningTurn, verdict: Incident | Spent, *, first: bool = False
) -> Spent | None:
    """The record says that an attempt begins, unless the budget is spent."""
    if isinstance(verdict, Spent):
        return verdict
    if not first:  # a first one costs nothing more: it keeps no record of its places
        keep_record(turn)
    incident = verdict.begun(turn.parts.boot, turn.past.progress, first=first)
    turn.record = msgspec.structs.replace(turn.record, incident=incident)
    return None


async def _take_up_reply(turn: RunningTurn) -> bool:
    """A continuation goes on in a stored reply; False if that is no longer the end of the path."""
    session = turn.parts.session
    head = await session.get_head()
    if head is None or head.id != turn.message_id or head.role != "assistant":
        return False
    stored = await session.get_message(turn.message_id)
    if stored is None:
        return False
    turn.reply.go_on(stored, head.bytes)
    return True


async def _input_of(turn: RunningTurn) -> tuple[UIMessage, ...]:
    make = turn.handle.input_function
    if make is None:
        return turn.record.input
    history = await turn.parts.session.get_history()
    made = await call_user("the input function", make, history)
    return tuple(check_message(message) for message in made)


async def _call_on_input(turn: RunningTurn, messages: tuple[UIMessage, ...]) -> None:
    if not turn.parts.hooks.registry.hooks("on_message"):
        return
    for message in messages:
        for entry in to_model_messages(message):
            await call_on_message(turn, entry, None, message["id"])


async def _call_on_start(
    turn: RunningTurn, messages: tuple[UIMessage, ...]
) -> AbortTurn | FailTurn | HookFailedError | None:
    """Tell `on_turn_start`; returns what a hook raised to end the turn."""
    if not turn.parts.hooks.registry.hooks("on_turn_start"):
        return None
    users = [message for message in messages if message["role"] == "user"]
    context = TurnStartContext(
        **turn.hook_fields(),
        message=text_of(users[-1]) if users else None,
        messages=messages,
    )
    try:
        await turn.parts.hooks.observe("on_turn_start", context)
    except (AbortTurn, FailTurn, HookFailedError) as stop:
        return stop
    return None


async def _newest_at_start(tx: Transaction, turn: RunningTurn) -> int:
    """The question itself if this turn brought it; else whatever is newest now."""
    if turn.reply.written:
        return turn.reply.written[-1].row.seq
    history = turn.parts.session.history
    asked = turn.reply.parent if turn.record.input else None
    row = await (history.latest_leaf(tx) if asked is None else history.row(asked, tx))
    return 0 if row is None else row.seq


async def _head_id(tx: Transaction, turn: RunningTurn) -> str | None:
    head = await turn.parts.session.history.head(tx)
    return None if head is None else head.id


async def _start(
    tx: Transaction, turn: RunningTurn, messages: tuple[UIMessage, ...], now: float
) -> TurnRecord:
    session, record, reply = turn.parts.session, turn.record, turn.reply
    place = reply.parent, reply.newest_at_start

    def undo() -> None:
        reply.written = ()
        reply.parent, reply.newest_at_start = place

    if_not_stored(undo)
    if not record.continuation:
        parent = record.branch_from
        if record.attempt == 0:
            added = await session.add(tx, messages, AUTO if parent is None else parent or None)
            parent = added[-1].row.id if added else parent or await _head_id(tx, turn)
            reply.written = added
        reply.parent = parent
        reply.newest_at_start = await _newest_at_start(tx, turn)
        record = msgspec.structs.replace(record, branch_from=parent)
    return await start_attempt(tx, record, now=now, seq=turn.log.written)
