"""Asking whether a client may: every way in from outside comes through here, once.

What Python code does (`run`, `respond_to_approval`, stubs) is trusted and does not ask.
"""

from __future__ import annotations

import logging
from inspect import isawaitable
from typing import TYPE_CHECKING, Any

from thinkwell.core.authority import Action, Subject
from thinkwell.core.principal import Principal

if TYPE_CHECKING:
    from thinkwell.agent.agent import Agent

log = logging.getLogger("thinkwell.agent")

ONLY_LOOKS = "Connection is readonly"
NOT_ALLOWED = "Not allowed"


class NotAllowed(Exception):  # noqa: N818 - an answer, not a defect
    """A client may not do what it asked for. Becomes its answer; never leaves `agent/`."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(ONLY_LOOKS if subject.read_only else NOT_ALLOWED)


async def demand(
    agent: Agent, action: Action, principal: Principal | None, subject: Subject
) -> None:
    """Ask the agent. Raises `NotAllowed`; an `authorize` that fails allows nothing."""
    allowed = False
    facts = {"action": action, "agent": f"{agent.agent_class}/{agent.name}"}
    try:
        answer: Any = agent.authorize(action, principal, subject)
        allowed = bool(await answer if isawaitable(answer) else answer)
    except Exception:
        log.exception("authorize failed, so nothing is allowed", extra=facts)
    if not allowed:
        log.info("a client may not do this: %s", action, extra=facts)
        raise NotAllowed(subject)
