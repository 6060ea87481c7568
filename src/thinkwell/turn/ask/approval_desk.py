"""Behind `agent.approvals`: what waits, what was decided, and the rules that decide by themselves.

A client makes and revokes a rule only where it could have answered the question itself: `authorize`
is asked about the same action, `approve`, with whose turns it is about and whether the tool names
that client. It is asked again, with the arguments of the call, each time the rule is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from thinkwell.core.authority import Subject
from thinkwell.core.errors import ApprovalError
from thinkwell.core.events import ApprovalRuleMade, ApprovalRuleRevoked
from thinkwell.core.ids import new_id
from thinkwell.core.principal import Principal
from thinkwell.core.spelling import did_you_mean
from thinkwell.core.tasks import run_to_the_end
from thinkwell.hooks.feature import Client
from thinkwell.journal.approval_rules import (
    ApprovalRule,
    add_rule,
    find_rule,
    revoke_rule,
    rules_of_agent,
)
from thinkwell.journal.approvals import (
    Approval,
    approvals_of_message,
    close_approval,
    has_open_approvals,
    open_approval,
)
from thinkwell.journal.crash_points import crash_here
from thinkwell.journal.decisions import Decision, decisions_of_agent
from thinkwell.messages.apply_result import TAKES_APPROVAL
from thinkwell.messages.message import is_settled, tool_parts
from thinkwell.tools.argument_patterns import exactly, read_pattern
from thinkwell.tools.fingerprint import schema_fingerprint
from thinkwell.tools.tool import Tool
from thinkwell.turn.approvers import is_named
from thinkwell.turn.ask.answers import approval_answer, expired_answer, recent_messages
from thinkwell.turn.ask.authority import demand
from thinkwell.turn.ask.chat_request import Asker
from thinkwell.turn.ask.client_answers import answer_as_client
from thinkwell.turn.known_tools import find_tool_now
from thinkwell.turn.turns import Turns


class TurnApprovals:
    """The questions, decisions and rules of one agent."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns

    # What waits and what was decided

    async def pending(self) -> list[Approval]:
        """What waits for somebody, the oldest first. What has expired is decided by this look."""
        waiting = await self._waiting()
        now = self._turns.parts.clock.now()
        for asked in waiting:
            if asked.is_over(now):
                await self.expire(asked.id)
        return [asked for asked in waiting if not asked.is_over(now)]

    async def decisions(self, limit: int) -> list[Decision]:
        """What was decided, the newest first."""
        parts = self._turns.parts
        return await decisions_of_agent(parts.store, parts.owner.agent_id, limit=limit)

    async def respond(self, id: str, *, approved: bool, reason: str | None) -> bool:
        """Answer a question by its own id. False if it waits no more."""
        for asked in await self._waiting():
            if id in (asked.id, asked.tool_call_id):
                answer = approval_answer(asked.tool_call_id, approved=approved, reason=reason)
                meant = msgspec.structs.replace(answer, message_id=asked.message_id)
                return await self._turns.answer(meant)
        return False

    async def expire(self, id: str) -> float | None:
        """Deny a question whose time is over. Seconds until then, if it is not; else None."""
        parts = self._turns.parts
        asked = await open_approval(parts.store, parts.owner.agent_id, id)
        if asked is None:
            return None
        left = (asked.expires_at or 0.0) - parts.clock.now()
        if left > 0:
            return left  # the clock was set back, or the question was asked anew
        if not await self._turns.answer(expired_answer(asked)):
            await self._close_stray(asked)
        return None

    async def _close_stray(self, asked: Approval) -> None:
        """It stands on a branch that was left, or its turn died before anybody was asked."""
        parts = self._turns.parts
        now, agent_id = parts.clock.now(), parts.owner.agent_id
        await parts.commits.insist(
            parts.owner, lambda tx: close_approval(tx, agent_id, asked, "expired", now=now)
        )

    async def _waiting(self) -> list[Approval]:
        """What is open and stands on the path: on a branch that was left, nobody is asked.

        The path says which messages to look at: questions on other branches may be any number.
        """
        parts, running = self._turns.parts, self._turns.running
        agent_id = parts.owner.agent_id
        if not await has_open_approvals(parts.store, agent_id):
            return []
        messages = await recent_messages(parts.store, parts)
        if running is not None and running.reply.known:
            messages = [*messages, running.reply.fold.message]
        shown = {
            (message["id"], part["toolCallId"])
            for message in messages
            for part in tool_parts(message)
            if part.get("state") == TAKES_APPROVAL and not is_settled(part)
        }
        found: list[Approval] = []
        for message_id in {message_id for message_id, _ in shown}:
            asked = await approvals_of_message(parts.store, agent_id, message_id)
            found += (a for a in asked.values() if (message_id, a.tool_call_id) in shown)
        waiting = [asked for asked in found if asked.outcome is None]
        return sorted(waiting, key=lambda asked: (asked.asked_at, asked.id))

    # Rules

    async def rules(self) -> list[ApprovalRule]:
        """The rules that are not revoked, the oldest first."""
        parts = self._turns.parts
        return await rules_of_agent(parts.store, parts.owner.agent_id)

    async def schema_now(self, tool_name: str) -> str | None:
        """The fingerprint of a tool's schema as it is now; None if there is no such tool."""
        tool = await find_tool_now(self._turns.parts, tool_name)
        return None if tool is None else schema_fingerprint(tool.input_schema)

    async def allow(
        self,
        tool_name: str,
        arguments: Mapping[str, Any],
        *,
        principal: str | None,
        by: Client | None = None,
    ) -> ApprovalRule:
        """Allow calls from now on: those of turns that `principal` asks for, with such arguments.

        Raises `ApprovalError`, and `NotAllowed` for a client that may not.
        """
        pattern = read_pattern(arguments)
        tool = await self._asking_tool(tool_name)
        if by is not None:
            await self._demand(by, _about_rule(tool_name, principal, by))
        return await self._add(tool, pattern, principal, by)

    async def allow_always(
        self, id: str, *, arguments: Mapping[str, Any] | None, by: Client | None
    ) -> ApprovalRule | None:
        """Allow a call that waits, and from now on those like it. None if it waits no more.

        Without `arguments`, only the very same call. The rule is stored first: after a crash in
        between, the call still waits.
        """
        asked = next((a for a in await self.pending() if id in (a.id, a.tool_call_id)), None)
        if asked is None:
            return None
        pattern = exactly(asked.input) if arguments is None else read_pattern(arguments)
        tool = await self._asking_tool(asked.tool_name)
        principal = None if asked.asker is None else asked.asker.id
        if by is not None:
            await self._demand(by, _about_call(asked, by))
        rule = await self._add(tool, pattern, principal, by)
        answer = approval_answer(asked.tool_call_id, approved=True)
        meant = msgspec.structs.replace(answer, message_id=asked.message_id)
        if by is None:
            await self._turns.answer(meant)
        else:
            asker = Asker(trigger="ws-chat", principal=by.principal, read_only=by.readonly)
            await answer_as_client(self._turns, meant, asker)
        return rule

    async def revoke(self, id: str, *, by: Client | None = None) -> bool:
        """A rule holds no longer. False if it did not anyway."""
        parts = self._turns.parts
        rule = await find_rule(parts.store, parts.owner.agent_id, id)
        if rule is None or rule.revoked_at is not None:
            return False
        if by is not None:
            await self._demand(by, _about_rule(rule.tool_name, rule.principal, by))
        return await run_to_the_end(self._revoke(rule, by))

    async def _revoke(self, rule: ApprovalRule, by: Client | None) -> bool:
        parts = self._turns.parts
        agent_id, now = parts.owner.agent_id, parts.clock.now()
        revoked = await parts.commits.run(
            parts.owner, lambda tx: revoke_rule(tx, agent_id, rule.id, now=now)
        )
        crash_here("a4")
        if revoked:
            parts.bus.emit(
                ApprovalRuleRevoked,
                agent=agent_id,
                rule=rule.id,
                tool_name=rule.tool_name,
                revoked_by=None if by is None else by.principal,
                by_client=by is not None,
            )
        return revoked

    async def _add(
        self, tool: Tool, pattern: dict[str, Any], principal: str | None, by: Client | None
    ) -> ApprovalRule:
        rule = ApprovalRule(
            id=new_id(),
            tool_name=tool.name,
            principal=principal,
            arguments=pattern,
            schema_hash=schema_fingerprint(tool.input_schema),
            made_by=None if by is None else by.principal,
            by_client=by is not None,
            made_at=self._turns.parts.clock.now(),
        )
        return await run_to_the_end(self._store(rule))

    async def _store(self, rule: ApprovalRule) -> ApprovalRule:
        parts = self._turns.parts
        agent_id = parts.owner.agent_id
        stored = await parts.commits.run(parts.owner, lambda tx: add_rule(tx, agent_id, rule))
        crash_here("a4")
        if stored is rule:
            parts.bus.emit(
                ApprovalRuleMade,
                agent=agent_id,
                rule=rule.id,
                tool_name=rule.tool_name,
                principal=rule.principal,
                made_by=rule.made_by,
                by_client=rule.by_client,
            )
        return stored

    async def _asking_tool(self, name: str) -> Tool:
        """The tool a rule is about. Raises `ApprovalError` if nobody is ever asked about it."""
        parts = self._turns.parts
        tool = await find_tool_now(parts, name)
        if tool is None:
            near = did_you_mean(name[:100], [*parts.own_tools])
            raise ApprovalError(f"There is no tool {name!r:.100} to make a rule for.{near}")
        if tool.needs_approval is False:
            raise ApprovalError(
                f"Calls of {name!r} run without asking anybody, so a rule would do nothing. Write "
                "@tool(needs_approval=True) first."
            )
        return tool

    async def _demand(self, by: Client, subject: Subject) -> None:
        """Whether a client could have answered such calls itself. Raises `NotAllowed`."""
        parts = self._turns.parts
        named = await is_named(parts, by.principal, subject)
        subject = msgspec.structs.replace(subject, named=named)
        await demand(parts.agent_ref, "approve", by.principal, subject)


def _about_rule(tool_name: str, principal: str | None, by: Client) -> Subject:
    return Subject(
        read_only=by.readonly,
        asker=None if principal is None else Principal(id=principal),
        tool_name=tool_name,
        method="rule",
    )


def _about_call(asked: Approval, by: Client) -> Subject:
    return Subject(
        read_only=by.readonly,
        asker=asked.asker,
        request_id=asked.turn,
        message_id=asked.message_id,
        tool_call_id=asked.tool_call_id,
        tool_name=asked.tool_name,
        input=asked.input,
        method="rule",
    )
