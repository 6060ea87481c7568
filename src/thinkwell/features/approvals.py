"""`agent.approvals`: calls that wait for somebody, what was decided, and rules that always allow.

Questions and decisions are rows that turns write; this is the desk where people look at them. The
one job ends questions that expire, so that a conversation goes on although nobody looks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from thinkwell.core.errors import ApprovalError
from thinkwell.core.principal import Principal
from thinkwell.hooks.feature import Client, Feature
from thinkwell.hooks.jobs import JobContext, JobHandler, RunAgain
from thinkwell.hooks.rpc import rpc
from thinkwell.journal.approval_rules import ApprovalRule
from thinkwell.journal.approvals import Approval
from thinkwell.journal.decisions import Decision


class ListedRule(ApprovalRule, frozen=True, kw_only=True, rename="camel"):
    """A rule, and whether its tool is still the one it was made for."""

    holds: bool
    """False after the tool's schema changed: its calls are asked about again."""


class Approvals(Feature):
    """The approvals of one agent. What Python code does here is trusted; clients are not."""

    name = "approvals"

    def calls(self) -> Mapping[str, Callable[..., Any]]:
        """What clients may call."""
        return {
            "getApprovals": self.client_pending,
            "getApprovalRules": self.client_rules,
            "allowAlways": self.client_allow_always,
            "addApprovalRule": self.client_add_rule,
            "revokeApprovalRule": self.client_revoke,
        }

    def jobs(self) -> Mapping[str, JobHandler]:
        """Ends what nobody has answered in time."""
        return {"expire": self._expire}

    async def pending(self) -> list[Approval]:
        """The calls that wait for somebody, the oldest first."""
        return await self.kit.approvals.pending()

    async def decisions(self, limit: int = 100) -> list[Decision]:
        """What was decided, by whom or by which rule, the newest first."""
        return await self.kit.approvals.decisions(limit)

    async def respond(self, id: str, *, approved: bool, reason: str | None = None) -> bool:
        """Answer a question by its `id`, or by that of its call. False if it waits no more."""
        return await self.kit.approvals.respond(id, approved=approved, reason=reason)

    async def allow(
        self, tool: str, arguments: Mapping[str, Any], *, principal: str | None = None
    ) -> ApprovalRule:
        """Run calls of `tool` with such `arguments` without asking from now on.

        It counts for turns that the `principal` with this id asks for, None for turns of nobody in
        particular. Saying the same twice is one rule. Raises `ApprovalError`.
        """
        if principal is not None and not isinstance(principal, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ApprovalError(
                f"allow() was given principal={principal!r}. Give the id, a text: "
                "`principal=ctx.principal.id`."
            )
        return await self.kit.approvals.allow(tool, arguments, principal=principal)

    async def allow_always(
        self, id: str, arguments: Mapping[str, Any] | None = None
    ) -> ApprovalRule | None:
        """Allow a call that waits, and from now on those like it for whoever asked for it.

        Without `arguments`, only the very same call. None if it waits no more.
        """
        return await self.kit.approvals.allow_always(id, arguments=arguments, by=None)

    async def rules(self) -> list[ListedRule]:
        """The rules that are not revoked, the oldest first."""
        return await self._listed(await self.kit.approvals.rules())

    async def revoke(self, id: str) -> bool:
        """Ask again about the calls that a rule allowed. False if there is no such rule."""
        return await self.kit.approvals.revoke(id)

    # What clients call

    @rpc(read_only=True)
    async def client_pending(self) -> Sequence[Approval]:
        """What waits, for a client."""
        return [
            msgspec.structs.replace(asked, asker=_shown(asked.asker))
            for asked in await self.pending()
        ]

    @rpc(read_only=True)
    async def client_rules(self) -> Sequence[ListedRule]:
        """Those about the caller, or made by them: what others do is not theirs to see."""
        client = self._client()
        own = None if client.principal is None else client.principal.id

        def is_theirs(rule: ApprovalRule) -> bool:
            made = rule.made_by is not None and rule.made_by.id == own
            return made or rule.principal == own

        theirs = filter(is_theirs, await self.kit.approvals.rules())
        return await self._listed([_shown_rule(rule) for rule in theirs])

    @rpc
    async def client_allow_always(
        self, id: str, arguments: dict[str, Any] | None = None
    ) -> ApprovalRule | None:
        """Allow a call, and those like it, if the caller may answer it."""
        rule = await self.kit.approvals.allow_always(id, arguments=arguments, by=self._client())
        return None if rule is None else _shown_rule(rule)

    @rpc
    async def client_add_rule(self, tool: str, arguments: dict[str, Any]) -> ApprovalRule:
        """Only ever for the caller's own turns."""
        client = self._client()
        own = None if client.principal is None else client.principal.id
        rule = await self.kit.approvals.allow(tool, arguments, principal=own, by=client)
        return _shown_rule(rule)

    @rpc
    async def client_revoke(self, id: str) -> bool:
        """Revoke a rule, if the caller could have made it."""
        return await self.kit.approvals.revoke(id, by=self._client())

    async def _listed(self, rules: Sequence[ApprovalRule]) -> list[ListedRule]:
        """With whether they hold. Each tool is looked for once: that may call the app's code."""
        names = {rule.tool_name for rule in rules}
        schemas = {name: await self.kit.approvals.schema_now(name) for name in names}
        return [
            ListedRule(
                **msgspec.structs.asdict(rule), holds=schemas[rule.tool_name] == rule.schema_hash
            )
            for rule in rules
        ]

    def _client(self) -> Client:
        client: Client | None = self.kit.agent.caller
        if client is None:
            raise ApprovalError("This is for clients. Python code calls `agent.approvals`.")
        return client

    async def _expire(self, payload: Any, _: JobContext) -> RunAgain | None:
        left = await self.kit.approvals.expire(payload["approval"])
        return None if left is None else RunAgain(left)


def _shown_rule(rule: ApprovalRule) -> ApprovalRule:
    """A rule as clients see it."""
    return msgspec.structs.replace(rule, made_by=_shown(rule.made_by))


def _shown(principal: Principal | None) -> Principal | None:
    """What clients learn of somebody: the id. Claims are between the app and that person."""
    return None if principal is None else Principal(id=principal.id)
