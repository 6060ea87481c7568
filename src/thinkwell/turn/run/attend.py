"""Waiting for an attempt, which user code may hold for ever (DESIGN §8.16).

The attempt has a task of its own. When a hook, the model or another function of the app ignores a
stop or its limit, the attempt is lost: it is left behind in that code, whatever else it ran is
cancelled, and the turn ends without it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from thinkwell.core.errors import ModelTimeoutError
from thinkwell.core.tasks import UNWIND, forsake
from thinkwell.core.visits import Guard, current_guard
from thinkwell.turn.end.ending import Aborted, Ending, Failed
from thinkwell.turn.run.interrupt import MODEL_CALL
from thinkwell.turn.run.running import RunningTurn


async def attend(turn: RunningTurn, attempt: Coroutine[Any, Any, Ending]) -> Ending:
    """How the attempt ended, or how the turn ends without it."""
    loop = asyncio.get_running_loop()
    over: asyncio.Future[Ending | None] = loop.create_future()

    def lost(what: str, limit: float | None) -> None:
        if not over.done():
            turn.lost = True
            turn.parts.bus.emit("hook:left_behind", request_id=turn.record.request_id, hook=what)
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
