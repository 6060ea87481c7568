"""Forged copies and answers of a client, told on the bus as `client:forged` (DESIGN §8.12).

Nothing is refused here: what only the server writes is not taken from a client in any case. The
event names who tried what, never what was said.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, cast

import msgspec

from thinkwell.core.events import ClientForged
from thinkwell.core.principal import Principal
from thinkwell.messages.forged import Claim, claims_in, is_forged
from thinkwell.messages.message import Part, UIMessage, tool_parts
from thinkwell.turn.ask.answers import recent_messages
from thinkwell.turn.turns import Turns

LOOKED_AT = 8
"""How many answers at the end of a client's list are looked at: more would cost every send."""
MOST_CLAIMS = 8
"""How many claims of one request are looked into: a forger can make as many as fit a frame."""


class Claimed(msgspec.Struct, frozen=True):
    """What a client's copy of a reply says about one call."""

    message_id: str
    tool_call_id: str
    claim: Claim


async def report_copies(turns: Turns, sent: Sequence[Any], principal: Principal | None) -> set[str]:
    """Report what the copies of replies in a client's list claim dishonestly; the calls' ids.

    Decisions are looked for in the last few, results only in the last: no other can wait.
    """
    claims = list(islice(_claims(sent), MOST_CLAIMS))
    calls = await _calls_of(turns, claims) if claims else {}
    forged = [c for c in claims if is_forged(c.claim, calls.get(c.tool_call_id))]
    for one in forged:
        ids = {"message_id": one.message_id, "tool_call_id": one.tool_call_id}
        report(turns, one.claim, principal, **ids)
    return {one.tool_call_id for one in forged}


def report(
    turns: Turns, claim: Claim, principal: Principal | None, *, message_id: str, tool_call_id: str
) -> None:
    """Say on the bus that a client forged something."""
    turns.parts.bus.emit(
        ClientForged,
        agent=turns.parts.owner.agent_id,
        principal=None if principal is None else principal.id,
        what=claim,
        message_id=message_id,
        tool_call_id=tool_call_id,
    )


def _claims(sent: Sequence[Any]) -> Iterator[Claimed]:
    """Newest reply first, each call once."""
    objects = [cast("dict[str, Any]", m) for m in sent if isinstance(m, dict)]
    copies = [m for m in objects if m.get("role") == "assistant"][-LOOKED_AT:]
    seen: set[str] = set()
    for copy in reversed(copies):
        for call_id, claim in claims_in(copy):
            if call_id in seen or (claim == "result" and copy is not copies[-1]):
                continue
            seen.add(call_id)
            yield Claimed(str(copy.get("id")), call_id, claim)


async def _calls_of(turns: Turns, claims: Sequence[Claimed]) -> dict[str, Part]:
    """The calls as they grow or are stored: in the message that was copied, or somewhere recent.

    The recent history is read once, whatever is claimed.
    """
    session, running = turns.parts.session, turns.running
    calls: dict[str, Part] = {}
    copied = {claim.message_id for claim in claims}
    known = [message for id_ in copied if (message := await session.get_message(id_)) is not None]
    calls.update(_by_id(known))
    if any(claim.tool_call_id not in calls for claim in claims):
        calls = {**_by_id(await recent_messages(turns.parts.store, turns.parts)), **calls}
    if running is not None and not running.reply.stored:
        calls.update(_by_id([running.reply.fold.message]))
    return calls


def _by_id(messages: Sequence[UIMessage]) -> dict[str, Part]:
    return {part["toolCallId"]: part for message in messages for part in tool_parts(message)}
