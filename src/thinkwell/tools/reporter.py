"""The `report` of a running tool call (spec/02 §9.2).

A coroutine awaits it; a handler in a worker thread just calls it and waits until the loop has taken
the value, so that fast threads cannot pile up values. Once the call has its result nothing more is
told: a chunk after the result would contradict it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any


class Reporter:
    """Hands preliminary values to `tell` until it is closed. Made on the loop of the call."""

    __slots__ = ("_loop", "_open", "_send", "_thread")

    def __init__(self, send: Callable[[Any], Coroutine[Any, Any, Any]]) -> None:
        self._send = send
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._open = True

    def __call__(self, value: Any) -> Awaitable[None]:
        """Tell `value`: await the result on the loop; in a thread it is done on return."""
        if threading.get_ident() == self._thread:
            return self._report(value)
        asyncio.run_coroutine_threadsafe(self._report(value), self._loop).result()
        return _Done()

    def close(self) -> None:
        """The call has ended; what still comes is dropped."""
        self._open = False

    async def _report(self, value: Any) -> None:
        if self._open:
            await self._send(value)


class _Done:
    """Nothing is left to wait for; may still be awaited."""

    def __await__(self) -> Generator[Any, None, None]:
        yield from ()
