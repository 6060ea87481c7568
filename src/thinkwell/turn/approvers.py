"""Whom a tool names to decide about its calls."""

from __future__ import annotations

from thinkwell.core.authority import Approvers, Subject
from thinkwell.core.principal import Principal
from thinkwell.core.user_code import call_hook, call_user
from thinkwell.tools.tool import Tool, as_tool
from thinkwell.turn.parts import Parts


async def is_named(approvers: Approvers, principal: Principal | None, subject: Subject) -> bool:
    """Whether a tool's `approvers` let them decide."""
    if isinstance(approvers, str):
        return principal is not None and principal.id == approvers
    if callable(approvers):
        return bool(await call_user("approvers", approvers, principal, subject))
    return principal is not None and principal.id in approvers


async def find_tool_now(parts: Parts, name: str) -> Tool | None:
    """The tool as the agent has it now, switched on or not. Calls code of users."""
    in_scope = parts.scopes.find_tool(name)
    if in_scope is not None:
        return in_scope.tool
    if name in parts.own_tools:
        return parts.own_tools[name]
    if (offered := parts.offers.find_tool(name)) is not None:
        return offered
    given = await call_hook("get_tools", parts.agent.get_tools)
    return as_tool(given[name], name) if name in given else None
