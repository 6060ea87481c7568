"""Who asks, and whether they may: every way in from outside comes through `demand`, once.

What Python code does (`run`, `respond_to_approval`, stubs) is trusted and does not ask; it works on
behalf of whoever asked for what runs now.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

import msgspec

from thinkwell.core.authority import Action, Subject
from thinkwell.core.errors import AbortTurn, FailTurn
from thinkwell.core.principal import Principal
from thinkwell.core.serving import served_by
from thinkwell.core.user_code import call_hook
from thinkwell.turn.ask.admission import CHAT_TRIGGERS, TurnRequest
from thinkwell.turn.end.notify import ended_turn
from thinkwell.turn.run.running import current_turn

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

    def authorize(self, action: Action, principal: Principal | None, subject: Subject, /) -> Any:
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
    try:
        allowed = bool(await call_hook("authorize", agent.authorize, action, principal, subject))
    except (Exception, AbortTurn, FailTurn):
        extra = _who(agent, action)
        log.exception("authorize failed, so nothing is allowed", extra=extra)
    if not allowed:
        log.info("a client may not do this: %s", action, extra=_who(agent, action))
        raise NotAllowed(subject)


def _who(agent: Judge, action: Action) -> dict[str, str]:
    return {"action": action, "agent": f"{agent.agent_class}/{agent.name}"}


class Behalf(msgspec.Struct, frozen=True):
    """Whoever asked for what runs now."""

    principal: Principal | None
    read_only: bool


def asking_for(agent_id: str) -> Behalf | None:
    """Who asked for the turn, the end hooks or the call inside which this runs; None: nobody."""
    turn, caller = current_turn.get(), served_by(agent_id)
    record = ended_turn.get() if turn is None or not turn.active else turn.record
    if record is not None and record.agent_id == agent_id:
        return Behalf(record.principal, record.read_only)
    return None if caller is None else Behalf(caller.principal, caller.readonly)


def on_behalf(request: TurnRequest, agent_id: str) -> TurnRequest:
    """A turn that is asked for inside a turn or a client's call belongs to whoever asked for that.

    What comes from the edge says itself who asks.
    """
    if request.principal is not None or request.trigger in CHAT_TRIGGERS:
        return request
    asker = asking_for(agent_id)
    if asker is None:
        return request
    return msgspec.structs.replace(
        request, principal=asker.principal, read_only=asker.read_only or request.read_only
    )
