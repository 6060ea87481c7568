"""The one way in: a request becomes a durable turn, or is found to be one already.

One transaction checks id and idempotency key, drops messages that are in the tree or in an
unsettled turn, and writes the row. Only after it has committed does anybody hear "accepted".
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

import msgspec

from thinkwell.core import json
from thinkwell.core.errors import NestedTurnError, SubmissionConflictError
from thinkwell.core.ids import new_id
from thinkwell.core.principal import Principal
from thinkwell.journal.crash_points import crash_here
from thinkwell.journal.turns import (
    ROOT,
    Trigger,
    TurnRecord,
    find_turn,
    find_turn_by_key,
    inherited_tools,
    insert_turn,
    unsettled_turns,
)
from thinkwell.messages.message import UIMessage
from thinkwell.messages.reconcile import reconcile
from thinkwell.session.draft import make_draft
from thinkwell.store.base import Transaction
from thinkwell.turn.face import Parts
from thinkwell.turn.running import current_turn

CHAT_TRIGGERS = ("ws-chat", "http-chat")
"""Whoever asks sends its whole transcript, which may hold a question it has changed."""


class TurnRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody asks for."""

    trigger: Trigger
    messages: tuple[UIMessage, ...] = ()
    new_ids: bool = False
    """The messages were made just now, so nobody can have stored them."""
    request_id: str | None = None
    function_input: bool = False
    branch_from: str | None = None
    """Answer under this message instead of the newest (regenerate)."""
    body: dict[str, Any] | None = None
    client_tools: tuple[dict[str, Any], ...] | None = None
    """Tools the client declares; None keeps those of the turn before."""
    continues: str | None = None
    """The stored answer to go on with, instead of an input."""
    supersedes: tuple[TurnRecord, ...] = ()
    """Waiting turns whose place this one takes; their messages come first."""
    not_before: float | None = None
    steer: bool = False
    idempotency_key: str | None = None
    metadata: dict[str, Any] | None = None
    principal: Principal | None = None
    read_only: bool = False
    """Whoever asks must not change the agent's state, in this turn neither."""
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
    inherited = await _supersede(tx, parts, request.supersedes)
    known_ids, fresh = await _new_messages(tx, parts, request, generation)
    branch_from = request.branch_from if request.branch_from in known_ids else None
    edit = await _edit_of(tx, parts, request, known_ids)
    if edit is not None:
        fresh, branch_from = (*fresh, *edit.messages), edit.parent_id
    messages = inherited + fresh
    new_ids = {message["id"] for message in messages}
    await tx.execute("forgive_continuation", {"agent": parts.owner.agent_id})
    record = TurnRecord(
        agent_id=parts.owner.agent_id,
        request_id=request.request_id or new_id(),
        trigger=request.trigger,
        status="accepted",
        generation=generation,
        input=messages,
        branch_from=None if branch_from in new_ids else branch_from,
        function_input=request.function_input,
        not_before=request.not_before,
        steer=request.steer,
        continuation=request.continues is not None,
        message_id=request.continues,
        body=request.body,
        client_tools=await _client_tools(tx, parts, request, generation),
        idempotency_key=request.idempotency_key,
        metadata=request.metadata,
        message_ids=request.message_ids,
        principal=request.principal,
        read_only=request.read_only,
        created_at=parts.clock.now(),
    )
    await insert_turn(tx, record)
    crash_here("c0")
    return Admission(record, accepted=True)


class Edit(msgspec.Struct, frozen=True):
    """A stored question that is asked again."""

    messages: tuple[UIMessage, ...]
    """Its changed version; nothing if it is the same."""
    parent_id: str
    """Where that goes; for the same question, where its new answer goes."""


async def _edit_of(
    tx: Transaction, parts: Parts, request: TurnRequest, known_ids: set[str]
) -> Edit | None:
    """A client that asks a stored question again, changed or not: what comes of it is a sibling of
    what is there (DESIGN §8.1).
    """
    last = request.messages[-1] if request.messages else None
    if last is None or last["role"] != "user" or request.trigger not in CHAT_TRIGGERS:
        return None
    if last["id"] not in known_ids:
        return None  # new: there is nothing it could be a changed version of
    rows = await parts.session.history.rows([last["id"]], tx)
    stored = await parts.session.get_message(last["id"], reader=tx)
    if request.branch_from is not None or not rows or stored is None:
        return None
    if json.loads(make_draft(last).content)["parts"] == stored["parts"]:
        return Edit((), last["id"])
    return Edit(({**last, "id": new_id()},), rows[0].parent_id or ROOT)


async def _supersede(
    tx: Transaction, parts: Parts, records: Sequence[TurnRecord]
) -> tuple[UIMessage, ...]:
    """End waiting turns and take their messages over."""
    messages: list[UIMessage] = []
    for record in records:
        fields = {"agent": record.agent_id, "id": record.request_id}
        ended = await tx.execute("supersede_turn", {**fields, "settled_at": parts.clock.now()})
        messages.extend(record.input if ended else ())
    return tuple(messages)


async def _client_tools(
    tx: Transaction, parts: Parts, request: TurnRequest, generation: int
) -> tuple[dict[str, Any], ...]:
    """What the client declares now, else what it declared last (spec/01 §6.2)."""
    if request.client_tools is not None:
        return request.client_tools
    return await inherited_tools(tx, parts.owner.agent_id, generation)


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
    tx: Transaction, parts: Parts, request: TurnRequest, generation: int
) -> tuple[set[str], tuple[UIMessage, ...]]:
    """The ids that are in the tree or wait in an unsettled turn, and what is new (DESIGN §8.1)."""
    messages = request.messages
    if not messages or request.new_ids:
        return set(), messages
    history = parts.session.history
    known = {message["id"] for message in messages if message["id"] in history.head_path.ids}
    rows = await history.rows([m["id"] for m in messages if m["id"] not in known], tx)
    known |= {row.id for row in rows}
    for turn in await unsettled_turns(tx, parts.owner.agent_id):
        known |= {message["id"] for message in turn.input}
    fresh = [message for message in messages if message["id"] not in known]
    if generation > 0 and not known and request.trigger in CHAT_TRIGGERS:
        fresh = _after_clear(fresh)
    if any(message["role"] == "assistant" for message in fresh):
        stored = await parts.session.get_history(reader=tx)
        mapped = reconcile(fresh, stored)
        have = {message["id"] for message in stored}
        fresh = [message for message in mapped if message["id"] not in have]
    return known, tuple(fresh)


def _after_clear(messages: Sequence[UIMessage]) -> list[UIMessage]:
    """Of a client that has not heard of a clear yet only what it asks now: the rest was deleted."""
    asked = takewhile(lambda message: message["role"] == "user", reversed(messages))
    return list(reversed(list(asked))) or list(messages)


def refuse_nested(call: str, agent_id: str) -> None:
    """A blocking call from inside a turn of the same agent would wait for itself (spec/02 §3.3)."""
    if is_inside_turn(agent_id):
        raise NestedTurnError(call)


def is_inside_turn(agent_id: str) -> bool:
    """Whether the current code runs inside a turn of that agent."""
    turn = current_turn.get()
    return turn is not None and turn.active and turn.record.agent_id == agent_id
