"""Who decided, and who may: one row for every answer from outside that was applied, written with
its effect, and one for every waiting call whose tool names somebody.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from thinkwell.core import json
from thinkwell.core.principal import Principal, load_principal
from thinkwell.store.base import Reader, Row, Transaction


class Decision(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A person's yes or no, that of a rule or of the clock, or the result of a client tool."""

    turn: str | None
    """The turn whose call it was."""
    message_id: str
    tool_call_id: str
    tool_name: str
    action: Literal["answer", "approve"]
    approved: bool | None
    """Of an approval."""
    reason: str | None
    principal: Principal | None
    """Who decided, as `auth` said."""
    by_client: bool
    """Whether it came from a client; else the app's own code decided."""
    approval_id: str | None = None
    """The question it answers."""
    input_hash: str | None = None
    """The arguments it is about."""
    schema_hash: str | None = None
    """The schema of the tool it is about."""
    rule: str | None = None
    """The rule that allowed the call; nobody was asked."""
    expired: bool = False
    """Nobody had answered in time."""
    decided_at: float | None = None


async def record_decision(
    tx: Transaction, agent_id: str, decision: Decision, *, now: float
) -> None:
    """Keep a decision, in the transaction that applies it."""
    await tx.execute(
        "record_decision",
        {
            "agent": agent_id,
            "turn": decision.turn,
            "message_id": decision.message_id,
            "tool_call_id": decision.tool_call_id,
            "tool_name": decision.tool_name,
            "action": decision.action,
            "approved": None if decision.approved is None else int(decision.approved),
            "reason": decision.reason,
            "principal": None if decision.principal is None else json.dumps(decision.principal),
            "by_client": int(decision.by_client),
            "decided_at": now,
            "approval_id": decision.approval_id,
            "input_hash": decision.input_hash,
            "schema_hash": decision.schema_hash,
            "rule": decision.rule,
            "expired": int(decision.expired),
        },
    )


async def record_rule_use(
    tx: Transaction, agent_id: str, decision: Decision, *, now: float
) -> bool:
    """Keep that a rule has allowed a call. False if an earlier attempt of the turn has done so."""
    names = ("message_id", "tool_call_id", "rule")
    known = {"agent": agent_id, **{name: getattr(decision, name) for name in names}}
    if await tx.fetch_one("decided_by_rule", known) is not None:
        return False
    await record_decision(tx, agent_id, decision, now=now)
    return True


async def decisions_of_agent(reader: Reader, agent_id: str, *, limit: int) -> list[Decision]:
    """Who decided what, the newest first."""
    rows = await reader.fetch_all("decisions_of_agent", {"agent": agent_id, "limit": limit})
    return [_decision(row) for row in rows]


def _decision(row: Row) -> Decision:
    plain = (
        *("turn", "message_id", "tool_call_id", "tool_name", "action", "reason", "approval_id"),
        *("input_hash", "schema_hash", "rule", "decided_at"),
    )
    return Decision(
        **{name: row[name] for name in plain},
        approved=None if row["approved"] is None else bool(row["approved"]),
        principal=load_principal(row["principal"]),
        by_client=bool(row["by_client"]),
        expired=bool(row["expired"]),
    )


class Named(msgspec.Struct, frozen=True):
    """The tool of a waiting call names who may decide about it."""

    ids: tuple[str, ...] | None
    """Whom; None if a function of the tool decides."""


async def name_approvers(
    tx: Transaction, agent_id: str, named: Named, *, message_id: str, tool_call_id: str
) -> None:
    """Keep whom a tool names: when somebody decides, the tool itself may be gone."""
    await tx.execute(
        "name_approvers",
        {
            "agent": agent_id,
            "message_id": message_id,
            "tool_call_id": tool_call_id,
            "ids": None if named.ids is None else json.dumps(named.ids),
        },
    )


async def named_approvers(
    reader: Reader, agent_id: str, *, message_id: str, tool_call_id: str
) -> Named | None:
    """Whom the tool of a waiting call names; None if it leaves that to the agent."""
    call = {"agent": agent_id, "message_id": message_id, "tool_call_id": tool_call_id}
    row = await reader.fetch_one("named_approvers", call)
    if row is None:
        return None
    return Named(None if row["ids"] is None else tuple(json.loads(row["ids"])))
