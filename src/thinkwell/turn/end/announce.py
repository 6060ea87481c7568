"""Everybody hears that a turn has begun, that a message has changed, or that it has ended.

What is told here is stored. Whoever wants to hear it reads the tail of the turn's handle: there is
no second way to be told.
"""

from __future__ import annotations

from thinkwell.journal.tail import Ended, Updated
from thinkwell.journal.turn_log import TurnLog
from thinkwell.journal.turns import TurnRecord
from thinkwell.messages.message import UIMessage
from thinkwell.turn.handle import TurnHandle


def announce_start(handle: TurnHandle, log: TurnLog) -> None:
    """The turn streams into `log` from now on."""
    handle.begin(log)


def announce_update(handle: TurnHandle, message: UIMessage) -> None:
    """A message of the turn has changed beside its stream."""
    handle.tell(Updated(message))


async def announce_end(
    handle: TurnHandle, record: TurnRecord, error: str | None = None, answer: str | None = None
) -> None:
    """The turn has ended. `error` is what clients read, `answer` the stored text of its answer.

    `record` is the row as it is told: for whoever saw something of a cleared turn, it was stopped.
    """
    await handle.end(Ended(record, error, answer))
