"""What people are asked about tool calls, and the rules that answer in their place.

A question is bound to a tool, the fingerprint of its schema and the hash of the arguments: an
answer counts for exactly that. It waits as a row and costs nothing else; one that expires has a job
that wakes its agent then, written in the same transaction. What was decided is in `decisions.py`.
Stored format: change only with a migration.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from thinkwell.core import json
from thinkwell.core.errors import ApprovalError
from thinkwell.core.ids import new_id
from thinkwell.core.principal import Principal, load_principal
from thinkwell.journal.crash_points import crash_here
from thinkwell.journal.jobs import Job, insert_job
from thinkwell.store.base import Reader, Row, Transaction
from thinkwell.tools.argument_patterns import fits

Outcome: TypeAlias = Literal["allowed", "denied", "expired", "withdrawn"]
EXPIRE_JOB = "approvals.expire"
"""The job of the feature `approvals` that ends a question nobody answered."""
MOST_RULES = 200
"""How many rules about one tool there are for the turns of one person."""
PAGE = 500
"""How many rules are read at once."""


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


class ApprovalRule(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Calls that are allowed without asking again."""

    id: str
    tool_name: str
    principal: str | None
    """Whose turns it is about, by id; None: turns of nobody in particular."""
    arguments: dict[str, dict[str, Any]]
    """What each argument may be: `{"path": {"glob": "tmp/*"}}`."""
    schema_hash: str
    """The fingerprint of the tool's schema when it was made; under another one it does not hold."""
    made_by: Principal | None = None
    by_client: bool = False
    """Whether a client made it; else the app's own code."""
    made_at: float = 0.0
    revoked_at: float | None = None


def hash_of_input(call_input: Any) -> str:
    """32 hex digits of the arguments: the same for the same JSON, in whatever order it stands."""
    return hashlib.blake2b(json.canonical(call_input).encode(), digest_size=16).hexdigest()


# Which rule answers


class Called(msgspec.Struct, frozen=True, kw_only=True):
    """A call that a rule may allow."""

    input: dict[str, Any]
    schema_hash: str
    asker: str | None
    """Whose turn it is, by id."""


class RuleVerdict(msgspec.Struct, frozen=True):
    """What the rules say about a call."""

    allows: tuple[ApprovalRule, ...] = ()
    """Those that cover it."""
    outdated: ApprovalRule | None = None
    """One that would, if the tool's schema had not changed."""


def judge(rules: Sequence[ApprovalRule], called: Called) -> RuleVerdict:
    """Which rules of a tool cover a call. Pure."""
    covering = [
        rule
        for rule in rules
        if rule.revoked_at is None
        and rule.principal == called.asker
        and fits(rule.arguments, called.input)
    ]
    current = tuple(rule for rule in covering if rule.schema_hash == called.schema_hash)
    outdated = None if current or not covering else covering[-1]
    return RuleVerdict(current, outdated)


# Questions


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


# Rules


async def add_rule(tx: Transaction, agent_id: str, rule: ApprovalRule) -> ApprovalRule:
    """Store a rule; one that says the same is given back instead, so that a double click is one.

    It has to be from the same maker: what somebody else said holds only as long as they may say it.
    A maker who has signed in again since renews the rule. Raises `ApprovalError` if there are too
    many: every one of them is compared with every call.
    """
    made_by = None if rule.made_by is None else json.dumps(rule.made_by)
    rules = await rules_of_tool(tx, agent_id, rule.tool_name)
    for known in rules:
        if not _says_the_same(known, rule):
            continue
        if known.made_by == rule.made_by:
            return known
        await tx.execute("renew_rule", {"agent": agent_id, "id": known.id, "made_by": made_by})
        return msgspec.structs.replace(known, made_by=rule.made_by)
    if sum(known.principal == rule.principal for known in rules) >= MOST_RULES:
        whose = "nobody in particular" if rule.principal is None else repr(rule.principal)
        raise ApprovalError(
            f"There are {MOST_RULES} rules about {rule.tool_name!r} for turns of {whose} already. "
            "Revoke some (`agent.approvals.revoke(id)`), or make one that covers more: "
            '{"path": {"prefix": "tmp/"}}.'
        )
    await tx.execute(
        "add_rule",
        {
            "agent": agent_id,
            "id": rule.id,
            "tool_name": rule.tool_name,
            "principal": rule.principal,
            "arguments": json.dumps(rule.arguments),
            "schema_hash": rule.schema_hash,
            "made_by": made_by,
            "by_client": int(rule.by_client),
            "made_at": rule.made_at,
        },
    )
    return rule


def _says_the_same(one: ApprovalRule, other: ApprovalRule) -> bool:
    return _key(one) == _key(other)


def _key(rule: ApprovalRule) -> tuple[Any, ...]:
    maker = None if rule.made_by is None else rule.made_by.id
    arguments = json.canonical(rule.arguments)
    return rule.principal, rule.schema_hash, rule.by_client, maker, arguments


async def rules_of_tool(reader: Reader, agent_id: str, tool_name: str) -> list[ApprovalRule]:
    """The rules about a tool that are not revoked."""
    rows = await reader.fetch_all("rules_of_tool", {"agent": agent_id, "tool_name": tool_name})
    return [_rule(row) for row in rows]


async def rules_of_agent(reader: Reader, agent_id: str) -> list[ApprovalRule]:
    """The rules of an agent that are not revoked, the oldest first."""
    found: list[Row] = []
    while True:
        after = found[-1]["seq"] if found else 0
        page = {"agent": agent_id, "after": after, "limit": PAGE}
        rows = await reader.fetch_all("rules_of_agent", page)
        found += rows
        if len(rows) < PAGE:
            return [_rule(row) for row in found]


async def find_rule(reader: Reader, agent_id: str, rule_id: str) -> ApprovalRule | None:
    """The rule with that id, revoked or not."""
    row = await reader.fetch_one("rule_by_id", {"agent": agent_id, "id": rule_id})
    return None if row is None else _rule(row)


async def revoke_rule(tx: Transaction, agent_id: str, rule_id: str, *, now: float) -> bool:
    """It holds no longer. False if it did not anyway."""
    return await tx.execute("revoke_rule", {"agent": agent_id, "id": rule_id, "now": now}) == 1


def _rule(row: Row) -> ApprovalRule:
    return ApprovalRule(
        id=row["id"],
        tool_name=row["tool_name"],
        principal=row["principal"],
        arguments=json.loads(row["arguments"]),
        schema_hash=row["schema_hash"],
        made_by=load_principal(row["made_by"]),
        by_client=bool(row["by_client"]),
        made_at=row["made_at"],
        revoked_at=row["revoked_at"],
    )
