"""A turn begins as a row: `open_turn` writes it, whoever asks for the turn.

A request comes through `admission.py`. A continuation opens once every open call of a reply has
its result (spec/01 §11.7–11.9, DESIGN §8.2): the decision and the new row belong to the transaction
that stored the last result, so a crash in between cannot leave the chat stuck.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from thinkwell.core.ids import new_id
from thinkwell.journal.asked import if_not_stored
from thinkwell.journal.budget import Incident
from thinkwell.journal.turns import TurnRecord, insert_turn, mark_attempt, owe_continuation
from thinkwell.messages.message import UIMessage
from thinkwell.messages.waiting import decide_continuation, is_half_answered
from thinkwell.store.base import Transaction
from thinkwell.turn.handle import Start
from thinkwell.turn.parts import Parts
from thinkwell.turn.run.begin import join_tree


async def open_turn(tx: Transaction, parts: Parts, asked: TurnRecord) -> TurnRecord:
    """Accept a turn: the row as it is written. Ids and keys are checked in the same transaction.

    Nobody hears "accepted" before that has committed.
    """
    # The id of its reply stands on the row from the first: to write it later would move an index.
    message_id = asked.message_id or new_id()
    now = parts.clock.now()
    record = replace(
        asked, status="accepted", created_at=now, message_id=message_id, code=parts.code
    )
    await _write_row(tx, parts, record)
    return record


async def open_and_start(
    tx: Transaction, parts: Parts, asked: TurnRecord
) -> tuple[TurnRecord, Start]:
    """The same for a turn that finds the slot free: it has started when it is accepted.

    Its row says so from the first; whoever asked hears "accepted" all the same.
    """
    now = parts.clock.now()
    record = replace(asked, status="accepted", created_at=now, message_id=new_id(), code=parts.code)
    incident = Incident().begun(parts.boot, 0, first=True)
    begun = replace(record, incident=incident, branch_from=record.input[-1]["id"])
    running = await mark_attempt(tx, begun, now=now, seq=0, code=parts.code)
    await _write_row(tx, parts, running)
    start = await join_tree(tx, parts, record, record.input)
    return record, replace(start, record=running)


async def open_planted(tx: Transaction, record: TurnRecord) -> None:
    """The row of a turn that goes on with the past of another one, in an agent of its own."""
    await insert_turn(tx, record)


async def _write_row(tx: Transaction, parts: Parts, record: TurnRecord) -> None:
    if parts.line.rows.may_owe:
        # Whatever is asked now comes after the reply that a client wanted to go on with.
        await tx.execute("forgive_continuation", {"agent": record.agent_id})
        _note_debt(parts, may_owe=False)
        if_not_stored(partial(_note_debt, parts, may_owe=True))
    await insert_turn(tx, record)


def _note_debt(parts: Parts, *, may_owe: bool) -> None:
    parts.line.rows.may_owe = may_owe


async def start_continuation(
    tx: Transaction,
    parts: Parts,
    source: TurnRecord,
    message: UIMessage,
    *,
    owed: bool,
    client_tools: Sequence[dict[str, Any]] | None = None,
) -> TurnRecord | None:
    """Accept the turn that goes on with `source`'s answer, if one is owed and nothing waits.

    While a call waits, the debt is written down for the answer that comes last.
    """
    tools = source.client_tools if client_tools is None else tuple(client_tools)
    decision = decide_continuation(
        armed=owed, streaming=False, half_answered=is_half_answered(message)
    )
    if decision == "wait":
        _note_debt(parts, may_owe=True)
        await owe_continuation(tx, source.agent_id, message["id"])
    if decision != "run":
        return None
    asked = TurnRecord(
        agent_id=source.agent_id,
        request_id=new_id(),
        trigger="auto-continuation",
        status="accepted",
        generation=source.generation,
        continuation=True,
        body=source.body,
        chosen=source.chosen,
        root=source.root_id or None,
        client_tools=tools,
        metadata=source.metadata,
        principal=source.principal,
        read_only=source.read_only,
        message_id=message["id"],
    )
    return await open_turn(tx, parts, asked)
