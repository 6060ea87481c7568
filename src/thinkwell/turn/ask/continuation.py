"""Going on with an answer once every open call of it has its result (spec/01 §11.7–11.9, DESIGN
§8.2).

The decision and the new turn row belong to the transaction that stored the last result, so a crash
in between cannot leave the chat stuck.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from thinkwell.core.ids import new_id
from thinkwell.journal.turns import TurnRecord, insert_turn, owe_continuation
from thinkwell.messages.message import UIMessage
from thinkwell.messages.waiting import decide_continuation, is_half_answered
from thinkwell.store.base import Transaction
from thinkwell.turn.parts import Parts


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
        await owe_continuation(tx, source.agent_id, message["id"])
    if decision != "run":
        return None
    record = TurnRecord(
        agent_id=source.agent_id,
        request_id=new_id(),
        trigger="auto-continuation",
        status="accepted",
        generation=source.generation,
        continuation=True,
        body=source.body,
        client_tools=tools,
        metadata=source.metadata,
        principal=source.principal,
        read_only=source.read_only,
        message_id=message["id"],
        created_at=parts.clock.now(),
    )
    await tx.execute("forgive_continuation", {"agent": source.agent_id})
    await insert_turn(tx, record)
    return record
