"""A stop that can be asked for, seen, waited for and listened to (spec/02 §1.7)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager

from thinkwell.core.errors import AbortTurn

log = logging.getLogger("thinkwell.signal")

Listener = Callable[[str], None]
Disposer = Callable[[], None]


class AbortSignal:
    """Handed to tools, hooks and models. Read it, wait for it, or add a listener."""

    __slots__ = ("_event", "_listeners", "_reason")

    def __init__(self) -> None:
        self._reason: str | None = None
        self._event: asyncio.Event | None = None
        self._listeners: dict[object, Listener] = {}

    @property
    def aborted(self) -> bool:
        """Whether somebody asked to stop."""
        return self._reason is not None

    @property
    def reason(self) -> str | None:
        """Why, or None while nobody asked."""
        return self._reason

    def throw_if_aborted(self) -> None:
        """Unwind the turn if somebody asked to stop."""
        if self._reason is not None:
            raise AbortTurn(self._reason)

    def add_listener(self, listener: Listener) -> Disposer:
        """Call `listener(reason)` once on abort, at once if that has happened.

        Returns a disposer.
        """
        if self._reason is not None:
            listener(self._reason)
            return lambda: None
        token = object()
        self._listeners[token] = listener
        return lambda: self._listeners.pop(token, None) and None

    async def wait(self) -> str:
        """Wait for the abort and return its reason."""
        if self._event is None:
            self._event = asyncio.Event()
            if self.aborted:
                self._event.set()
        await self._event.wait()
        return self._reason or ""

    @contextmanager
    def future(self) -> Generator[asyncio.Future[str]]:
        """The abort as a future that holds its reason."""
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        dispose = self.add_listener(future.set_result)
        try:
            yield future
        finally:
            dispose()

    def _fire(self, reason: str) -> None:
        if self._reason is not None:
            return
        self._reason = reason
        if self._event is not None:
            self._event.set()
        listeners, self._listeners = self._listeners, {}
        for listener in listeners.values():
            try:
                listener(reason)
            except BaseException:  # one listener's bug must not keep the others from stopping
                log.exception("a listener of an abort signal failed", extra={"action": "abort"})


class AbortController:
    """The side that may stop. `signal` is what the others get."""

    __slots__ = ("signal",)

    def __init__(self) -> None:
        self.signal = AbortSignal()

    def abort(self, reason: str = "aborted") -> None:
        """Ask to stop. The first reason stays."""
        self.signal._fire(reason)  # pyright: ignore[reportPrivateUsage] - one idea, two faces

    def follow(self, other: AbortSignal | None) -> Disposer:
        """Abort when `other` does. Returns a detacher that must run when the work ends."""
        if other is None:
            return lambda: None
        return other.add_listener(self.abort)
