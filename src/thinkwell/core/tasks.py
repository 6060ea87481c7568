"""Background tasks that somebody owns.

A bare `asyncio.create_task` may be collected while it runs, and its exception goes nowhere.
`TaskOwner` keeps a reference, reports a failure once, and can be closed: cancelled and awaited.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import suppress
from contextvars import Context
from typing import Any, TypeVar

T = TypeVar("T")


def is_cancelled() -> bool:
    """Whether the current task was really asked to stop.

    A `CancelledError` that comes out of a tool or hook while this is False is just its error.
    """
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def run_to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` to its end even if the caller is cancelled meanwhile.

    The caller sees its cancellation afterwards, so nobody goes on beside half-done work.
    """
    task = asyncio.get_running_loop().create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            with suppress(asyncio.CancelledError):  # once more: it is raised below
                await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # seen: the caller hears of the cancellation instead
        raise


async def run_together(*works: Coroutine[Any, Any, None]) -> None:
    """Run all of `works` beside each other; if one fails, stop the others and raise its error.

    Not a `TaskGroup`: before Python 3.13 that leaves its own task marked as cancelled when a child
    fails, and `is_cancelled` would be wrong from then on.
    """
    loop = asyncio.get_running_loop()
    tasks = [loop.create_task(work) for work in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        stopped = [task for task in tasks if task.cancel()]
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in tasks:
        if task not in stopped:
            task.result()


log = logging.getLogger("thinkwell.tasks")


class TaskOwner:
    """Owns the tasks of one object and ends them with it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._tasks: set[asyncio.Task[Any]] = set()

    def spawn(
        self, work: Coroutine[Any, Any, T], *, name: str, context: Context | None = None
    ) -> asyncio.Task[T]:
        """Run `work` in the background until it ends or the owner closes.

        `context` is what its context variables say; by default what they say here.
        """
        loop = asyncio.get_running_loop()
        task = loop.create_task(work, name=f"{self._name}:{name}", context=context)
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        return task

    @property
    def busy(self) -> bool:
        """Whether anything runs."""
        return bool(self._tasks)

    async def close(self) -> None:
        """Cancel what still runs and wait until it is gone."""
        current = asyncio.current_task()
        tasks = [task for task in self._tasks if task is not current]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("background task failed", exc_info=error, extra={"action": task.get_name()})
