"""Ending a wait when somebody asks to stop.

`with interruptible(signal):` cancels whatever the current task waits for inside the block, and
turns that cancellation, and only that one, into `AbortTurn`. `grace` gives the awaited work that
many seconds to see the signal and end by itself first.
"""

from __future__ import annotations

import asyncio
from types import TracebackType

from thinkwell.core.errors import AbortTurn
from thinkwell.core.signal import AbortSignal, Disposer
from thinkwell.core.visits import current_guard

MODEL_CALL = "the model call"
IGNORED = 3.0
"""Seconds after which a wait that was cancelled and goes on is given up."""


class interruptible:  # noqa: N801 - reads as a statement
    """See the module docstring."""

    __slots__ = (
        "_cancelled",
        "_dispose",
        "_grace",
        "_guard",
        "_handle",
        "_lost",
        "_signal",
        "_task",
    )

    def __init__(self, signal: AbortSignal, *, grace: float = 0.0) -> None:
        self._signal = signal
        self._grace = grace
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
        if self._grace > 0:
            self._handle = loop.call_later(self._grace, self._cancel)
        else:
            self._handle = loop.call_soon(self._cancel)

    def _cancel(self) -> None:
        if self._task is not None:
            self._cancelled = True
            self._task.cancel()
            loop = asyncio.get_running_loop()
            self._handle = loop.call_later(IGNORED, self._lose)

    def _lose(self) -> None:
        """What is awaited ignores the cancel: whoever waits for the attempt goes on without it."""
        guard = self._guard
        if guard is not None:
            self._lost = True
            guard.lost(MODEL_CALL, None)
