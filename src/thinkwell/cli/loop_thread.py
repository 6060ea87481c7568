"""An event loop in a thread of its own, for programs whose main thread waits for the keyboard."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future, wait
from types import TracebackType
from typing import Any, Self, TypeVar

T = TypeVar("T")
LOOK_UP = 0.25
"""Seconds between two looks at signals."""


class LoopThread:
    """Runs while its block does."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run `work` in the loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` in the loop and wait for it; an interrupt of the wait ends the work, too."""
        running = self.start(work)
        try:
            return result_of(running)
        except BaseException:
            running.cancel()
            raise


def result_of(running: Future[T]) -> T:
    """Wait for a result and stay interruptible.

    A signal that comes right before the thread begins to wait does not end the wait, so it is done
    in pieces.
    """
    while not wait([running], timeout=LOOK_UP).done:
        pass
    return running.result()
