"""Waiting for user code on a turn's path: hooks, overrides, predicates (DESIGN §8.16).

It runs in the turn's own task, because a task for each hook of each delta would cost more than the
delta. So it can be cancelled, by a stop or by its limit, but not left alone: when it ignores that,
the guard is told that the whole attempt is lost, and whoever waits for the attempt goes on without
it. An attempt that is lost never gets past the code it is stuck in: leaving it raises
`CancelledError`, so nothing more is written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import ContextVar
from types import CoroutineType, TracebackType
from typing import Any, cast

import msgspec

from thinkwell.core.errors import AbortTurn
from thinkwell.core.signal import AbortSignal
from thinkwell.core.tasks import UNWIND, go_on

Lost = Callable[[str, float | None], None]
"""Told what ignores its cancel, and the limit it ran over, None if it was stopped."""


class Guard(msgspec.Struct, frozen=True, eq=False):
    """What holds for user code inside one attempt of a turn."""

    signal: AbortSignal
    limit: Callable[[], float | None]
    grace: Callable[[], float]
    lost: Lost


current_guard: ContextVar[Guard | None] = ContextVar("current_guard", default=None)
"""The guard of the attempt inside which the current code runs, if any."""

_OUTSIDE = Guard(
    AbortSignal(), limit=lambda: None, grace=lambda: 0.0, lost=lambda _what, _limit: None
)


def visit(what: str, answer: Awaitable[Any], limit: float | None = None) -> Awaitable[Any]:
    """To await instead of what user code gave: at most `limit` seconds, else the guard's limit."""
    guard = current_guard.get()
    if guard is None:
        if limit is None:
            return answer
        guard = _OUTSIDE
    if type(answer) is CoroutineType:
        # No cast: that is a call, and this runs for every hook of every delta.
        return _drive(guard, what, answer, limit)  # pyright: ignore[reportUnknownArgumentType]
    return _wait(guard, what, answer, limit)


async def _wait(guard: Guard, what: str, answer: Awaitable[Any], limit: float | None) -> Any:
    with _Visit(guard, what, limit):
        return await answer


async def _drive(
    guard: Guard, what: str, work: Coroutine[Any, Any, Any], limit: float | None
) -> Any:
    """`await work`, watched only from the moment it really has to wait."""
    try:
        waits_for = work.send(None)
    except StopIteration as end:
        return end.value
    with _Visit(guard, what, limit):
        return await go_on(work, waits_for)


class _Visit:
    """The time between entering user code and leaving it."""

    __slots__ = (
        "_before",
        "_cancelled",
        "_dispose",
        "_guard",
        "_limit",
        "_lost",
        "_task",
        "_timer",
        "_what",
    )

    def __init__(self, guard: Guard, what: str, limit: float | None) -> None:
        self._guard = guard
        self._what = what
        self._limit = guard.limit() if limit is None else limit
        self._timer: asyncio.Handle | None = None
        self._cancelled = False
        self._lost = False

    def __enter__(self) -> None:
        self._task = cast("asyncio.Task[Any]", asyncio.current_task())
        self._before = self._task.cancelling()
        if self._limit is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._limit, self._cancel)
        self._dispose = self._guard.signal.add_listener(self._stop_soon)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._dispose()
        if self._timer is not None:
            self._timer.cancel()
        if self._lost:
            raise asyncio.CancelledError from error
        others = self._task.uncancel() if self._cancelled else self._task.cancelling()
        if others > self._before:
            raise asyncio.CancelledError from error  # somebody else's, which it may have swallowed
        if self._cancelled:
            signal = self._guard.signal
            if signal.aborted:
                raise AbortTurn(signal.reason or "aborted") from None
            raise TimeoutError(f"{self._what} took longer than {self._limit:g} seconds.") from error

    def _stop_soon(self, _reason: str) -> None:
        # A moment at least: whoever asks for the stop may be the code that is visited.
        if self._timer is not None:
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(max(self._guard.grace(), UNWIND), self._cancel)

    def _cancel(self) -> None:
        if not self._cancelled:
            self._cancelled = True
            self._task.cancel()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(max(self._guard.grace(), UNWIND), self._lose)

    def _lose(self) -> None:
        self._lost = True
        self._guard.lost(self._what, None if self._guard.signal.aborted else self._limit)
