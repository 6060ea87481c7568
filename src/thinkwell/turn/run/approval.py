"""Asking whether a call may run: the rules first, then a person (spec/04 §15.3).

A rule's yes is stored before the call is claimed, a question before anybody is asked. Both are
bound to the arguments and to the schema of the tool; `check_receipt` says whether an answer still
counts.
"""

from __future__ import annotations

import logging
from math import isfinite

import msgspec

from thinkwell.core.authority import Subject
from thinkwell.core.errors import AbortTurn, FailTurn, ToolError
from thinkwell.core.events import ApprovalAsked, ChatDecision
from thinkwell.core.ids import new_id
from thinkwell.core.principal import Principal
from thinkwell.core.user_code import call_hook
from thinkwell.journal.approval_rules import ApprovalRule, Called, judge, rules_of_tool
from thinkwell.journal.approvals import (
    Approval,
    approvals_of_message,
    ask_approval,
    close_approval,
    hash_of_input,
)
from thinkwell.journal.crash_points import crash_here
from thinkwell.journal.decisions import Decision, Named, name_approvers, record_rule_use
from thinkwell.journal.jobs import Job
from thinkwell.messages.apply_result import TAKES_APPROVAL
from thinkwell.messages.chunks import Chunk
from thinkwell.messages.message import UIMessage, tool_parts
from thinkwell.store.base import Transaction
from thinkwell.tools.fingerprint import schema_fingerprint
from thinkwell.tools.tool import Tool
from thinkwell.turn.approvers import is_named
from thinkwell.turn.parts import Parts
from thinkwell.turn.run.pending_call import PendingCall
from thinkwell.turn.run.running import RunningTurn

log = logging.getLogger("thinkwell.agent")

SCHEMA_CHANGED = (
    "Not run: the tool {tool!r} has changed since somebody was asked about this call. Call it "
    "again, with arguments that fit it now, if it is still wanted: then they are asked anew."
)
INPUT_CHANGED = (
    "Not run: the arguments changed after the call had been allowed. Call it again if it is still "
    "wanted: then somebody is asked about the new ones."
)
RULE_OUTDATED = (
    "A rule allowed calls like this, but {tool!r} has changed since it was made, so it asks again."
)
MAKER_UNNAMED = "A rule allows calls like this, but whoever made it may not approve this one."


class Question(msgspec.Struct, frozen=True):
    """What a person is asked."""

    asked: Approval
    named: Named | None
    """Whom the tool names to answer."""

    def chunk(self) -> Chunk:
        """How clients hear of it."""
        return {
            "type": "tool-approval-request",
            "approvalId": self.asked.id,
            "toolCallId": self.asked.tool_call_id,
        }


class RuleSaid(msgspec.Struct, frozen=True):
    """A rule has allowed the call, or why none does although one seems to."""

    allowed: bool = False
    note: str | None = None


def check_receipt(tool: Tool, call: PendingCall) -> ToolError | None:
    """Why an answer does not count for the call that is about to run; None if it does."""
    asked = call.receipt
    if asked is None:
        return None
    if asked.schema_hash != schema_fingerprint(tool.input_schema):
        return ToolError(SCHEMA_CHANGED.format(tool=tool.name))
    return check_input_hash(asked.input_hash, call.input)


def check_input_hash(allowed: str, call_input: object) -> ToolError | None:
    """Why arguments are not those that were allowed; None if they are."""
    return None if hash_of_input(call_input) == allowed else ToolError(INPUT_CHANGED)


async def ask_rules(turn: RunningTurn, tool: Tool, call: PendingCall) -> RuleSaid:
    """Whether a rule allows this call. Its yes is stored when this returns."""
    parts, asker = turn.parts, turn.record.principal
    rules = await rules_of_tool(parts.store, parts.owner.agent_id, tool.name)
    if not rules:
        return RuleSaid()
    schema = schema_fingerprint(tool.input_schema)
    called = Called(input=call.input, schema_hash=schema, asker=None if asker is None else asker.id)
    verdict = judge(rules, called)
    for rule in verdict.allows:
        if await _may_still_decide(turn, tool, call, rule):
            await _use(turn, call, rule)
            return RuleSaid(allowed=True)
    if verdict.allows:
        return RuleSaid(note=MAKER_UNNAMED)
    outdated = verdict.outdated is not None
    return RuleSaid(note=RULE_OUTDATED.format(tool=tool.name) if outdated else None)


async def _may_still_decide(
    turn: RunningTurn, tool: Tool, call: PendingCall, rule: ApprovalRule
) -> bool:
    """Whether whoever made a rule could allow this very call now: it is their standing answer.

    What the app's own code allowed is not asked about. Only the maker's id is handed on: the claims
    are as old as the rule, and whoever lost a role since must not keep its power by a rule.
    """
    if not rule.by_client:
        return True
    maker = rule.made_by
    if maker is not None:
        if maker.expires_at is not None and turn.parts.clock.now() >= maker.expires_at:
            return False
        maker = Principal(id=maker.id)
    subject = Subject(
        asker=turn.record.principal,
        request_id=turn.record.request_id,
        message_id=turn.message_id,
        tool_call_id=call.call_id,
        tool_name=tool.name,
        input=call.input,
        method="rule",
    )
    try:
        named = await is_named(turn.parts, maker, subject, tool=tool)
        subject = msgspec.structs.replace(subject, named=named)
        authorize = turn.parts.agent_ref.authorize
        return bool(await call_hook("authorize", authorize, "approve", maker, subject))
    except (Exception, AbortTurn, FailTurn):
        log.exception("nobody could say whether a rule holds", extra={"tool": tool.name})
        return False


async def _use(turn: RunningTurn, call: PendingCall, rule: ApprovalRule) -> None:
    """Each use is a decision that names the rule, stored before the call is claimed."""
    parts, now = turn.parts, turn.parts.clock.now()
    decision = Decision(
        turn=turn.record.request_id,
        message_id=turn.message_id,
        tool_call_id=call.call_id,
        tool_name=call.tool_name,
        action="approve",
        approved=True,
        reason=None,
        principal=rule.made_by,
        by_client=rule.by_client,
        input_hash=hash_of_input(call.input),
        schema_hash=rule.schema_hash,
        rule=rule.id,
        decided_at=now,
    )
    fresh = await parts.commits.insist(
        parts.owner, lambda tx: record_rule_use(tx, parts.owner.agent_id, decision, now=now)
    )
    crash_here("a3")
    if fresh:
        said = msgspec.structs.asdict(decision)
        parts.bus.emit(ChatDecision, agent=parts.owner.agent_id, **said)


def make_question(
    turn: RunningTurn, tool: Tool, call: PendingCall, note: str | None = None
) -> Question:
    """What to ask about a call."""
    now = turn.parts.clock.now()
    seconds = tool.approval_expires
    if seconds is None:
        seconds = turn.settings.limits.approval
    recording = turn.parts.recording
    known = None if recording is None else recording.approval_id(call.call_id)
    asked = Approval(
        id=known or new_id(),
        message_id=turn.message_id,
        tool_call_id=call.call_id,
        tool_name=tool.name,
        input=call.input,
        input_hash=hash_of_input(call.input),
        schema_hash=schema_fingerprint(tool.input_schema),
        turn=turn.record.request_id,
        asker=turn.record.principal,
        note=note,
        asked_at=now,
        expires_at=None if seconds is None or not isfinite(seconds) else now + seconds,
    )
    return Question(asked, named_by(tool))


def named_by(tool: Tool) -> Named | None:
    """Whom a tool names to decide; None if it leaves that to the agent."""
    if tool.approvers is None:
        return None
    ids = (tool.approvers,) if isinstance(tool.approvers, str) else tool.approvers
    return Named(None if callable(ids) else tuple(ids))


async def store_question(turn: RunningTurn, question: Question) -> None:
    """Stored before anybody is asked: a tool of this turn only is gone when the answer comes."""
    parts, asked, named = turn.parts, question.asked, question.named
    agent_id = parts.owner.agent_id

    async def store(tx: Transaction) -> Job | None:
        if named is not None:
            call = {"message_id": asked.message_id, "tool_call_id": asked.tool_call_id}
            await name_approvers(tx, agent_id, named, **call)
        return await ask_approval(tx, agent_id, asked)

    job = await parts.commits.insist(parts.owner, store)
    crash_here("a1")
    tell_asked(parts, asked, job)


def tell_asked(parts: Parts, asked: Approval, job: Job | None) -> None:
    """A question is stored: the runner hears when it expires, the bus that it is asked."""
    agent_id = parts.owner.agent_id
    if job is not None:
        parts.new_due_job(agent_id, job.due_at)
    parts.bus.emit(
        ApprovalAsked,
        agent=agent_id,
        approval_id=asked.id,
        turn=asked.turn,
        message_id=asked.message_id,
        tool_call_id=asked.tool_call_id,
        tool_name=asked.tool_name,
        principal=asked.asker,
        expires_at=asked.expires_at,
        note=asked.note,
    )


async def withdraw_questions(tx: Transaction, parts: Parts, message: UIMessage) -> None:
    """The conversation went on: what this message still asked is not to be decided any more."""
    if not any(part.get("state") == TAKES_APPROVAL for part in tool_parts(message)):
        return
    agent_id, now = parts.owner.agent_id, parts.clock.now()
    for asked in (await approvals_of_message(tx, agent_id, message["id"])).values():
        if asked.outcome is None:
            await close_approval(tx, agent_id, asked, "withdrawn", now=now)
