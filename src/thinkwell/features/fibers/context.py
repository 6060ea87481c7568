"""What a fiber's function and its recovery are given, and the mark `@fiber`."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, Literal, TypeAlias, TypeVar, cast

import msgspec

from thinkwell.core.errors import FiberError
from thinkwell.core.signal import AbortSignal
from thinkwell.journal.fibers import FiberStatus

F = TypeVar("F", bound=Callable[..., Any])
FiberFunction: TypeAlias = "Callable[[FiberContext], Awaitable[Any]]"
_MARK = "__thinkwell_fiber__"
MAX_ATTEMPTS = 5


class FiberContext:
    """What a fiber's function knows."""

    __slots__ = ("_keep", "attempt", "id", "metadata", "name", "signal", "snapshot")

    def __init__(
        self,
        *,
        id: str,
        name: str,
        attempt: int,
        snapshot: Any,
        metadata: Any,
        signal: AbortSignal,
        keep: Callable[[Any], Awaitable[None]],
    ) -> None:
        self.id = id
        self.name = name
        self.attempt = attempt
        """Which attempt this is, from 1."""
        self.snapshot = snapshot
        """What was stashed last; None in a first attempt."""
        self.metadata = metadata
        """What it was started with."""
        self.signal = signal
        """Aborts when somebody cancels the fiber."""
        self._keep = keep

    async def stash(self, data: Any) -> None:
        """Remember `data` (JSON) in place of what was stashed before. Durable when this returns."""
        await self._keep(data)
        self.snapshot = data


class FiberRecovery(msgspec.Struct, frozen=True, kw_only=True):
    """A fiber that was cut off and whose function is gone with its process."""

    id: str
    name: str
    snapshot: Any
    """What it stashed last."""
    created_at: float
    recovery_reason: Literal["interrupted"] = "interrupted"
    managed: bool
    """Whether it was started with `start_fiber`: then what the hook returns becomes its status."""
    status: FiberStatus = "interrupted"
    idempotency_key: str | None = None
    metadata: Any = None


class FiberMark(msgspec.Struct, frozen=True):
    """What `@fiber` leaves on a method."""

    name: str
    max_attempts: int
    auto_resume: bool


current_fiber: ContextVar[FiberContext | None] = ContextVar("current_fiber", default=None)
"""The fiber inside which the current code runs, if any."""


def fiber(
    name: str | None = None, *, max_attempts: int = MAX_ATTEMPTS, auto_resume: bool = True
) -> Callable[[F], F]:
    """Let a method be taken up again after a crash: `@fiber("import")`.

    It is an async method of one argument, the `FiberContext`. After a crash it is called again, up
    to `max_attempts` times in all, with `ctx.snapshot` as it was stashed last. With
    `auto_resume=False` only `on_fiber_recovered` is called.
    """
    if callable(name):
        raise FiberError('@fiber is called: write `@fiber()` or `@fiber("import")`.')
    attempts = cast("object", max_attempts)
    if isinstance(attempts, bool) or not isinstance(attempts, int) or attempts < 1:
        raise FiberError(f"@fiber(max_attempts={max_attempts!r}): give a whole number, 1 or more.")

    def mark(function: F) -> F:
        if not inspect.iscoroutinefunction(function):
            raise FiberError(
                f"@fiber is on {function.__name__!r}, which is no async method. Write "
                f"`async def {function.__name__}(self, ctx)`."
            )
        setattr(function, _MARK, FiberMark(name or function.__name__, max_attempts, auto_resume))
        return function

    return mark


def mark_of(function: object) -> FiberMark | None:
    """What `@fiber` says of a function or bound method; None if it is not marked."""
    return getattr(getattr(function, "__func__", function), _MARK, None)


def marked_method(agent: object, name: str) -> tuple[FiberFunction, FiberMark] | None:
    """The method of an agent that is a fiber of that name."""
    for attribute in dir(type(agent)):
        mark = mark_of(inspect.getattr_static(type(agent), attribute, None))
        if mark is not None and mark.name == name:
            return getattr(agent, attribute), mark
    return None
