"""Rules that answer in a person's place: which calls are allowed without asking again.

A rule is bound to a tool and the fingerprint of its schema, and to whose turns it is about. Stored
format: change only with a migration.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from thinkwell.core import json
from thinkwell.core.errors import ApprovalError
from thinkwell.core.principal import Principal, load_principal
from thinkwell.store.base import Reader, Row, Transaction
from thinkwell.tools.argument_patterns import fits

MOST_RULES = 200
"""How many rules about one tool there are for the turns of one person."""
PAGE = 500
"""How many rules are read at once."""


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


# Stored


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
