"""Forged copies and answers of a client, told on the bus as `client:forged` (DESIGN §8.12).

Nothing is refused here: what only the server writes is not taken from a client in any case. The
event names who tried what, never what was said.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from thinkwell.agent.interactions import find_stored_call
from thinkwell.agent.turns import Turns
from thinkwell.core.principal import Principal
from thinkwell.messages.forged import Claim, claims_in, is_forged
from thinkwell.messages.message import Part, tool_parts

LOOKED_AT = 8
"""How many answers at the end of a client's list are looked at: more would cost every send."""


async def report_copies(turns: Turns, sent: Sequence[Any], principal: Principal | None) -> set[str]:
    """Report what the copies of answers in a client's list claim dishonestly; the calls' ids.

    Decisions are looked for in the last few, results only in the last: no other can wait.
    """
    forged: set[str] = set()
    copies = [message for message in sent if message["role"] == "assistant"][-LOOKED_AT:]
    for copy in copies:
        for call_id, claim in claims_in(copy):
            if claim == "result" and copy is not copies[-1]:
                continue
            if is_forged(claim, await _call(turns, copy["id"], call_id)):
                forged.add(call_id)
                report(turns, claim, principal, message_id=copy["id"], tool_call_id=call_id)
    return forged


def report(
    turns: Turns, claim: Claim, principal: Principal | None, *, message_id: str, tool_call_id: str
) -> None:
    """Say on the bus that a client forged something."""
    turns.parts.bus.emit(
        "client:forged",
        agent=turns.parts.owner.agent_id,
        principal=None if principal is None else principal.id,
        what=claim,
        message_id=message_id,
        tool_call_id=tool_call_id,
    )


async def _call(turns: Turns, message_id: str, call_id: str) -> Part | None:
    """The call as it grows or is stored: in that message, or under another id somewhere."""
    parts, running = turns.parts, turns.running
    growing = None if running is None or running.stored else running.fold.tool_call(call_id)
    if growing is not None:
        return growing
    message = await parts.session.get_message(message_id)
    mine = () if message is None else tool_parts(message)
    part = next((part for part in mine if part.get("toolCallId") == call_id), None)
    if part is not None:
        return part
    found = await find_stored_call(parts.store, parts, call_id)
    return None if found is None else found.part
