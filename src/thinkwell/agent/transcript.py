"""What every client should show, encoded: the active path, then accepted inputs (DESIGN §8.1)."""

from __future__ import annotations

from collections.abc import Iterable

from thinkwell.core import json
from thinkwell.live.watchers import Transcript
from thinkwell.messages.visible import visible_text
from thinkwell.session.session import Session
from thinkwell.turn.running import RunningTurn
from thinkwell.turn.ticket import Ticket


async def encoded_transcript(
    session: Session, line: Iterable[Ticket], growing: RunningTurn | None = None
) -> Transcript:
    """The stored messages, the answer that grows if one is given, and what waits in `line`."""
    stored = await session.get_stored_history()
    shown = {message.id: message.text for message in stored}
    if growing is not None and growing.fold.message["parts"]:
        shown[growing.message_id] = json.dumps(growing.fold.message)
    for ticket in line:
        for message in ticket.record.input:
            if message["id"] not in shown:
                shown[message["id"]] = json.dumps(message)
    last = next(reversed(shown), None)
    return Transcript([visible_text(text) for text in shown.values()], last)
