"""Asking whether a client may: every way in from outside comes through here, once.

What Python code does (`run`, `respond_to_approval`, stubs) is trusted and does not ask.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

from thinkwell.core.authority import Action, Subject
from thinkwell.core.errors import AbortTurn, FailTurn
from thinkwell.core.principal import Principal
from thinkwell.core.user_code import call_user

log = logging.getLogger("thinkwell.agent")

ONLY_LOOKS = "Connection is readonly"
NOT_ALLOWED = "Not allowed"


class Judge(Protocol):
    """The agent that decides."""

    agent_class: ClassVar[str]

    @property
    def name(self) -> str:
        """The name of the agent."""
        ...

    def authorize(self, action: Action, principal: Principal | None, subject: Subject) -> Any:
        """Whether a client may do something; may be async."""
        ...


class NotAllowed(Exception):  # noqa: N818 - an answer, not a defect
    """A client may not do what it asked for. Each way in makes a refusal of it."""

    status = 403
    headers: ClassVar[Mapping[str, str]] = {}

    def __init__(self, subject: Subject) -> None:
        super().__init__(ONLY_LOOKS if subject.read_only else NOT_ALLOWED)


class TooManyTurns(NotAllowed):
    """A client waits for so many turns already that it may not ask for another one now."""

    status = 429
    headers: ClassVar[Mapping[str, str]] = {"retry-after": "5"}

    def __init__(self) -> None:
        Exception.__init__(self, "Too many messages wait for an answer. Try again later.")


async def demand(
    agent: Judge, action: Action, principal: Principal | None, subject: Subject
) -> None:
    """Ask the agent. Raises `NotAllowed`; an `authorize` that fails allows nothing."""
    allowed = False
    facts = {"action": action, "agent": f"{agent.agent_class}/{agent.name}"}
    try:
        allowed = bool(await call_user("authorize", agent.authorize, action, principal, subject))
    except (Exception, AbortTurn, FailTurn):
        log.exception("authorize failed, so nothing is allowed", extra=facts)
    if not allowed:
        log.info("a client may not do this: %s", action, extra=facts)
        raise NotAllowed(subject)
