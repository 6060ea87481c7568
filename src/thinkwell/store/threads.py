"""A thread that runs one piece of blocking work after another, for one connection.

Owned here: the thread. Two pieces never overlap, so a connection that is only used from one
worker needs no lock. Work that has started always runs to its end: a cancelled caller waits for
it and then sees its cancellation, so nobody reuses a connection that is still busy.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class WorkerThread:
    """Runs blocking work in one thread of its own, started with the first piece."""

    def __init__(self, name: str) -> None:
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)

    async def run(self, work: Callable[[], T]) -> T:
        """Run `work` in the thread and wait until it is over, also when cancelled meanwhile."""
        job = self._executor.submit(work)
        future = asyncio.wrap_future(job)
        cancelled: asyncio.CancelledError | None = None
        while not future.done():
            try:
                await asyncio.wait([future])
            except asyncio.CancelledError as error:
                cancelled = error
                job.cancel()  # works only while the job still waits for its thread
        if cancelled is None:
            return future.result()
        if not future.cancelled():
            future.exception()  # seen: the caller hears of the cancellation instead
        raise cancelled

    def stop(self) -> None:
        """End the thread once its work is done. Does not wait."""
        self._executor.shutdown(wait=False)
