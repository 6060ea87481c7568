"""The threads in which sync tools run: one pool for all agents of a host.

Daemon threads, so that one that never returns cannot keep the process from ending. An agent gets
only so many of them, the rest of its work waits in line, first come, first served among those that
may run. Whoever is cancelled while its work waits leaves the line; work that runs cannot be
stopped, so its caller stays until it is over, or is left behind together with it.

All state belongs to the event loop; a thread only takes work and hands back what came of it.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any

MOST_THREADS = 64
MOST_PER_OWNER = 8

OnQueued = Callable[[str, int], None]
"""Told the owner of work that has to wait, and how much waits."""


class _Job:
    __slots__ = ("over", "owner", "work")

    def __init__(self, owner: str, work: Callable[[], Any], over: asyncio.Future[_Result]) -> None:
        self.owner = owner
        self.work = work
        self.over = over


_Result = tuple[Any, BaseException | None]


class ThreadPool:
    """Runs blocking functions beside the event loop."""

    def __init__(
        self,
        size: int = MOST_THREADS,
        *,
        per_owner: int = MOST_PER_OWNER,
        on_queued: OnQueued | None = None,
    ) -> None:
        self._size = size
        self._per_owner = per_owner
        self._on_queued = on_queued
        self._line: deque[_Job] = deque()
        self._busy: Counter[str] = Counter()
        self._idle: list[SimpleQueue[_Job]] = []
        self._threads = 0

    @property
    def waiting(self) -> int:
        """How much work waits for a thread."""
        return len(self._line)

    @property
    def running(self) -> int:
        """How much work is in a thread now, what was left behind included."""
        return self._busy.total()

    async def run(self, owner: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run `function` in a thread, with the caller's context, and return what it returns."""
        loop = asyncio.get_running_loop()
        work = partial(copy_context().run, function, *arguments)
        job = _Job(owner, work, loop.create_future())
        self._line.append(job)
        self._start_what_may()
        if job in self._line and self._on_queued is not None:
            self._on_queued(owner, len(self._line))
        while not job.over.done():
            try:
                await asyncio.wait([job.over])
            except asyncio.CancelledError:
                if job in self._line:
                    self._line.remove(job)
                    raise
        value, error = job.over.result()
        if error is not None:
            raise error
        return value

    def _start_what_may(self) -> None:
        for job in list(self._line):
            if not self._idle and self._threads >= self._size:
                return
            if self._busy[job.owner] < self._per_owner:
                self._line.remove(job)
                self._busy[job.owner] += 1
                self._thread().put(job)

    def _thread(self) -> SimpleQueue[_Job]:
        if self._idle:
            return self._idle.pop()
        inbox: SimpleQueue[_Job] = SimpleQueue()
        self._threads += 1
        loop = asyncio.get_running_loop()
        Thread(target=self._work, args=(inbox, loop), name="thinkwell-tool", daemon=True).start()
        return inbox

    def _work(self, inbox: SimpleQueue[_Job], loop: asyncio.AbstractEventLoop) -> None:
        while True:
            job = inbox.get()
            result: _Result
            try:
                result = job.work(), None
            except BaseException as error:  # noqa: BLE001 - it is raised where somebody awaits it
                result = None, error
            with suppress(RuntimeError):  # the loop has ended: nobody waits any more
                loop.call_soon_threadsafe(self._ended, job, inbox, result)
            del job, result

    def _ended(self, job: _Job, inbox: SimpleQueue[_Job], result: _Result) -> None:
        self._busy[job.owner] -= 1
        if not self._busy[job.owner]:
            del self._busy[job.owner]
        self._idle.append(inbox)
        job.over.set_result(result)
        self._start_what_may()
