"""A turn gets its slot: its row says running, its input joins the tree, in one transaction.

After a crash the same happens again: the input is in the tree already, the journal is read back,
and `turn/run/recovery.py` decides, so that a turn that kills its process every time is parked
instead of coming back for ever. A stall counts as an attempt too.

A question that finds the slot free starts in the transaction that accepts it instead
(`turn/ask/opening.py`): one commit less before the model is called.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from thinkwell.core.errors import AbortTurn, FailTurn
from thinkwell.core.turn_events import ChatStreamStalled
from thinkwell.core.user_code import call_user
from thinkwell.hooks.contexts import TurnStartContext
from thinkwell.hooks.dispatch import HookFailedError
from thinkwell.journal.crash_points import crash_here
from thinkwell.journal.turns import TurnRecord, attempt_body, start_attempt
from thinkwell.messages.convert import to_model_messages
from thinkwell.messages.message import UIMessage, text_of
from thinkwell.messages.validate import check_message
from thinkwell.session.rows import AUTO, Appended
from thinkwell.store.base import Transaction
from thinkwell.turn.end.ending import Aborted, Ending, Skipped, StalledError
from thinkwell.turn.handle import Start
from thinkwell.turn.parts import Parts
from thinkwell.turn.run.interrupt import interruptible
from thinkwell.turn.run.journal_events import note_failure
from thinkwell.turn.run.recovery import attempt_begins, take_up, take_up_after_stall
from thinkwell.turn.run.resume import reopen, restore
from thinkwell.turn.run.running import RunningTurn, call_on_message


async def begin(turn: RunningTurn) -> Ending | None:
    """Start or restart the turn. Returns an ending when there is nothing left to run."""
    handle, record, signal, parts = turn.handle, turn.record, turn.signal, turn.parts
    if handle.start is not None:
        return await _go_on(turn, handle.start)
    first = record.attempt == 0
    if first and record.trigger == "submission" and signal.aborted:
        return Aborted(signal.reason or "")  # withdrawn before its slot: nothing is written
    if first and record.function_input and handle.input_function is None:
        return Skipped("caller_lost")
    if record.continuation and not await _take_up_reply(turn):
        return Skipped("superseded")
    finished = None if first else await restore(turn)
    given_up = _first_begins(turn) if first else await take_up(turn, finished=finished is not None)
    if given_up is not None:
        return given_up
    messages = await _input_of(turn)
    stop = await _call_on_start(turn, messages) if first else None
    now = parts.clock.now()
    start = await parts.commits.insist(parts.owner, lambda tx: _start(tx, turn, messages, now))
    parts.session.remember(start.written)
    await _take_start(turn, start, now)
    if stop is not None:
        raise stop  # only now: what was accepted is in the tree, however the turn ends
    if finished is not None:
        return finished
    await (_call_on_input(turn, messages) if first else attempt_begins(turn))
    signal.throw_if_aborted()
    return None


def _first_begins(turn: RunningTurn) -> None:
    """Of a first attempt the row says in which life it began, and nothing more."""
    incident = turn.record.incident.begun(turn.parts.boot, 0, first=True)
    turn.record = msgspec.structs.replace(turn.record, incident=incident)


async def _go_on(turn: RunningTurn, start: Start) -> None:
    """The turn has started with its acceptance."""
    await _take_start(turn, start, start.record.started_at or 0.0)
    await _call_on_input(turn, start.record.input)
    turn.signal.throw_if_aborted()


async def _take_start(turn: RunningTurn, start: Start, now: float) -> None:
    """An attempt has begun and is stored: whoever follows the turn hears of it."""
    turn.record = start.record
    body = attempt_body(start.record.attempt, now, start.record.unless_accepted_by(turn.parts.code))
    turn.log.note_event("attempt", turn.log.written, body)
    if not start.record.continuation:
        turn.reply.parent = start.record.branch_from
        turn.reply.newest_at_start = start.newest
    turn.reply.written = start.written
    turn.input_applied = True
    if turn.handle.crossed:
        await turn.parts.audience.show_asker(turn.record.request_id)
    turn.handle.begin(turn.log)
    crash_here("c2")


async def begin_again(turn: RunningTurn, stall: StalledError) -> None:
    """The model stalled: count an attempt and take the open step up again (DESIGN §8.3)."""
    turn.parts.bus.emit(
        ChatStreamStalled,
        **turn.event_fields(),
        timeout_ms=None if stall.seconds is None else stall.seconds * 1000,
        reason=str(stall),
    )
    if stall.seconds is not None:  # a connection that was lost is written down where it failed
        note_failure(turn, turn.step_number, stall)
    turn.parts.audience.recovering(turn.record.request_id)
    await turn.parts.commits.flush()
    reopen(turn)
    pause = await take_up_after_stall(turn)
    with interruptible(turn.signal):
        await turn.parts.sleep(pause)
    parts, seq, now = turn.parts, turn.log.written, turn.parts.clock.now()
    turn.record = await parts.commits.insist(
        parts.owner, lambda tx: start_attempt(tx, turn.record, now=now, seq=seq, code=parts.code)
    )
    code = turn.record.unless_accepted_by(parts.code)
    turn.log.note_event("attempt", seq, attempt_body(turn.record.attempt, now, code))
    await attempt_begins(turn)


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


async def _start(
    tx: Transaction, turn: RunningTurn, messages: tuple[UIMessage, ...], now: float
) -> Start:
    start = Start(turn.record)
    if not turn.record.continuation:
        start = await join_tree(tx, turn.parts, turn.record, messages)
    code = turn.parts.code
    record = await start_attempt(tx, start.record, now=now, seq=turn.log.written, code=code)
    return msgspec.structs.replace(start, record=record)


async def join_tree(
    tx: Transaction, parts: Parts, record: TurnRecord, messages: Sequence[UIMessage]
) -> Start:
    """Add the input to the tree, unless an earlier attempt has; the row says what is answered."""
    parent, added = record.branch_from, list[Appended]()
    if record.attempt == 0:
        place = AUTO if parent is None else parent or None
        added = await parts.session.add(tx, messages, place)
        parent = added[-1].row.id if added else parent or await _head_id(tx, parts)
    asked = parent if record.input else None
    newest = added[-1].row.seq if added else await _newest_now(tx, parts, asked)
    return Start(msgspec.structs.replace(record, branch_from=parent), added, newest)


async def _newest_now(tx: Transaction, parts: Parts, asked: str | None) -> int:
    """The question itself if this turn brought it; else whatever is newest now."""
    history = parts.session.history
    row = await (history.latest_leaf(tx) if asked is None else history.row(asked, tx))
    return 0 if row is None else row.seq


async def _head_id(tx: Transaction, parts: Parts) -> str | None:
    head = await parts.session.history.head(tx)
    return None if head is None else head.id
