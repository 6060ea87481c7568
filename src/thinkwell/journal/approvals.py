"""What people are asked about tool calls. The rules that answer instead: `approval_rules.py`.

A question is bound to a tool, the fingerprint of its schema and the hash of the arguments: an
answer counts for exactly that. It waits as a row and costs nothing else; one that expires has a job
that wakes its agent then, written in the same transaction. What was decided is in `decisions.py`.
Stored format: change only with a migration.
"""

from __future__ import annotations

import hashlib
from typing import Any, Literal, TypeAlias

import msgspec

from thinkwell.core import json
from thinkwell.core.ids import new_id
from thinkwell.core.principal import Principal, load_principal
from thinkwell.journal.crash_points import crash_here
from thinkwell.journal.jobs import Job, insert_job
from thinkwell.store.base import Reader, Row, Transaction

Outcome: TypeAlias = Literal["allowed", "denied", "expired", "withdrawn"]
EXPIRE_JOB = "approvals.expire"
"""The job of the feature `approvals` that ends a question nobody answered."""


class Approval(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A call that waits, or waited, for somebody to allow it."""

    id: str
    message_id: str
    tool_call_id: str
    tool_name: str
    input: Any
    """The arguments that were asked about."""
    input_hash: str
    schema_hash: str
    """The fingerprint of the tool's schema when the question was asked."""
    turn: str | None = None
    """The turn whose call it is."""
    asker: Principal | None = None
    """Who asked for that turn."""
    approvers: tuple[str, ...] | None = None
    """Whom the tool names to decide; None: the tool's own function or `authorize` decides."""
    note: str | None = None
    """Why it is asked although a rule seemed to cover it."""
    asked_at: float = 0.0
    expires_at: float | None = None
    """When it counts as denied; None: it waits for as long as it takes."""
    outcome: Outcome | None = None
    """None while it waits."""
    decided_at: float | None = None

    def is_over(self, now: float) -> bool:
        """Whether nobody can allow it any more."""
        return self.expires_at is not None and now >= self.expires_at

    def binds(self, call_input: Any, schema_hash: str) -> bool:
        """Whether this is about the same call: these arguments, for a tool with this schema."""
        return self.input_hash == hash_of_input(call_input) and self.schema_hash == schema_hash


def hash_of_input(call_input: Any) -> str:
    """32 hex digits of the arguments: the same for the same JSON, in whatever order it stands."""
    return hashlib.blake2b(json.canonical(call_input).encode(), digest_size=16).hexdigest()


async def ask_approval(tx: Transaction, agent_id: str, asked: Approval) -> Job | None:
    """Store a question, and the job that ends it if it expires: that one, for the runner."""
    asker = None if asked.asker is None else json.dumps(asked.asker)
    fields = {name: getattr(asked, name) for name in _PLAIN}
    row = {"agent": agent_id, "approval_id": asked.id, "input": json.dumps(asked.input)}
    await tx.execute("ask_approval", {**fields, **row, "asker": asker})
    job = None
    if asked.expires_at is not None:
        job = Job(
            agent_id=agent_id,
            id=new_id(),
            name=EXPIRE_JOB,
            payload={"approval": asked.id},
            due_at=asked.expires_at,
            key=_expiry_key(asked),
            created_at=asked.asked_at,
        )
        await insert_job(tx, job)
    crash_here("a0")
    return job


async def close_approval(
    tx: Transaction, agent_id: str, asked: Approval, outcome: Outcome, *, now: float
) -> None:
    """A question is decided, or there is nothing to decide any more."""
    call = {"message_id": asked.message_id, "tool_call_id": asked.tool_call_id}
    await tx.execute("close_approval", {"agent": agent_id, **call, "outcome": outcome, "now": now})
    if asked.expires_at is not None:
        await tx.execute("drop_waiting_job", {"agent": agent_id, "key": _expiry_key(asked)})


async def approval_of_call(
    reader: Reader, agent_id: str, *, message_id: str, tool_call_id: str
) -> Approval | None:
    """What was asked about a call; None for one that an earlier release asked about."""
    call = {"message_id": message_id, "tool_call_id": tool_call_id}
    row = await reader.fetch_one("approval_of_call", {"agent": agent_id, **call})
    return None if row is None else approval_from(row)


async def approvals_of_message(
    reader: Reader, agent_id: str, message_id: str
) -> dict[str, Approval]:
    """What was asked about the calls of a message, by call id."""
    asked = {"agent": agent_id, "message_id": message_id}
    rows = await reader.fetch_all("approvals_of_message", asked)
    return {row["tool_call_id"]: approval_from(row) for row in rows}


async def has_open_approvals(reader: Reader, agent_id: str) -> bool:
    """Whether anything is left that nobody has decided, on whatever branch."""
    return await reader.fetch_one("any_open_approval", {"agent": agent_id}) is not None


async def open_approval(reader: Reader, agent_id: str, approval_id: str) -> Approval | None:
    """The question with this id, if nobody has decided it."""
    row = await reader.fetch_one("open_approval", {"agent": agent_id, "id": approval_id})
    return None if row is None else approval_from(row)


def approval_from(row: Row) -> Approval:
    """Read a row of `approvals`, with whom its tool names."""
    ids = row["approvers"]
    return Approval(
        **{name: row[name] for name in _PLAIN},
        id=row["approval_id"],
        input=json.loads(row["input"]),
        asker=load_principal(row["asker"]),
        approvers=None if ids is None else tuple(json.loads(ids)),
        outcome=row["outcome"],
        decided_at=row["decided_at"],
    )


_PLAIN = (
    *("message_id", "tool_call_id", "turn", "tool_name", "input_hash", "schema_hash", "note"),
    *("asked_at", "expires_at"),
)
"""Columns that are fields as they are."""


def _expiry_key(asked: Approval) -> str:
    return f"approval:{asked.id}"
