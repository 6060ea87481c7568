"""What context blocks need from outside."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec

from thinkwell.core.bus import EventBus
from thinkwell.core.clock import Clock
from thinkwell.store.base import Store, Work


class Join(Protocol):
    """Commits a write: now, or with whatever the current code commits at its end."""

    def __call__(
        self, work: Work[object], afterwards: Callable[[], object] | None = None, /
    ) -> Awaitable[None]:
        """Commit `work`, then do `afterwards`."""
        ...


class Ports(msgspec.Struct, frozen=True, kw_only=True):
    """What blocks need from outside."""

    store: Store
    agent_id: str
    session_id: str
    clock: Clock
    join: Join
    bus: EventBus
