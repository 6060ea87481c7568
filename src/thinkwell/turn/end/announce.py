"""Everybody hears that a turn has begun or ended: the clients, whoever follows it, whoever waits
for a change. Beginnings and ends are told here and nowhere else.
"""

from __future__ import annotations

from thinkwell.journal.turn_log import TurnLog
from thinkwell.journal.turns import TurnRecord
from thinkwell.turn.parts import Parts


def announce_start(parts: Parts, record: TurnRecord, log: TurnLog) -> None:
    """A turn streams into `log` from now on."""
    parts.audience.started(record, log)
    parts.changes.tell()
    handle = parts.line.find(record.request_id)
    if handle is not None:
        handle.log_started(log)


async def announce_end(
    parts: Parts, record: TurnRecord, error: str | None = None, answer: str | None = None
) -> None:
    """A turn has ended, and that is stored. `answer` is the stored text of its answer."""
    await parts.audience.ended(record, error, answer)
    handle = parts.line.find(record.request_id)
    if handle is not None:
        handle.tell_end(record)
    parts.changes.tell()
