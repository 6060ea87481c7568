"""Background tasks that somebody owns.

A bare `asyncio.create_task` may be collected while it runs, and its exception goes nowhere.
`TaskOwner` keeps a reference, reports a failure once, and can be closed: cancelled and awaited, but
not for ever. What ignores a cancel is left behind: nobody waits for it any more. Long work without
a task of its own goes on `in_pieces`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
from contextlib import suppress
from contextvars import Context
from types import CoroutineType, coroutine
from typing import Any, TypeAlias, TypeVar, cast

T = TypeVar("T")
log = logging.getLogger("thinkwell.tasks")

FIELDS = {"action": "left_behind"}
CLOSING = 2.0
"""Seconds that closing waits for tasks that were cancelled."""
UNWIND = 0.5
"""Seconds that a cancelled task has at least to run its `finally` blocks and end."""


# asyncio itself keeps only weak references to tasks; these must live until they end.
_forsaken: set[asyncio.Task[Any]] = set()


def is_cancelled() -> bool:
    """Whether the current task was really asked to stop.

    A `CancelledError` that comes out of a tool or hook while this is False is just its error.
    """
    try:
        task = asyncio.current_task()
    except RuntimeError:  # a thread without a loop
        return False
    return task is not None and task.cancelling() > 0


async def run_to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` to its end even if the caller is cancelled meanwhile.

    The caller sees its cancellation afterwards, so nobody goes on beside half-done work.
    """
    return await wait_to_the_end(asyncio.get_running_loop().create_task(work))


async def wait_to_the_end(outcome: asyncio.Future[T]) -> T:
    """The same for what runs already."""
    if outcome.done():
        return outcome.result()
    try:
        return await asyncio.shield(outcome)
    except asyncio.CancelledError:
        while not outcome.done():
            with suppress(asyncio.CancelledError):  # once more: it is raised below
                await asyncio.wait([outcome])
        if not outcome.cancelled():
            outcome.exception()  # seen: the caller hears of the cancellation instead
        raise


def begin(work: Coroutine[Any, Any, T], context: Context) -> asyncio.Future[T]:
    """Run `work` here and now; a task is made only if it has to wait, and only for the rest.

    Not for code of the app, which may ask for the current task: until `work` has to wait, that is
    the caller's.
    """
    loop = asyncio.get_running_loop()
    try:
        waits_for = context.run(work.send, None)
    except StopIteration as end:
        done: asyncio.Future[T] = loop.create_future()
        done.set_result(end.value)
        return done
    except Exception as error:  # noqa: BLE001 - whoever waits for it hears of it
        done = loop.create_future()
        done.set_exception(error)
        return done
    return loop.create_task(_rest(work, waits_for), context=context)


async def _rest(work: Coroutine[Any, Any, T], waits_for: Any) -> T:
    return await go_on(work, waits_for)


@coroutine
def run_in_context(context: Context, work: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
    """`await work` inside the current task, with the context variables of another one."""
    try:
        waits_for = context.run(work.send, None)
        while True:
            try:
                got = yield waits_for
            except BaseException as error:  # noqa: BLE001 - it is for the work
                waits_for = context.run(work.throw, error)
            else:
                waits_for = context.run(work.send, got)
    except StopIteration as end:
        return end.value


async def within(limit: asyncio.Timeout, work: Awaitable[T]) -> T:
    """`await work` within a limit that costs nothing as long as it does not have to wait."""
    if not isinstance(work, CoroutineType):
        async with limit:
            return await work
    running = cast("Coroutine[Any, Any, T]", work)
    try:
        waits_for = running.send(None)
    except StopIteration as end:
        return end.value
    async with limit:
        return await go_on(running, waits_for)


@coroutine
def go_on(work: Coroutine[Any, Any, T], waits_for: Any) -> Generator[Any, Any, T]:
    """`await work`, which has begun and waits for something."""
    try:
        while True:
            try:
                got = yield waits_for
            except BaseException as error:  # noqa: BLE001 - it is for the work
                waits_for = work.throw(error)
            else:
                waits_for = work.send(got)
    except StopIteration as end:
        return end.value


async def run_together(
    *works: Coroutine[Any, Any, None], name: str = "", owner: TaskOwner | None = None
) -> None:
    """Run all of `works` beside each other; if one fails, stop the others and raise its error.

    If the `owner` closes, they keep nobody waiting.

    Not a `TaskGroup`: before Python 3.13 that leaves its own task marked as cancelled when a child
    fails, and `is_cancelled` would be wrong from then on.
    """
    loop = asyncio.get_running_loop()
    tasks = [loop.create_task(work, name=name or None) for work in works]
    if owner is not None:
        for task in tasks:
            owner.adopt(task)
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        # `cancel` is False for a task that has ended: only those have something to say below.
        stopped = [task for task in tasks if task.cancel()]
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in tasks:
        if task not in stopped:
            task.result()


class LeftBehindError(Exception):
    """Work was cancelled and goes on all the same. Whoever catches it owns `task` from then on."""

    def __init__(self, task: asyncio.Task[Any]) -> None:
        super().__init__(f"{task.get_name()} ignores that it was cancelled")
        self.task = task


class StoppedError(Exception):
    """Work ended because it was cancelled, as it should."""


class CutOffError(asyncio.CancelledError):
    """A request was cancelled while it waited. `said` is for its sender, if the server stops."""

    def __init__(self, said: Mapping[str, Any]) -> None:
        super().__init__("a request was cut off")
        self.said = said


async def run_apart(
    work: Coroutine[Any, Any, T],
    *,
    name: str,
    stop: asyncio.Future[Any] | None = None,
    limit: float | None = None,
    grace: float = 0.0,
    owner: TaskOwner | None = None,
    left: Callable[[asyncio.Task[Any]], None] | None = None,
) -> T:
    """Run `work` in a task of its own that can be left behind.

    When `stop` is done, `grace` seconds later, or after `limit` seconds it is cancelled; it then
    raises `StoppedError`, or `LeftBehindError` if it has not ended after another `grace` seconds.
    A cancelled caller hears of nothing but that: work that then goes on is handed to `left`, else
    kept by the `owner`. If the owner closes, it keeps nobody waiting.
    """
    task = asyncio.get_running_loop().create_task(work, name=name)
    if owner is not None:
        owner.adopt(task)
        left = left or owner.keep
    try:
        waits = {task} if stop is None else {task, stop}
        await asyncio.wait(waits, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
        if stop is not None and stop.done() and not task.done() and grace > 0:
            await asyncio.wait({task}, timeout=grace)
        if not task.done() and not await _cancelled(task, grace):
            raise LeftBehindError(task)
    except asyncio.CancelledError:
        if not await _cancelled(task, grace):
            (left or _leave)(task)
        raise
    if task.cancelled():
        raise StoppedError
    return task.result()


async def _cancelled(task: asyncio.Task[Any], grace: float) -> bool:
    """Cancel a task and give it a moment; False if it goes on."""
    task.cancel()
    with suppress(asyncio.CancelledError):  # the caller raises it
        await asyncio.wait({task}, timeout=max(grace, UNWIND))
    return task.done()


def _leave(task: asyncio.Task[Any]) -> None:
    log.warning("%s did not end and is left behind", task.get_name(), extra=FIELDS)
    forsake(task)


def forsake(task: asyncio.Task[Any]) -> None:
    """Hide a task that will not end from `asyncio.run`, which would wait for it for ever.

    asyncio has no public way to do so. A Python without these two names waits, and complains at the
    end: a server still ends in time, because its stop has a limit of its own (`cli/ending.py`).
    """
    _forsaken.add(task)  # collected while it waits, it would run its `finally` blocks anywhere
    task.add_done_callback(_forsaken.discard)
    unregister = getattr(asyncio.tasks, "_unregister_task", None)
    if unregister is None:
        log.warning("this Python cannot leave %s behind", task.get_name(), extra=FIELDS)
        return
    unregister(task)
    with suppress(AttributeError):
        setattr(task, "_log_destroy_pending", False)  # noqa: B010


class TaskOwner:
    """Owns the tasks of one object and ends them with it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._tasks: set[asyncio.Task[Any]] = set()
        self._left: set[asyncio.Task[Any]] = set()
        self._adopted: set[asyncio.Task[Any]] = set()
        self.closed = False

    def spawn(
        self,
        work: Coroutine[Any, Any, T],
        *,
        name: str,
        context: Context | None = None,
        awaited: bool = False,
    ) -> asyncio.Task[T]:
        """Run `work` in the background until it ends or the owner closes.

        `context` is what its context variables say; by default what they say here. `awaited`:
        whoever waits for it hears that it failed, so it is not logged here.
        """
        loop = asyncio.get_running_loop()
        task = loop.create_task(work, name=f"{self._name}:{name}", context=context)
        self._tasks.add(task)
        task.add_done_callback(self._forget if awaited else self._finished)
        return task

    @property
    def busy(self) -> bool:
        """Whether anything runs."""
        return bool(self._tasks)

    @property
    def count(self) -> int:
        """How many tasks run."""
        return len(self._tasks)

    @property
    def left_behind(self) -> int:
        """How many tasks run on that nobody waits for, because they ignored a cancel."""
        return len(self._left)

    def keep(
        self, task: asyncio.Task[Any], ended: Callable[[asyncio.Task[Any]], None] | None = None
    ) -> None:
        """Own a task that was left behind, until it ends by itself.

        Its failure is logged here, unless `ended` takes over what comes of it.
        """
        self._left.add(task)
        self._tasks.add(task)
        task.add_done_callback(self._finished if ended is None else self._forget)
        if ended is not None:
            task.add_done_callback(ended)
        log.warning(
            "%s ignores that it was cancelled and is left behind", task.get_name(), extra=FIELDS
        )

    def adopt(self, task: asyncio.Task[Any]) -> None:
        """Know a task that another one here started and waits for.

        Closing leaves it to that one to cancel it, so that it is cancelled once; but if it has not
        ended then, it is left behind too.
        """
        self._adopted.add(task)
        task.add_done_callback(self._adopted.discard)

    async def close(self, within: float = CLOSING) -> None:
        """Cancel what still runs and wait until it is gone; leave what ignores that."""
        self.closed = True
        current = asyncio.current_task()
        tasks = [task for task in self._tasks if task is not current]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=within)
        # Adopted ones were cancelled by whoever waits for them; here they are only not waited for
        # again.
        for task in {*tasks, *self._adopted} - {current}:
            if not task.done():
                _leave(task)

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        self._left.discard(task)

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._forget(task)
        report_failure(task)


def report_failure(task: asyncio.Task[Any]) -> None:
    """Log how a task failed that nobody waits for; a callback of tasks."""
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("background task failed", exc_info=error, extra={"action": task.get_name()})


Pieces: TypeAlias = Generator[None, None, T]
"""Long work that yields wherever others may go first, so that one client cannot hold up all
agents. The work itself stays free of asyncio.
"""


async def in_pieces(work: Pieces[T]) -> T:
    """The result of the work; others go on meanwhile."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value
        await asyncio.sleep(0)
