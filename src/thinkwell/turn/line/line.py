"""One slot per agent: turns run one at a time, in the order they were accepted.

A turn belongs to a generation. A clear moves the generation on; what waits from an older one is
stale and is handed to `stale` instead of `run`. The slot is free when `run` returns, whatever it
did.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from contextvars import Context
from typing import Literal, TypeAlias

from thinkwell.core.tasks import TaskOwner
from thinkwell.turn.handle import TurnHandle
from thinkwell.turn.line.known_rows import KnownRows
from thinkwell.turn.line.suspects import Suspects

log = logging.getLogger("thinkwell.turn")

Runner = Callable[[TurnHandle], Awaitable[None]]
"""Contract: does not raise; the slot is held while it runs."""


Hold: TypeAlias = Literal["paused", "draining", "erasing"]
"""An operator has paused the agent; its process stops; a person is being erased from it."""


class TurnLine:
    """The waiting line of one agent."""

    def __init__(
        self,
        *,
        run: Runner,
        stale: Runner,
        tasks: TaskOwner,
        generation: int,
        pause: Callable[[TurnHandle], float] = lambda _: 0.0,
    ) -> None:
        self._pause = pause
        self._moved = asyncio.Event()
        self._run = run
        self._stale = stale
        self._tasks = tasks
        self._waiting: deque[TurnHandle] = deque()
        self._worker: asyncio.Task[None] | None = None
        self._left = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self.generation = generation
        self.suspects = Suspects()
        """Which turns must not run beside one another."""
        self.held_by: set[Hold] = set()
        """Why no turn may begin. Each reason ends by itself, and leaves the others."""
        self.active: TurnHandle | None = None
        """The turn that holds the slot."""
        self._entering = 0
        self.rows = KnownRows()
        """What the rows of these turns say."""

    @contextmanager
    def entering(self) -> Generator[None]:
        """Around what may end with a place in the line, or moves the generation on."""
        self._entering += 1
        try:
            yield
        finally:
            self._entering -= 1

    def is_free(self) -> bool:
        """Whether whoever is entering has the slot next: nobody runs, waits or enters beside it."""
        alone = self._entering <= 1 and not self.suspects.keys and not self.held_by
        return alone and self.active is None and not self._waiting

    def put(self, handle: TurnHandle) -> None:
        """Take a place at the end of the line; to steer, before all that have not begun.

        It moves with the next `wake`.
        """
        place = len(self._waiting)
        if handle.record.steer:
            ahead = (t.record.steer or t.has_begun for t in self._waiting)
            place = next((i for i, stays in enumerate(ahead) if not stays), place)
        self._waiting.insert(place, handle)
        self._idle.clear()

    def remove(self, handle: TurnHandle) -> None:
        """Leave the line without a turn."""
        if handle in self._waiting:
            self._waiting.remove(handle)
            self._moved.set()
            self._left.set()

    def wake(self) -> None:
        """Run what waits, unless that is going on already."""
        self._moved.set()
        if self._worker is None and self._waiting:
            # A context of its own: whoever comes first may be inside a turn of another agent.
            self._worker = self._tasks.spawn(self._work(), name="turns", context=Context())

    def handles(self) -> list[TurnHandle]:
        """The turn that runs and those that wait, in order."""
        active = [] if self.active is None else [self.active]
        return [*active, *self._waiting]

    def find(self, request_id: str) -> TurnHandle | None:
        """The running or waiting turn with that id."""
        return next((t for t in self.handles() if t.record.request_id == request_id), None)

    def steering_waits(self) -> bool:
        """Whether an input waits that the running turn must make room for (DESIGN §8.8)."""
        return any(handle.record.steer for handle in self._waiting)

    async def wait_until_still(self) -> None:
        """Until no turn runs, and none will begin by itself."""
        while self._runs() or (self._waiting and not self.held_by):
            self._left.clear()
            await self._left.wait()

    async def wait_until_idle(self) -> None:
        """Until no turn runs and none waits."""
        await self._idle.wait()

    def stands_still(self) -> bool:
        """Whether nothing runs, and nothing will begin by itself."""
        return bool(self.held_by) and not self._runs()

    def look_again(self) -> None:
        """The turn that runs has begun to wait for its model, or does no longer."""
        self._left.set()

    def _runs(self) -> bool:
        """Whether a turn gets on. One that waits for its model's limits has not called it: nothing
        is lost if it waits again after the next start.
        """
        return self.active is not None and not self.active.waits_for_model

    @property
    def parked(self) -> bool:
        """Whether the worker only waits until nothing holds the line any more."""
        return bool(self.held_by) and self.active is None and self._worker is not None

    async def _must_wait(self, handle: TurnHandle) -> bool:
        """Let a debounced turn wait for its time, a suspect for the one that runs, one that was
        found at a start for its place, or any of them for a change in the line.
        """
        if self.held_by and self._wanted(handle):
            self._moved.clear()
            await self._moved.wait()
            return True
        pause = self._pause(handle)
        if self.suspects.keys and not handle.controller.signal.aborted:
            pause = max(pause, self.suspects.pause_before(handle.record, self.wake))
        if pause <= 0:
            return handle.take_over is not None and await self._waits_for_place(handle)
        self._moved.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await self._moved.wait()
        return True

    async def _waits_for_place(self, handle: TurnHandle) -> bool:
        """Whether a turn that was found at a start has none yet. Looked for again after a wait:
        another suspect may have begun meanwhile.
        """
        ticket = handle.take_over
        if ticket is None or ticket.holds or not self._wanted(handle):
            return False
        self._moved.clear()
        await ticket.enter(self._moved, hurry=self._hurries(handle))
        return True

    def _wanted(self, handle: TurnHandle) -> bool:
        """Whether it is to run: one that was stopped or cleared away only has to end."""
        stopped = handle.controller.signal.aborted
        return not stopped and handle.record.generation == self.generation

    def _hurries(self, handle: TurnHandle) -> bool:
        """Whether somebody waits behind a turn that was found at a start."""
        return any(other.take_over is None for other in self._waiting if other is not handle)

    async def _take(self, handle: TurnHandle) -> None:
        work = self._run if handle.record.generation == self.generation else self._stale
        if handle.take_over is not None:
            try:
                await self._take_in_order(work, handle)
            finally:
                handle.take_over.ended()
            return
        await self._take_in_order(work, handle)

    async def _take_in_order(self, work: Runner, handle: TurnHandle) -> None:
        if not self.suspects.keys:  # as good as always
            await work(handle)
            return
        with self.suspects.running(handle.record):
            await work(handle)

    async def _work(self) -> None:
        try:
            while self._waiting:
                if await self._must_wait(self._waiting[0]):
                    continue
                handle = self.active = self._waiting.popleft()
                try:
                    await self._take(handle)
                except Exception:  # against the contract; those behind it must not wait for ever
                    log.exception("a turn left the line with an error", extra={"action": "queue"})
                finally:
                    self.active = None
                    self._left.set()
        finally:
            self._worker = None
            self._left.set()
            if not self._waiting:
                self._idle.set()
