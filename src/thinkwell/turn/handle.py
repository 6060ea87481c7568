"""A turn on its way through the queue: its row, the means to stop it, and whoever waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeAlias, TypeVar

from thinkwell.core.clock import Clock
from thinkwell.core.signal import AbortController, Disposer
from thinkwell.journal.turn_log import TurnLog
from thinkwell.journal.turns import TurnRecord
from thinkwell.messages.message import UIMessage
from thinkwell.tools.tool import Tool
from thinkwell.turn.end.ending import TurnOutcome, TurnResult

InputFunction: TypeAlias = Callable[
    [list[UIMessage]], "Sequence[UIMessage] | Awaitable[Sequence[UIMessage]]"
]
"""Makes a turn's input from the transcript, inside the slot.

Contract: called once; may raise (the turn fails).
"""
_ListenerT = TypeVar("_ListenerT")


class TurnHandle:
    """One place in the queue."""

    __slots__ = (
        "_log",
        "_on_end",
        "_on_log",
        "controller",
        "crossed",
        "depth",
        "due",
        "ended",
        "input_function",
        "outcome",
        "record",
        "result",
        "tools",
    )

    def __init__(
        self,
        record: TurnRecord,
        input_function: InputFunction | None = None,
        *,
        tools: Mapping[str, Tool] | None = None,
        depth: int = 0,
        crossed: bool = False,
    ) -> None:
        self.record = record
        self.tools = tools or {}
        """Tools of this turn only; they live as long as their caller."""
        self.depth = depth
        """How many turns have started one another in their end hooks, up to this one."""
        self.crossed = crossed
        """Whether clients may show its question where it does not belong when it begins."""
        self.due: float | None = None
        """When a debounced turn may begin, on the monotonic clock."""
        self.input_function = input_function
        self.controller = AbortController()
        self.result: asyncio.Future[TurnResult] = asyncio.get_running_loop().create_future()
        self.ended: TurnRecord | None = None
        """There once the end is stored and told to clients, before the hooks of the end."""
        self.outcome: TurnOutcome | None = None
        """What was stored; there when `result` is, unless nothing ran."""
        self._log: TurnLog | None = None
        self._on_log: dict[object, Callable[[TurnLog], object]] = {}
        self._on_end: dict[object, Callable[[], object]] = {}
        if record.cancel_requested is not None:
            self.controller.abort(record.cancel_requested)

    def pause(self, clock: Clock) -> float:
        """Seconds a debounced turn must still wait. The row's wall time counts once, at first:
        a clock that is set meanwhile neither delays the turn nor hurries it.
        """
        if self.record.not_before is None:
            return 0.0
        if self.due is None:
            self.due = clock.monotonic() + self.record.not_before - clock.now()
        return self.due - clock.monotonic()

    def on_log(self, listener: Callable[[TurnLog], object]) -> Disposer:
        """Call `listener` once the turn has a journal to follow. Returns an idempotent disposer."""
        if self._log is not None:
            listener(self._log)
        return _listen(self._on_log, listener)

    def on_end(self, listener: Callable[[], object]) -> Disposer:
        """Call `listener` at once when the end is told. Returns an idempotent disposer."""
        return _listen(self._on_end, listener)

    def log_started(self, log: TurnLog) -> None:
        """The turn streams into `log` from now on."""
        self._log = log
        for listener in tuple(self._on_log.values()):
            listener(log)

    def tell_end(self, record: TurnRecord) -> None:
        """The end is stored, and clients know it."""
        self.ended = record
        for listener in tuple(self._on_end.values()):
            listener()

    @property
    def started(self) -> bool:
        """Whether its input is stored and it has a journal."""
        return self._log is not None

    @property
    def length(self) -> int:
        """How many chunks it has, durable or not."""
        return 0 if self._log is None else len(self._log.bodies)

    def written_from(self, start: int) -> Sequence[str]:
        """The durable chunks from `start` on."""
        return () if self._log is None else self._log.bodies[start : self._log.written]


def _listen(listeners: dict[object, _ListenerT], listener: _ListenerT) -> Disposer:
    token = object()
    listeners[token] = listener

    def dispose() -> None:
        listeners.pop(token, None)

    return dispose
