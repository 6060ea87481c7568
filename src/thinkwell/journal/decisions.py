"""Who decided, and who may: one row for every answer from outside that was applied, written with
its effect, and one for every waiting call whose tool names somebody.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from thinkwell.core import json
from thinkwell.core.principal import Principal
from thinkwell.store.base import Reader, Transaction


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """A person's yes or no, or the result of a client tool."""

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
        },
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
