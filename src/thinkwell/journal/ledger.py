"""The record of tool executions: claimed before a tool runs, settled together with its output
chunk.

A settled call never runs again. A call that was claimed and not settled has an unknown outcome; the
tool's effect class decides (spec/04 §15.1). If it may not be repeated, its row stays open, for the
whole conversation and not only for its turn: asking for the same again does not make it safe. A
clear forgets it, and somebody who knows what came of it can say so (`resolve_call`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec

from thinkwell.core import json
from thinkwell.journal.turns import TurnRecord
from thinkwell.store.base import Reader, Row, Transaction

LATE = "late"
"""The outcome of a call that ended when its turn no longer waited: nobody was told."""
Outcome = str
"""How a call ended: one of the outcomes of `hooks/contexts.py`."""


class LedgerRow(msgspec.Struct, frozen=True, kw_only=True):
    """One tool call of a turn."""

    turn: str
    call_id: str
    tool_name: str
    input: dict[str, Any]
    effect: str
    idempotency_key: str
    step: int
    settled: bool
    outcome: Outcome | None
    output: Any
    error: str | None


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """What is written before a tool runs."""

    call_id: str
    tool_name: str
    input: dict[str, Any]
    effect: str
    idempotency_key: str
    step: int


class CallName(msgspec.Struct, frozen=True):
    """What the key of a call is made of, and nothing that changes from attempt to attempt."""

    agent_id: str
    """Clients choose the ids of their turns, so two agents may have turns with the same id."""
    root: str
    tool: str
    input: dict[str, Any]
    occurrence: int
    """Equal calls of a turn count up, from 1."""

    @property
    def key(self) -> str:
        """The same call of the same turn always gets it, whatever id the provider gave it."""
        return self._digest(self.agent_id, self.root)

    @property
    def older_key(self) -> str:
        """The key that earlier releases made of it: ledgers still hold those."""
        return self._digest(self.root)

    def _digest(self, *turn: str) -> str:
        text = "\x1f".join((*turn, self.tool, json.canonical(self.input), str(self.occurrence)))
        return hashlib.sha256(text.encode()).hexdigest()[:32]


async def open_calls(
    reader: Reader, agent_id: str, tool: str, call_input: dict[str, Any]
) -> list[LedgerRow]:
    """Earlier calls of the same with an outcome that is unknown, or that nobody was told."""
    # Compared here and not in SQL: the same object may be written in another order of its keys.
    wanted = json.canonical(call_input)
    rows = await reader.fetch_all("open_calls", {"agent": agent_id, "tool": tool})
    found = [_row(row) for row in rows]
    return [row for row in found if json.canonical(row.input) == wanted]


async def repeated_call(
    reader: Reader, record: TurnRecord, keys: Sequence[str]
) -> LedgerRow | None:
    """The same call in a turn that this one repeats, by one of its keys, if it was claimed there.

    Where it has taken effect, that row is given rather than another one.
    """
    found: LedgerRow | None = None
    for turn in record.repeats:
        rows = await reader.fetch_all("calls_of_turn", {"agent": record.agent_id, "turn": turn})
        for row in rows:
            if row["idempotency_key"] in keys and row["input"] is not None:
                call = _row(row)
                if call.settled and call.error is None:
                    return call
                found = found or call
    return found


async def open_call(reader: Reader, agent_id: str, call_id: str) -> LedgerRow | None:
    """The newest call with that id, or that idempotency key, that has no outcome."""
    row = await reader.fetch_one("open_call", {"agent": agent_id, "call_id": call_id})
    return None if row is None else _row(row)


async def close_call(
    tx: Transaction, agent_id: str, row: LedgerRow, *, output: Any, error: str | None, now: float
) -> None:
    """What came of an open call is known now, and told."""
    outcome = "executed" if error is None else "errored"
    fields = {"agent": agent_id, "turn": row.turn, "call_id": row.call_id, "settled_at": now}
    text = json.dumps(output)
    await tx.execute("close_call", {**fields, "outcome": outcome, "output": text, "error": error})


async def resolve_call(
    tx: Transaction, agent_id: str, call_id: str, *, output: Any, error: str | None, now: float
) -> bool:
    """Somebody outside says what came of an open call. False if none is open with that id."""
    fields = {"agent": agent_id, "call_id": call_id, "settled_at": now}
    text = json.dumps(output)
    outcome = LATE if error is None else "errored"
    changed = await tx.execute(
        "resolve_call", {**fields, "outcome": outcome, "output": text, "error": error}
    )
    return changed > 0


async def claim_call(tx: Transaction, record: TurnRecord, claim: Claim, *, now: float) -> None:
    """The tool is about to run. Claiming again after a crash keeps the first claim."""
    await tx.execute(
        "claim_call",
        {
            "agent": record.agent_id,
            "turn": record.request_id,
            "call_id": claim.call_id,
            "tool_name": claim.tool_name,
            "input": json.dumps(claim.input),
            "effect": claim.effect,
            "idempotency_key": claim.idempotency_key,
            "step": claim.step,
            "claimed_at": now,
        },
    )


async def settle_call(
    tx: Transaction,
    record: TurnRecord,
    call_id: str,
    *,
    outcome: Outcome,
    output: Any,
    error: str | None,
    now: float,
) -> bool:
    """The call has its result. False if it has one already, which stays, or was never claimed."""
    changed = await tx.execute(
        "settle_call",
        {
            "agent": record.agent_id,
            "turn": record.request_id,
            "call_id": call_id,
            "outcome": outcome,
            "output": json.dumps(output),
            "error": error,
            "settled_at": now,
        },
    )
    return changed > 0


async def copy_call(tx: Transaction, record: TurnRecord, row: LedgerRow, *, now: float) -> None:
    """A call of another turn whose result a fork of that turn shares. It never runs again."""
    await tx.execute(
        "copy_call",
        {
            "agent": record.agent_id,
            "turn": record.request_id,
            "call_id": row.call_id,
            "tool_name": row.tool_name,
            "input": json.dumps(row.input),
            "effect": row.effect,
            "idempotency_key": row.idempotency_key,
            "step": row.step,
            "outcome": row.outcome,
            "output": json.dumps(row.output),
            "error": row.error,
            "now": now,
        },
    )


async def call_times(reader: Reader, agent_id: str, turns: Sequence[str]) -> dict[str, float]:
    """How many seconds each settled call of these turns took, by call id."""
    rows = await reader.fetch_all(
        "call_times", {"agent": agent_id, "turns": json.dumps(list(turns))}
    )
    return {row["call_id"]: row["settled_at"] - row["claimed_at"] for row in rows}


async def read_calls(reader: Reader, agent_id: str, turn: str) -> list[LedgerRow]:
    """The calls of a turn in the order they were claimed."""
    rows = await reader.fetch_all("calls_of_turn", {"agent": agent_id, "turn": turn})
    return [_row(row) for row in rows]


async def read_ledger(reader: Reader, record: TurnRecord) -> dict[str, LedgerRow]:
    """The calls of a turn, by call id."""
    calls = await read_calls(reader, record.agent_id, record.request_id)
    return {call.call_id: call for call in calls}


def _row(row: Row) -> LedgerRow:
    return LedgerRow(
        turn=row["turn"],
        call_id=row["call_id"],
        tool_name=row["tool_name"],
        input=json.loads(row["input"]),
        effect=row["effect"],
        idempotency_key=row["idempotency_key"],
        step=row["step"],
        settled=row["status"] == "settled",
        outcome=row["outcome"],
        output=None if row["output"] is None else json.loads(row["output"]),
        error=row["error"],
    )
