"""That something has changed, told to whoever listens or waits.

It does not say what: listeners look for themselves. Nothing is kept but a count, so that a waiter
that looked before a change cannot miss it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from thinkwell.core.signal import Disposer

log = logging.getLogger("thinkwell.agent")


class Changes:
    """A counter that can be listened to and waited for."""

    def __init__(self) -> None:
        self.count = 0
        """How often it was told."""
        self._listeners: dict[object, Callable[[], object]] = {}

    def tell(self) -> None:
        """Something has changed. A listener that raises is logged and kept."""
        self.count += 1
        for listener in tuple(self._listeners.values()):
            try:
                listener()
            except BaseException:  # one listener's bug must not keep the others from hearing
                log.exception("a listener to changes failed", extra={"action": "changes"})

    def subscribe(self, listener: Callable[[], object]) -> Disposer:
        """Hear of every later change. Returns an idempotent disposer."""
        token = object()
        self._listeners[token] = listener
        return lambda: self._listeners.pop(token, None) and None

    async def wait_beyond(self, count: int) -> None:
        """Until it was told more than `count` times."""
        news = asyncio.Event()
        dispose = self.subscribe(news.set)
        try:
            if self.count <= count:
                await news.wait()
        finally:
            dispose()
