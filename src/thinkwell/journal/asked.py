"""One work that somebody wants committed, and how it takes back what it changed in memory.

A work runs before its commit is sure. Others must see what it changed (a turn that settles in the
same transaction stores the answer that came just before), so it changes memory at once, and says
with `if_not_stored` how that is undone. The undo runs before anybody else commits: nothing is
ever stored or told that belongs to a work which failed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar

from thinkwell.core.errors import StoreError
from thinkwell.core.tasks import run_in_context
from thinkwell.journal.turn_log import Owner
from thinkwell.store.base import Transaction, Work

T = TypeVar("T")
log = logging.getLogger("thinkwell.store")


class Asked:
    """One work, and who waits for it."""

    __slots__ = ("_context", "_result", "_undo", "_work", "active", "outcome", "owner")

    def __init__(self, owner: Owner | None, work: Work[Any]) -> None:
        self.owner = owner
        self._work = work
        self._undo: list[Callable[[], object]] = []
        self._context = copy_context()
        self._result: Any = None
        self.active = False
        """Whether the work runs now."""
        self.outcome: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    async def carry_out(self, tx: Transaction) -> None:
        """Do it, as if in the task of whoever asked."""
        self._context.run(_current.set, self)
        self.active = True
        try:
            self._result = await run_in_context(self._context, _coroutine(self._work, tx))
        finally:
            self.active = False

    def if_not_stored(self, undo: Callable[[], object]) -> None:
        """What to do should the work, or the transaction around it, fail."""
        self._undo.append(undo)

    def succeed(self) -> None:
        """The commit is done and told."""
        if not self.outcome.done():
            self.outcome.set_result(self._result)

    def fail(self, error: BaseException) -> None:
        """Nothing of it is stored: take back the last change first, then tell."""
        while self._undo:
            undo = self._undo.pop()
            try:
                undo()
            except Exception:  # the others of the transaction wait for their undo, too
                log.exception("a change could not be taken back", extra={"action": "undo"})
        if self.outcome.done():
            return
        if isinstance(error, asyncio.CancelledError):
            self.outcome.cancel()
        else:
            self.outcome.set_exception(error)


_current: ContextVar[Asked | None] = ContextVar("asked", default=None)


async def _coroutine(work: Work[T], tx: Transaction) -> T:
    return await work(tx)


def _running() -> Asked | None:
    asked = _current.get()
    # A task that was started inside a work may go on after its end.
    return asked if asked is not None and asked.active else None


def if_not_stored(undo: Callable[[], object]) -> None:
    """Called by a work that changes memory: `undo` takes that back, should it not be stored."""
    asked = _running()
    if asked is None:
        raise StoreError("if_not_stored() is for the works that a group commit carries out.")
    asked.if_not_stored(undo)


def refuse_inside_work(call: str) -> None:
    """A commit that is asked for inside a work would wait for the one it is part of."""
    if _running() is not None:
        raise StoreError(
            f"{call} was asked for inside a transaction and would wait for itself. Write with the "
            "transaction that the work was given, or when it has ended."
        )
