"""A turn gets its slot: its row says running, its input joins the tree, in one transaction.

After a crash the same happens again: the input is in the tree already, the journal is read back,
and the attempt is counted, so that a turn that kills its process every time ends instead of coming
back for ever.
"""

from __future__ import annotations

from inspect import isawaitable

import msgspec

from thinkwell.core.errors import TurnError
from thinkwell.journal.crash_points import crash_here
from thinkwell.journal.turns import TurnGoneError, TurnRecord, start_attempt
from thinkwell.messages.message import UIMessage
from thinkwell.messages.validate import check_message
from thinkwell.session.rows import AUTO
from thinkwell.store.base import Transaction
from thinkwell.turn.ending import Aborted, Completed, Ending, Failed, Skipped
from thinkwell.turn.resume import attempts_without_progress, restore
from thinkwell.turn.running import RunningTurn
from thinkwell.turn.ticket import Ticket

GAVE_UP = "The assistant was interrupted and could not recover. Please try again."


async def begin(ticket: Ticket, turn: RunningTurn) -> Ending | None:
    """Start or restart the turn. Returns an ending when there is nothing left to run."""
    record, signal = turn.record, turn.signal
    if record.attempt == 0 and record.trigger == "submission" and signal.aborted:
        return Aborted(signal.reason or "")  # withdrawn before its slot: nothing is written
    if record.function_input and ticket.input_function is None and record.attempt == 0:
        return Skipped("caller_lost")
    finished = await restore(turn) if record.attempt > 0 else None
    stalled = attempts_without_progress(record, len(turn.log.bodies))
    if stalled > turn.parts.agent.max_recovery_attempts:
        return Failed("recovery", TurnError(GAVE_UP))
    turn.record = msgspec.structs.replace(record, stalled=stalled)
    messages = await _input_of(ticket, turn)
    try:
        turn.record = await turn.parts.commits.run(
            turn.parts.owner, lambda tx: _start(tx, turn, messages)
        )
    except TurnGoneError:  # a clear was faster
        return Skipped("cleared")
    turn.input_applied = True
    turn.parts.output.started(turn.record, turn.log)
    crash_here("c2")
    if finished is not None:
        return Completed(finished)
    signal.throw_if_aborted()
    return None


async def _input_of(ticket: Ticket, turn: RunningTurn) -> tuple[UIMessage, ...]:
    if ticket.input_function is None:
        return turn.record.input
    history = await turn.parts.session.get_history()
    made = ticket.input_function(history)
    made = await made if isawaitable(made) else made
    return tuple(check_message(message) for message in made)


async def _start(tx: Transaction, turn: RunningTurn, messages: tuple[UIMessage, ...]) -> TurnRecord:
    session, record = turn.parts.session, turn.record
    parent = record.branch_from
    if record.attempt == 0:
        added = await session.add(tx, messages, AUTO if parent is None else parent)
        head = await session.history.head(tx)
        parent = added[-1].row.id if added else parent or (head.id if head else None)
    turn.answer_parent = parent
    record = msgspec.structs.replace(record, branch_from=parent)
    return await start_attempt(tx, record, now=turn.parts.clock.now(), seq=turn.log.written)
