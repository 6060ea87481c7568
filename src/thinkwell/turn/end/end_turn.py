"""The end of a turn, whatever brings it: `end_turn` writes it, `announce_end` tells it.

Every end goes through these two: a reply that settles, a place in line that a later input took,
a clear, a defect of ours, a row that cannot be read. What is told is stored. Whoever wants to hear
of it reads the tail of the turn's handle: there is no second way to be told.
"""

from __future__ import annotations

import logging
from typing import cast

from msgspec import UNSET
from msgspec.structs import replace

from thinkwell.core.errors import StoreError
from thinkwell.core.events import AgentDamaged
from thinkwell.journal.spending import close_reservation
from thinkwell.journal.tail import Ended
from thinkwell.journal.turns import (
    UNREADABLE,
    EndStatus,
    TurnEnd,
    TurnRecord,
    settle_turn,
    unreadable_turns,
    unsettled_ids,
)
from thinkwell.messages.message import UIMessage
from thinkwell.store.base import Transaction
from thinkwell.turn.end.ending import UNANSWERED, TurnOutcome, TurnResult
from thinkwell.turn.handle import TurnHandle
from thinkwell.turn.parts import Parts
from thinkwell.turn.run.step_result import has_content

log = logging.getLogger("thinkwell.turn")

SAFE_ERROR = "Something went wrong while answering. Please try again."
"""What clients read instead of an internal error (spec/02 §11.8)."""
SUPERSEDED = TurnEnd(status="skipped", stop_reason="superseded")
CLEARED = TurnEnd(status="skipped", stop_reason="cleared")
DAMAGED = TurnEnd(status="error", stop_reason="error", error=UNREADABLE, client_error=UNREADABLE)


async def end_turn(
    tx: Transaction, parts: Parts, record: TurnRecord, end: TurnEnd, *, waiting: bool = False
) -> TurnRecord | None:
    """Write the end on the turn's row; the row as it is then. None if it had ended already.

    `waiting`: only if it has not begun.
    """
    now = parts.clock.now()
    key = (record.agent_id, record.request_id)
    if not await settle_turn(tx, key, end, now=now, waiting=waiting):
        return None
    if parts.agent.budget or parts.app_budgets:
        await close_reservation(tx, key, now=now)  # of a step that never came to its end
    return ended(record, end, now)


def ended(record: TurnRecord, end: TurnEnd, now: float) -> TurnRecord:
    """The row with its end."""
    return replace(
        record,
        status=end.status,
        stop_reason=end.stop_reason,
        error=end.error,
        client_error=end.client_error,
        usage=end.usage,
        steps=end.steps,
        hooks_owed=end.hooks_owed,
        output=end.output,
        settled_at=now,
    )


async def announce_end(
    handle: TurnHandle, record: TurnRecord, error: str | None = None, reply: str | None = None
) -> None:
    """The turn has ended. `error` is what clients read, `reply` the stored text of it.

    `record` is the row as it is told: for whoever saw something of a cleared turn, it was stopped.
    """
    await handle.end(Ended(record, error, reply))


def result_of(outcome: TurnOutcome) -> TurnResult:
    """What whoever waits for the turn gets."""
    record = outcome.record
    asked = record.chosen is not None and record.chosen.output is not None
    given = record.status == "completed" and record.stop_reason not in UNANSWERED
    return TurnResult(
        request_id=record.request_id,
        status=cast("EndStatus", record.status),  # whoever waits is told of the end
        message=outcome.message if has_content(outcome.message) else None,
        error=record.error if record.status == "error" else None,
        stop_reason=record.stop_reason,
        usage=record.usage,
        steps=record.steps,
        continuation=record.continuation,
        output=UNSET if asked and not given else outcome.output,
    )


# Turns that end without a reply


async def end_older(tx: Transaction, parts: Parts, generation: int) -> None:
    """A clear: whatever waits or runs of an older generation ends. Its handle is told later."""
    agent_id, now = parts.owner.agent_id, parts.clock.now()
    for request_id in await unsettled_ids(tx, agent_id, before=generation):
        await settle_turn(tx, (agent_id, request_id), CLEARED, now=now)
        if parts.agent.budget or parts.app_budgets:
            await close_reservation(tx, (agent_id, request_id), now=now)


async def end_unrun(parts: Parts, handle: TurnHandle, end: TurnEnd) -> None:
    """Tell the end of a turn that never ran, and free whoever waits for it."""
    record = ended(handle.record, end, parts.clock.now())
    await announce_end(handle, record, end.client_error)
    message: UIMessage = {"id": record.message_id or "", "role": "assistant", "parts": []}
    handle.finish(result_of(TurnOutcome(record=record, message=message)))


async def end_stale(parts: Parts, handle: TurnHandle, *, erase: bool) -> None:
    """A turn of an older generation ends without running; its requester hears the end.

    The clear has ended its row already, unless it was accepted while the clear committed: then
    `erase` takes away what it was asked, as the clear did.
    """

    async def work(tx: Transaction) -> None:
        if await end_turn(tx, parts, handle.record, CLEARED) is not None and erase:
            fields = {"agent": handle.record.agent_id, "id": handle.record.request_id}
            await tx.execute("erase_turn", fields)

    try:
        await parts.commits.insist(parts.owner, work)
    except StoreError:  # the next start finds it as it is
        log.exception("a turn could not be ended", extra={"action": "settle"})
    await end_unrun(parts, handle, CLEARED)


async def end_broken(parts: Parts, handle: TurnHandle, error: Exception) -> None:
    """A defect of ours: the turn ends, for nothing may run on that clients heard the end of."""
    log.critical("a turn broke", exc_info=error, extra={"action": "turn"})
    end = TurnEnd(
        status="error",
        stop_reason="error",
        error=repr(error),
        client_error=SAFE_ERROR,
    )
    record = handle.record
    try:
        await parts.commits.insist(parts.owner, lambda tx: end_turn(tx, parts, record, end))
    except StoreError:
        log.exception("a turn could not be ended", extra={"action": "settle"})
    await announce_end(handle, ended(record, end, parts.clock.now()), SAFE_ERROR)
    handle.finish(error)


async def end_damaged(parts: Parts) -> list[str]:
    """Turns that cannot be read end, so that the agent's others go on. Told on the bus.

    Their ids.
    """
    agent_id = parts.owner.agent_id
    damaged = await unreadable_turns(parts.store, agent_id)
    for request_id in damaged:
        key = (agent_id, request_id)
        await parts.commits.insist(
            parts.owner, lambda tx, key=key: settle_turn(tx, key, DAMAGED, now=parts.clock.now())
        )
        parts.bus.emit(AgentDamaged, agent=agent_id, request_id=request_id)
    return damaged
