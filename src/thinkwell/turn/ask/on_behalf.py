"""For whom the agent's own code works right now."""

from __future__ import annotations

import msgspec

from thinkwell.core.principal import Principal
from thinkwell.core.serving import served_by
from thinkwell.turn.ask.admission import CHAT_TRIGGERS, TurnRequest
from thinkwell.turn.end.notify import ended_turn
from thinkwell.turn.run.running import current_turn


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
