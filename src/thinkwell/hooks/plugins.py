"""Plugins: a function that is given an agent and adds what it wants to it (spec/02 §12.15).

Hooks and scopes that it registers while it runs are remembered, also those of tasks it starts; what
others register at the same time is not. So a plugin that fails leaves nothing behind, and one that
returns no cleanup can be removed all the same.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from contextvars import ContextVar
from inspect import isawaitable
from typing import Any, TypeVar, cast

from thinkwell.core.signal import Disposer
from thinkwell.core.user_code import call_user

A = TypeVar("A")

_registered: ContextVar[list[Disposer] | None] = ContextVar("registered", default=None)


class Cleanup:
    """Removes a plugin: at once what it registered, then its own cleanup, which may be async.

    Calling it again does nothing. Await what it returns if the plugin's cleanup is async.
    """

    def __init__(self, disposers: list[Disposer], own: Callable[[], Any] | None = None) -> None:
        self._disposers = disposers
        self._own = own

    def __call__(self) -> Awaitable[None]:
        """Remove the plugin."""
        while self._disposers:
            self._disposers.pop()()
        own, self._own = self._own, None
        value = None if own is None else own()
        return cast("Awaitable[None]", value) if isawaitable(value) else _Done()


class _Done:
    """An awaitable with nothing to wait for."""

    def __await__(self) -> Generator[Any, None, None]:
        yield from ()


async def use(agent: A, plugin: Callable[[A], Any]) -> Cleanup | None:
    """Let a plugin register; None if there is nothing to clean up afterwards."""
    disposers: list[Disposer] = []
    token = _registered.set(disposers)
    try:
        value = await call_user("a plugin", plugin, agent)
    except BaseException:
        Cleanup(disposers)()
        raise
    finally:
        _registered.reset(token)
    own = cast("Callable[[], Any]", value) if callable(value) else None
    return Cleanup(disposers, own) if disposers or own is not None else None


def tracked(disposer: Disposer) -> Disposer:
    """Remember a registration for the plugin that makes it, if one does."""
    disposers = _registered.get()
    if disposers is not None:
        disposers.append(disposer)
    return disposer
