"""Whom a tool names to decide about its calls: the one place that says so, for every answer."""

from __future__ import annotations

import logging

from thinkwell.core.authority import Approvers, Subject
from thinkwell.core.principal import Principal
from thinkwell.core.user_code import call_user
from thinkwell.journal.decisions import Named, named_approvers
from thinkwell.tools.tool import Tool
from thinkwell.turn.known_tools import find_tool_now
from thinkwell.turn.parts import Parts

log = logging.getLogger("thinkwell.agent")


async def is_named(
    parts: Parts, principal: Principal | None, subject: Subject, *, tool: Tool | None = None
) -> bool | None:
    """Whether the tool names them to decide; None if it leaves that to the agent.

    About a call that waits, what the tool named when it began to wait counts, whatever tools there
    are by now. `tool` is the one to ask if the caller has it: one of a single turn is found nowhere
    else.
    """
    kept = await _kept(parts, subject)
    if kept is not None and kept.ids is not None:
        return principal is not None and principal.id in kept.ids
    if tool is None:
        tool = await find_tool_now(parts, subject.tool_name or "")
    if tool is None or tool.approvers is None:
        return None if kept is None else False  # its function is gone: nobody is named
    try:
        return await _names(tool.approvers, principal, subject)
    except Exception:
        log.exception("approvers failed, so nobody is named", extra={"tool": tool.name})
        return False


async def _kept(parts: Parts, subject: Subject) -> Named | None:
    if subject.message_id is None or subject.tool_call_id is None:
        return None  # it is about calls to come
    call = {"message_id": subject.message_id, "tool_call_id": subject.tool_call_id}
    return await named_approvers(parts.store, parts.owner.agent_id, **call)


async def _names(approvers: Approvers, principal: Principal | None, subject: Subject) -> bool:
    if isinstance(approvers, str):
        return principal is not None and principal.id == approvers
    if callable(approvers):
        return bool(await call_user("approvers", approvers, principal, subject))
    return principal is not None and principal.id in approvers
