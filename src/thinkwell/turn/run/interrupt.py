"""Ending a wait when somebody asks to stop.

`with interruptible(signal):` cancels whatever the current task waits for inside the block, and
turns that cancellation, and only that one, into `AbortTurn`. What ignores it as long as the guard
allows is given up, like a hook (`core/visits.py`).
"""

from __future__ import annotations

import asyncio
from types import TracebackType

from thinkwell.core.errors import AbortTurn
from thinkwell.core.signal import AbortSignal, Disposer
from thinkwell.core.tasks import UNWIND
from thinkwell.core.visits import Guard, current_guard

MODEL_CALL = "the model call"


class interruptible:  # noqa: N801 - reads as a statement
    """See the module docstring."""

    __slots__ = (
        "_cancelled",
        "_dispose",
        "_guard",
        "_handle",
        "_lost",
        "_signal",
        "_task",
    )

    def __init__(self, signal: AbortSignal) -> None:
        self._signal = signal
        self._handle: asyncio.Handle | None = None
        self._dispose: Disposer | None = None
        self._task: asyncio.Task[object] | None = None
        self._cancelled = False
        self._lost = False

    def __enter__(self) -> None:
        self._task = asyncio.current_task()
        self._guard = current_guard.get()
        self._dispose = self._signal.add_listener(self._stop_soon)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._dispose is not None:
            self._dispose()
        if self._handle is not None:
            self._handle.cancel()
        if not self._cancelled or self._task is None:
            return
        if self._lost:
            raise asyncio.CancelledError from error
        others = self._task.uncancel()
        if kind is asyncio.CancelledError and others == 0:
            raise AbortTurn(self._signal.reason or "aborted") from None

    def _stop_soon(self, _reason: str) -> None:
        # Through the loop, so that the task is suspended when it is cancelled even if it asked
        # for the stop itself (a hook that calls cancel_chat).
        loop = asyncio.get_running_loop()
        self._handle = loop.call_soon(self._cancel)

    def _cancel(self) -> None:
        if self._task is not None:
            self._cancelled = True
            self._task.cancel()
            if self._guard is not None:
                loop, moment = asyncio.get_running_loop(), max(self._guard.grace(), UNWIND)
                self._handle = loop.call_later(moment, self._lose, self._guard)

    def _lose(self, guard: Guard) -> None:
        """What is awaited ignores the cancel: whoever waits for the attempt goes on without it."""
        self._lost = True
        guard.lost(MODEL_CALL, None)
