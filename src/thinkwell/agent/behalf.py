"""Whose turn it is when the agent's own code asks for one."""

from __future__ import annotations

import msgspec

from thinkwell.agent.connection import served_by
from thinkwell.turn.admission import CHAT_TRIGGERS, TurnRequest
from thinkwell.turn.notify import ended_turn
from thinkwell.turn.running import current_turn


def on_behalf(request: TurnRequest, agent_id: str) -> TurnRequest:
    """A turn that is asked for inside a turn or a client's call belongs to whoever asked for that.

    What comes from the edge says itself who asks.
    """
    if request.principal is not None or request.trigger in CHAT_TRIGGERS:
        return request
    turn, caller = current_turn.get(), served_by(agent_id)
    record = ended_turn.get() if turn is None else turn.record
    if record is not None and record.agent_id == agent_id:
        principal, read_only = record.principal, record.read_only
    elif caller is not None:
        principal, read_only = caller.principal, caller.readonly
    else:
        return request
    return msgspec.structs.replace(request, principal=principal, read_only=read_only)
