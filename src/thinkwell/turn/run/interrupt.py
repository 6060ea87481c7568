"""Ending a wait when somebody asks to stop, also one that user code holds for ever (DESIGN §8.16).

`with interruptible(signal):` cancels whatever the current task waits for inside the block, and
turns that cancellation, and only that one, into `AbortTurn`. What ignores it as long as the guard
allows is given up, like a hook (`core/visits.py`).

`attend` waits for a whole attempt, which has a task of its own. When a hook, the model or another
function of the app ignores a stop or its limit, the attempt is lost: it is left behind in that
code, whatever else it ran is cancelled, and the turn ends without it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from types import TracebackType
from typing import Any

from thinkwell.core.errors import AbortTurn, ModelTimeoutError
from thinkwell.core.signal import AbortSignal, Disposer
from thinkwell.core.tasks import UNWIND, forsake
from thinkwell.core.turn_events import HookLeftBehind
from thinkwell.core.visits import Guard, current_guard
from thinkwell.turn.end.ending import Aborted, Ending, Failed
from thinkwell.turn.run.running import RunningTurn

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


async def attend(turn: RunningTurn, attempt: Coroutine[Any, Any, Ending]) -> Ending:
    """How the attempt ended, or how the turn ends without it."""
    loop = asyncio.get_running_loop()
    over: asyncio.Future[Ending | None] = loop.create_future()

    def lost(what: str, limit: float | None) -> None:
        if not over.done():
            turn.lost = True
            turn.parts.bus.emit(HookLeftBehind, **turn.event_fields(), hook=what)
            over.set_result(_without(turn, what, limit))

    def ended(_: object) -> None:
        if not over.done():
            over.set_result(None)

    guard = Guard(
        turn.signal,
        limit=lambda: turn.settings.limits.hook,
        grace=lambda: turn.settings.limits.grace,
        lost=lost,
    )
    token = current_guard.set(guard)
    task = loop.create_task(attempt, name=f"turn {turn.record.request_id}")
    current_guard.reset(token)
    turn.parts.tasks.adopt(task)
    task.add_done_callback(ended)
    try:
        ending = await over
    except asyncio.CancelledError:
        await _cancel(task)
        raise
    if ending is None:
        return await task
    task.cancel()  # what it runs beside the code it is stuck in
    turn.parts.tasks.keep(task)
    return ending


def _without(turn: RunningTurn, what: str, limit: float | None) -> Ending:
    if turn.signal.aborted or limit is None:
        return Aborted(turn.signal.reason or "aborted")
    text = f"{what} took longer than {limit:g} seconds and ignored that it was cancelled."
    if what == MODEL_CALL:
        return Failed("stream", ModelTimeoutError(text))
    return Failed("hook", TimeoutError(text))


async def _cancel(task: asyncio.Task[Ending]) -> None:
    """The host stops: the turn stays unsettled, its attempt is not waited for longer than this."""
    task.cancel()
    _, late = await asyncio.wait([task], timeout=2 * UNWIND)
    for stuck in late:
        forsake(stuck)
