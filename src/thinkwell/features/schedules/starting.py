"""Whether `on_start` runs: what is scheduled there once is scheduled at every start."""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

log = logging.getLogger("thinkwell.schedules")

_warned: ContextVar[set[str] | None] = ContextVar("starting", default=None)


@contextmanager
def starting() -> Generator[None]:
    """Around `on_start`."""
    token = _warned.set(set())
    try:
        yield
    finally:
        _warned.reset(token)


def warn_in_start(callback: str, agent_id: str) -> None:
    """Somebody schedules a call that comes once. Inside `on_start` that is warned about, once."""
    seen = _warned.get()
    if seen is not None and callback not in seen:
        seen.add(callback)
        log.warning(
            "on_start schedules %r, so every start makes one more. Write "
            "`schedule(..., idempotent=True)`, or `idempotent=False` if that is meant.",
            callback,
            extra={"agent": agent_id},
        )
