"""The handle of one turn: its row, the means to stop it, its durable chunks, its end, its result.

There is one from the moment a turn is accepted until whoever waits has its result, and everybody
who asks about the turn holds the same one. Readers hear of it in one way: `follow` calls them with
the events of the tail, in order and after the commit that covers each; `tail` is the same for
`async for`. A reader is called between two commits of the turn: it must not block or raise.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Protocol, TypeAlias

import msgspec

from thinkwell.core.clock import Clock
from thinkwell.core.signal import AbortController, Disposer
from thinkwell.journal.tail import Chunks, Ended, Started, TailEvent
from thinkwell.journal.turn_log import LogEvent, TurnLog, replied
from thinkwell.journal.turns import TurnRecord
from thinkwell.messages.message import UIMessage
from thinkwell.session.rows import Appended
from thinkwell.turn.ask.run_options import Options
from thinkwell.turn.end.ending import TurnOutcome, TurnResult
from thinkwell.turn.line.take_over import Ticket

InputFunction: TypeAlias = Callable[
    [list[UIMessage]], "Sequence[UIMessage] | Awaitable[Sequence[UIMessage]]"
]
"""Makes a turn's input from the transcript, inside the slot.

Contract: called once; may raise (the turn fails).
"""
TailReader: TypeAlias = Callable[[TailEvent], "Awaitable[None] | None"]
"""Hears the events of a turn.

Only for `Ended` may it return something to wait for: the slot is free when that is done.
"""


class WaitingTurn(Protocol):
    """A running turn, as far as one that it waits for knows it."""

    active: bool

    @property
    def record(self) -> TurnRecord:
        """Its row."""
        ...

    @property
    def handle(self) -> TurnHandle:
        """Its handle: who waits for this one in turn."""
        ...


class Start(msgspec.Struct, frozen=True):
    """What the transaction in which a turn started has written."""

    record: TurnRecord
    """Its row."""
    written: Sequence[Appended] = ()
    """What it added to the tree."""
    newest: int = 0
    """The newest message then: later ones were added while the turn ran."""


class TurnHandle:
    """One turn, from its acceptance to its result."""

    __slots__ = (
        "_at_end",
        "_log",
        "_over",
        "_readers",
        "_result",
        "awaited_in",
        "controller",
        "crossed",
        "depth",
        "due",
        "ended",
        "input_function",
        "options",
        "outcome",
        "record",
        "start",
        "take_over",
        "waits_for_model",
    )

    def __init__(
        self,
        record: TurnRecord,
        input_function: InputFunction | None = None,
        *,
        options: Options | None = None,
        depth: int = 0,
        crossed: bool = False,
        awaited_in: WaitingTurn | None = None,
        start: Start | None = None,
    ) -> None:
        self.record = record
        self.start = start
        """There if it has started in the transaction that accepted it."""
        self.options = options
        """What holds for this turn only; None until it is read from the row."""
        self.depth = depth
        """How many turns have started one another in their end hooks, up to this one."""
        self.crossed = crossed
        """Whether clients may show its question where it does not belong when it begins."""
        self.awaited_in = awaited_in
        """The turn that keeps its slot until this one has ended; it may be one of another agent."""
        self.due: float | None = None
        """When a debounced turn may begin, on the monotonic clock."""
        self.take_over: Ticket | None = None
        """Where it waits for its place, if it was found unsettled at a start of the host."""
        self.waits_for_model = False
        """Whether it stands before a model whose limits let nobody through now."""
        self.input_function = input_function
        self.controller = AbortController()
        self.ended: Ended | None = None
        """There once the end is stored and told to clients, before the hooks of the end."""
        self.outcome: TurnOutcome | None = None
        """What was stored; there when the result is, unless nothing ran."""
        self._log: TurnLog | None = None
        self._readers: dict[object, TailReader] = {}
        self._at_end: list[Callable[[], object]] = []
        self._result: TurnResult | Exception | None = None
        self._over: asyncio.Future[None] | None = None  # made when somebody waits
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

    @property
    def has_begun(self) -> bool:
        """Whether an attempt is stored: nobody may go ahead of it then."""
        return self.record.attempt > 0 or self.start is not None

    # Its tail

    @property
    def written(self) -> int:
        """How many chunks are durable."""
        return 0 if self._log is None else self._log.written

    def chunks(self, start: int = 0) -> Sequence[str]:
        """The durable chunks from `start` on, as JSON texts."""
        return () if self._log is None else self._log.bodies[start : self._log.written]

    def follow(self, reader: TailReader, start: int = 0) -> Disposer:
        """Call `reader` with what is there already, from the chunk `start` on, and with all that
        comes. Returns an idempotent disposer. Raises `ValueError` for a negative `start`.
        """
        if start < 0:  # Python would count from the end, and the events would bear wrong numbers
            raise ValueError(f"start must not be negative, not {start}")
        if self._log is not None:
            reader(Started(self.record, self._log.written))
            if start < self._log.written:
                places = replied(self._log.events[: self._log.events_written], start)
                reader(Chunks(start, self.chunks(start), places))
        if self.ended is not None:
            reader(self.ended)
            return lambda: None
        token = object()
        self._readers[token] = reader
        return lambda: self._readers.pop(token, None) and None

    def at_end(self, call: Callable[[], object]) -> None:
        """Have `call` called once when the tail ends, after the readers, which hear every chunk."""
        if self.ended is not None:
            call()
        else:
            self._at_end.append(call)

    async def tail(
        self, start: int = 0, *, silence: float | None = None
    ) -> AsyncGenerator[TailEvent]:
        """The same as an iteration, which ends after `Ended`.

        Chunks that wait for a slow reader come together. After `silence` seconds in which nothing
        happened there is one `Chunks` without any.
        """
        waiting: deque[TailEvent] = deque()
        news = asyncio.Event()

        def read(event: TailEvent) -> None:
            waiting.append(event)
            news.set()

        leave, told = self.follow(read, start), start
        try:
            while True:
                if not waiting:
                    await _news_or_silence(news, silence)
                    if not waiting:
                        news.clear()
                        yield Chunks(told)
                        continue
                event = _joined(waiting)
                if not waiting:
                    news.clear()
                if isinstance(event, Chunks):
                    told = event.upto
                yield event
                if isinstance(event, Ended):
                    return
        finally:
            leave()

    def begin(self, log: TurnLog) -> None:
        """The turn streams into `log` from now on."""
        log.told = self._committed
        self._log = log
        self.tell(Started(self.record, log.written))

    def tell(self, event: TailEvent) -> None:
        """Tell the readers of something that is stored."""
        for reader in tuple(self._readers.values()):
            reader(event)

    def _committed(self, first: int, bodies: Sequence[str], events: Sequence[LogEvent]) -> None:
        # The hot path of every delta: one struct, no task, no await.
        places = replied(events) if events else ()
        if bodies or places:
            self.tell(Chunks(first, bodies, places))

    async def end(self, ended: Ended) -> None:
        """The end is stored: the readers hear it one after another, the clients first."""
        self.ended = ended
        for reader in tuple(self._readers.values()):
            work = reader(ended)
            if work is not None:
                await work
        self._readers.clear()
        self._tell_end()

    def _tell_end(self) -> None:
        """Once: a turn that is released when the app stops may end after all."""
        calls, self._at_end = self._at_end, []
        for call in calls:
            call()

    # Its result

    @property
    def over(self) -> bool:
        """Whether there is a result, or none will come."""
        return self._result is not None

    def finish(self, result: TurnResult | Exception, outcome: TurnOutcome | None = None) -> None:
        """The hooks of the end are through: whoever waits goes on. The first result counts."""
        if self._result is not None:
            return
        self._result, self.outcome = result, outcome
        if self._over is not None:
            self._over.set_result(None)

    def release(self, error: Exception) -> None:
        """The app stops: nobody waits or reads on here, and the turn goes on at its next start."""
        if self.ended is None:
            self.tell(Ended(self.record, failure=error))
            self._tell_end()
        self.finish(error)

    async def until_over(self) -> None:
        """Wait for the result, whatever it is."""
        if self._result is None:
            if self._over is None:
                self._over = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._over)

    async def wait(self) -> TurnResult:
        """The result. Raises if the app stopped first, or the turn met a defect of ours."""
        await self.until_over()
        return self.result()

    def result(self) -> TurnResult:
        """The result of a turn that is over."""
        if self._result is None:
            raise RuntimeError("the turn is not over yet")
        if isinstance(self._result, Exception):
            raise self._result
        return self._result


async def _news_or_silence(news: asyncio.Event, silence: float | None) -> None:
    """Wait until something has happened, or nothing for so many seconds."""
    if silence is None:
        await news.wait()
        return
    # Not `asyncio.timeout`: whoever reads a stream waits for each of its pieces.
    timer = asyncio.get_running_loop().call_later(silence, news.set)
    try:
        await news.wait()
    finally:
        timer.cancel()


def _joined(waiting: deque[TailEvent]) -> TailEvent:
    """The next event; chunks that wait behind one another as one."""
    event = waiting.popleft()
    if not isinstance(event, Chunks):
        return event
    run = [event]
    while waiting:
        following = waiting.popleft()
        if not isinstance(following, Chunks):
            waiting.appendleft(following)
            break
        run.append(following)
    if len(run) == 1:
        return event
    bodies = [body for chunks in run for body in chunks.bodies]
    return Chunks(event.first, bodies, tuple(p for chunks in run for p in chunks.replied))
