"""The one way in: a request becomes a durable turn, or is found to be one already.

One transaction checks id and idempotency key, drops messages that are in the tree or in an
unsettled turn, and writes the row. Only after it has committed does anybody hear "accepted".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from thinkwell.core.errors import NestedTurnError, SubmissionConflictError
from thinkwell.core.ids import new_id
from thinkwell.journal.crash_points import crash_here
from thinkwell.journal.turns import (
    Trigger,
    TurnRecord,
    find_turn,
    find_turn_by_key,
    insert_turn,
    unsettled_turns,
)
from thinkwell.messages.message import UIMessage
from thinkwell.messages.reconcile import reconcile
from thinkwell.store.base import Transaction
from thinkwell.turn.face import Parts
from thinkwell.turn.running import current_turn


class TurnRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody asks for."""

    trigger: Trigger
    messages: tuple[UIMessage, ...] = ()
    request_id: str | None = None
    function_input: bool = False
    branch_from: str | None = None
    """Answer under this message instead of the newest (regenerate)."""
    body: dict[str, Any] | None = None
    idempotency_key: str | None = None
    metadata: dict[str, Any] | None = None
    message_ids: tuple[str, ...] = ()


class Admission(msgspec.Struct, frozen=True):
    """The turn, and whether it was accepted now or known before."""

    record: TurnRecord
    accepted: bool


async def admit(parts: Parts, request: TurnRequest, generation: int) -> Admission:
    """Accept a turn. Raises `SubmissionConflictError` if id and key name different turns."""
    return await parts.commits.run(parts.owner, lambda tx: _accept(tx, parts, request, generation))


async def _accept(
    tx: Transaction, parts: Parts, request: TurnRequest, generation: int
) -> Admission:
    known = await _find_known(tx, parts.owner.agent_id, request)
    if known is not None:
        return Admission(known, accepted=False)
    messages = await _new_messages(tx, parts, request.messages)
    new_ids = {message["id"] for message in messages}
    record = TurnRecord(
        agent_id=parts.owner.agent_id,
        request_id=request.request_id or new_id(),
        trigger=request.trigger,
        status="accepted",
        generation=generation,
        input=messages,
        branch_from=None if request.branch_from in new_ids else request.branch_from,
        function_input=request.function_input,
        body=request.body,
        idempotency_key=request.idempotency_key,
        metadata=request.metadata,
        message_ids=request.message_ids,
        created_at=parts.clock.now(),
    )
    await insert_turn(tx, record)
    crash_here("c0")
    return Admission(record, accepted=True)


async def _find_known(tx: Transaction, agent_id: str, request: TurnRequest) -> TurnRecord | None:
    by_id = by_key = None
    if request.request_id is not None:
        by_id = await find_turn(tx, agent_id, request.request_id)
    if request.idempotency_key is not None:
        by_key = await find_turn_by_key(tx, agent_id, request.idempotency_key)
    if by_id is not None and request.idempotency_key not in (None, by_id.idempotency_key):
        raise SubmissionConflictError(
            f"The turn {by_id.request_id!r} was accepted with the idempotency key "
            f"{by_id.idempotency_key!r}, not {request.idempotency_key!r}. Use one of the two."
        )
    if by_key is not None and request.request_id not in (None, by_key.request_id):
        raise SubmissionConflictError(
            f"The idempotency key {request.idempotency_key!r} belongs to the turn "
            f"{by_key.request_id!r}, not {request.request_id!r}. Use one of the two."
        )
    return by_id or by_key


async def _new_messages(
    tx: Transaction, parts: Parts, messages: Sequence[UIMessage]
) -> tuple[UIMessage, ...]:
    """Only what is neither in the tree nor waiting in an unsettled turn (DESIGN §8.1)."""
    if not messages:
        return ()
    rows = await parts.session.history.rows([message["id"] for message in messages], tx)
    known = {row.id for row in rows}
    for turn in await unsettled_turns(tx, parts.owner.agent_id):
        known |= {message["id"] for message in turn.input}
    fresh = [message for message in messages if message["id"] not in known]
    if any(message["role"] == "assistant" for message in fresh):
        stored = await parts.session.get_history(reader=tx)
        mapped = reconcile(fresh, stored)
        have = {message["id"] for message in stored}
        fresh = [message for message in mapped if message["id"] not in have]
    return tuple(fresh)


def refuse_nested(call: str, agent_id: str) -> None:
    """A blocking call from inside a turn of the same agent would wait for itself (spec/02 §3.3)."""
    if is_inside_turn(agent_id):
        raise NestedTurnError(call)


def is_inside_turn(agent_id: str) -> bool:
    """Whether the current code runs inside a turn of that agent."""
    turn = current_turn.get()
    return turn is not None and turn.active and turn.record.agent_id == agent_id
