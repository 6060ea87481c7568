"""What happens inside, told to whoever asked (metrics, logs, tests).

Never part of the turn's own flow.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

log = logging.getLogger("thinkwell.events")


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened: a name such as `chat:turn:start` and its fields."""

    name: str
    fields: Mapping[str, Any]


Subscriber = Callable[[Event], None]


class EventBus:
    """Tells subscribers in the order they came. A subscriber that raises is logged and kept."""

    def __init__(self) -> None:
        self._subscribers: dict[object, Subscriber] = {}

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Hear every event from now on. Returns an idempotent disposer."""
        token = object()
        self._subscribers[token] = subscriber
        return lambda: self._subscribers.pop(token, None) and None

    def emit(self, name: str, /, **fields: Any) -> None:
        """Tell everybody. Costs nothing when nobody listens."""
        if not self._subscribers:
            return
        event = Event(name, fields)
        for subscriber in tuple(self._subscribers.values()):
            try:
                subscriber(event)
            except BaseException:  # whatever it is, the turn that tells it goes on
                log.exception("an event subscriber failed", extra={"action": name})
