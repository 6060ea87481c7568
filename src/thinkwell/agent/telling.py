"""What the turns of an agent tell: to the clients, to whoever follows a turn (`TurnOutput`)."""

from __future__ import annotations

from thinkwell.agent.changes import Changes
from thinkwell.journal.turn_log import TurnLog
from thinkwell.journal.turns import TurnRecord
from thinkwell.live.live import Live
from thinkwell.messages.message import UIMessage
from thinkwell.turn.queue import TurnQueue


class Telling:
    """The `TurnOutput` of one agent's turns."""

    def __init__(self, live: Live, queue: TurnQueue, changes: Changes) -> None:
        self._live = live
        self._queue = queue
        self._changes = changes

    def started(self, record: TurnRecord, log: TurnLog) -> None:
        """See `TurnOutput`."""
        self._live.started(record, log)
        self._changes.tell()
        ticket = self._queue.find(record.request_id)
        if ticket is not None:
            ticket.log_started(log)

    async def show_asker(self, record: TurnRecord) -> None:
        """See `TurnOutput`."""
        await self._live.show_asker(record.request_id)

    def recovering(self, record: TurnRecord) -> None:
        """See `TurnOutput`."""
        self._live.recovering(record.request_id)

    def updated(self, message: UIMessage) -> None:
        """See `TurnOutput`."""
        self._live.updated(message)

    def steering_waits(self) -> bool:
        """See `TurnOutput`."""
        return any(ticket.record.steer for ticket in self._queue.tickets()[1:])

    async def transcript_changed(self) -> None:
        """See `TurnOutput`."""
        await self._live.send_transcript()

    async def ended(self, record: TurnRecord, error: str | None, answer: str | None = None) -> None:
        """See `TurnOutput`."""
        await self._live.ended(record, error, answer)
        ticket = self._queue.find(record.request_id)
        if ticket is not None:
            ticket.tell_end(record)
        self._changes.tell()
