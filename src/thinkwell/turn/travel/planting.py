"""A recorded turn as rows of another agent: to be run again, or on from one of its steps.

What is planted is an ordinary unsettled turn. Whoever wakes the agent takes it up as after a crash:
there is no second loop and no second way to recover.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from thinkwell.journal.budget import Incident
from thinkwell.journal.ledger import LedgerRow, copy_call
from thinkwell.journal.turns import Chosen, TurnRecord, attempt_body
from thinkwell.messages.message import UIMessage
from thinkwell.messages.usage import Usage
from thinkwell.session.versions import plant_path
from thinkwell.store.base import Transaction
from thinkwell.turn.ask.opening import open_planted
from thinkwell.turn.travel.case import Case
from thinkwell.turn.travel.prefix import Prefix


async def plant(
    tx: Transaction,
    case: Case,
    record: TurnRecord,
    *,
    now: float,
    prefix: Prefix | None = None,
    calls: tuple[LedgerRow, ...] = (),
) -> TurnRecord:
    """Write the conversation and the turn, with a part of its journal if it goes on from there."""
    history = case.history()
    asked = {message["id"] for message in record.input}
    if prefix is None:  # its question joins the tree when it begins
        history = [message for message in history if message["id"] not in asked]
    scope = {"agent": record.agent_id, "session": ""}
    await plant_path(tx, scope, history, depth=case.depth, now=now)
    if prefix is not None:
        record = await _with_journal(tx, record, prefix, now)
    await open_planted(tx, record)
    for place, row in enumerate(calls):
        await copy_call(tx, record, row, now=now + place / 1e6)  # they are read in that order
    return record


async def _with_journal(
    tx: Transaction, record: TurnRecord, prefix: Prefix, now: float
) -> TurnRecord:
    key: dict[str, Any] = {"agent": record.agent_id, "turn": record.request_id}
    begun = {"seq": 0, "kind": "attempt", "body": attempt_body(1, now)}
    marker = await tx.fetch_one("mark_journal", {**key, **begun})
    for kind, start, stop, body in prefix.rows:
        row = {"seq_from": start, "seq_to": stop, "kind": kind, "body": body}
        await tx.execute("append_journal", {**key, **row})
    start = None if marker is None else marker["pos"]
    return replace(record, status="running", attempt=1, journal_start=start, started_at=now)


def fresh(case: Case, agent_id: str, request_id: str, *, now: float) -> TurnRecord:
    """The row of a recorded turn before anything has come of it."""
    turn, history = case.turn, case.history()
    brings_input = bool(turn.input) and not turn.function_input
    leaf: UIMessage | None = history[-1] if history else None
    return TurnRecord(
        agent_id=agent_id,
        request_id=request_id,
        trigger=turn.trigger,
        status="accepted",
        generation=0,
        continuation=turn.continuation,
        input=turn.input if brings_input else (),
        branch_from=None if brings_input or leaf is None else leaf["id"],
        read_only=turn.read_only,
        principal=turn.principal,
        body=turn.body,
        chosen=_without_lost(turn.chosen),
        client_tools=turn.client_tools,
        metadata=turn.metadata,
        message_id=turn.message_id,
        message_ids=turn.message_ids,
        incident=Incident(),
        usage=Usage(),
        created_at=now,
    )


def _without_lost(chosen: Chosen | None) -> Chosen | None:
    """What was given to `run` and died with its process: a recording stands for it."""
    return None if chosen is None else replace(chosen, live=())
