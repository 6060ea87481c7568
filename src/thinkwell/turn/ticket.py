"""A turn on its way through the queue: its row, the means to stop it, and whoever waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from thinkwell.core.signal import AbortController
from thinkwell.journal.turn_log import TurnLog
from thinkwell.journal.turns import TurnRecord
from thinkwell.messages.message import UIMessage
from thinkwell.turn.ending import TurnResult

InputFunction: TypeAlias = Callable[
    [list[UIMessage]], "Sequence[UIMessage] | Awaitable[Sequence[UIMessage]]"
]
"""Makes a turn's input from the transcript, inside the slot.

Contract: called once; may raise (the turn fails).
"""


class Ticket:
    """One place in the queue."""

    __slots__ = ("_log", "_on_log", "controller", "input_function", "record", "result")

    def __init__(self, record: TurnRecord, input_function: InputFunction | None = None) -> None:
        self.record = record
        self.input_function = input_function
        self.controller = AbortController()
        self.result: asyncio.Future[TurnResult] = asyncio.get_running_loop().create_future()
        self._log: TurnLog | None = None
        self._on_log: Callable[[TurnLog], object] | None = None
        if record.cancel_requested is not None:
            self.controller.abort(record.cancel_requested)

    def on_log(self, listener: Callable[[TurnLog], object]) -> None:
        """Call `listener` once the turn has a journal to follow."""
        self._on_log = listener
        if self._log is not None:
            listener(self._log)

    def log_started(self, log: TurnLog) -> None:
        """The turn streams into `log` from now on."""
        self._log = log
        if self._on_log is not None:
            self._on_log(log)

    def written_from(self, start: int) -> Sequence[str]:
        """The durable chunks from `start` on."""
        return () if self._log is None else self._log.bodies[start : self._log.written]
