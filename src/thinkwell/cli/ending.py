"""The end of a serving process: within its time, whatever still runs (DESIGN §8.16).

Three things could keep a process that was told to stop: tasks that ignore their cancel (asyncio
waits for them), threads that never return (the interpreter waits for them), and an event loop that
is blocked. The first are left behind, the second end with the process, and for the last there is a
thread that looks at the clock. All that is durable is in the store: no worse than a crash.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from thinkwell.core.tasks import CLOSING, forsake

log = logging.getLogger("thinkwell.serve")

OVERDUE = 1
"""The status of a process that did not end by itself in time."""


class UnjoinedThreads(ThreadPoolExecutor):
    """The threads of `asyncio.to_thread`; closing the loop does not wait for them."""

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002
        """End them, without waiting."""
        super().shutdown(wait=False, cancel_futures=True)


class Ending:
    """What is left to do at the end."""

    def __init__(self, over: threading.Event, known: set[threading.Thread]) -> None:
        self._over = over
        self._known = known

    def leave_threads(self) -> None:
        """End the process now if a thread would keep it from ending."""
        self._over.set()
        left = [t for t in threading.enumerate() if not t.daemon and t not in self._known]
        if left:
            names = ", ".join(thread.name for thread in left)
            log.warning("threads are left behind: %s", names, extra={"action": "stop"})
            _exit(0)


@contextmanager
def ending(seconds: float, signalled: threading.Event) -> Generator[Ending]:
    """Inside, a process that has not ended `seconds` after `signalled` is ended."""
    over = threading.Event()
    arguments = (seconds, signalled, over)
    threading.Thread(target=_watch, args=arguments, name="deadline", daemon=True).start()
    try:
        yield Ending(over, set(threading.enumerate()))
    finally:
        over.set()
        signalled.set()  # the thread may go


def _watch(seconds: float, signalled: threading.Event, over: threading.Event) -> None:
    signalled.wait()
    if not over.wait(seconds):
        log.error(
            "the process did not end within %g s and is ended now; unfinished turns go on "
            "at its next start",
            seconds,
            extra={"action": "stop"},
        )
        _exit(OVERDUE)


async def leave_tasks() -> None:
    """Cancel what still runs in this loop; hide what ignores that from whoever closes the loop."""
    current = asyncio.current_task()
    tasks: list[asyncio.Task[Any]] = [task for task in asyncio.all_tasks() if task is not current]
    for task in tasks:
        task.cancel()
    if tasks:
        _, late = await asyncio.wait(tasks, timeout=CLOSING / 4)
        for task in late:
            log.warning("%s is left behind", task.get_name(), extra={"action": "stop"})
            forsake(task)


def _exit(status: int) -> None:
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
