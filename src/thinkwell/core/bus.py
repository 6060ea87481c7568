"""What happens inside, told to whoever asked (metrics, logs, tests).

Never part of the turn's own flow: a subscriber is called where the event happens, what it raises is
logged, and when nobody listens no event is even made.
"""

from __future__ import annotations

import inspect
import logging
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Any, ParamSpec, TypeAlias, TypeVar, overload

import msgspec

from thinkwell.core.bus_event import BusEvent
from thinkwell.core.event_filter import Filter, filter_of
from thinkwell.core.events import Event
from thinkwell.core.signal import Disposer
from thinkwell.core.spelling import spelled

log = logging.getLogger("thinkwell.events")

Subscriber: TypeAlias = Callable[[Event], object]
"""Hears events. Contract: quick, because whatever tells the event waits for it; never async."""
P = ParamSpec("P")
One = TypeVar("One", bound=BusEvent)


class Tally:
    """Counts the events of one class, by the class of their agent and one of their fields."""

    def __init__(self, by: str | None, total: str | None) -> None:
        self._by, self._total = by, total
        self.counts: Counter[tuple[str, Any]] = Counter()
        self.totals: Counter[str] = Counter()
        """The sum of another field, by the class of the agent."""

    def add(self, fields: Mapping[str, Any]) -> None:
        """One more."""
        agent_class = (fields.get("agent") or "").partition("/")[0]
        self.counts[agent_class, fields[self._by] if self._by else None] += 1
        if self._total:
            self.totals[agent_class] += fields[self._total]


class EventBus:
    """Tells subscribers in the order they came. A subscriber that raises is logged and kept."""

    def __init__(self, served: Collection[str] | None = None) -> None:
        """`served`: the classes of agents it can tell of, as in URLs; None: any."""
        self._served = served
        self._subscribers: dict[object, tuple[Callable[[Any], object], Filter]] = {}
        self._tallies: dict[object, Tally] = {}

    @overload
    def subscribe(
        self, subscriber: Subscriber, *patterns: str, agent: str | None = None
    ) -> Disposer: ...
    @overload
    def subscribe(
        self, subscriber: Callable[[One], object], kind: type[One], /, *, agent: str | None = None
    ) -> Disposer: ...
    @spelled("subscribe()")
    def subscribe(
        self,
        subscriber: Callable[[Any], object],
        *patterns: str | type[BusEvent],
        agent: str | None = None,
    ) -> Disposer:
        """Hear events from now on, until the returned disposer is called.

        `patterns` say which: names such as `"chat:request:failed"`, `"hook:*"`, or a class, which
        may be a base class such as `JobEvent`; without any, all. `agent` (`"clerk/ann"`) leaves
        only those of one agent. What can never match is an error.
        """
        if not callable(subscriber):
            raise TypeError(
                f"The subscriber {subscriber!r:.100} is no function. The function comes first: "
                '`subscribe(fn, "chat:*")`.'
            )
        if inspect.iscoroutinefunction(subscriber):
            name = getattr(subscriber, "__qualname__", repr(subscriber))
            raise TypeError(
                f"{name} is async, and events are told at once. Write `def`, and put what is "
                "to be awaited into a queue or a task."
            )
        hears = filter_of(patterns, agent, self._served)
        token = object()
        self._subscribers[token] = subscriber, hears
        return lambda: self._subscribers.pop(token, None) and None

    def emit(self, event: Callable[P, BusEvent], /, *args: P.args, **fields: P.kwargs) -> None:
        """Tell everybody: `emit(HookFailed, hook=...)`. Costs nothing when nobody listens."""
        tally = self._tallies.get(event)
        if tally is not None:
            tally.add(fields)
        if self._subscribers:
            self.tell(event(*args, **fields))

    def count(
        self, kind: type[BusEvent], *, by: str | None = None, total: str | None = None
    ) -> Tally:
        """Count the events of one class from now on, by a field `by`, and add up a field `total`.

        None is made for that, and nobody counts as listening.
        """
        tally = self._tallies[kind] = Tally(by, total)
        return tally

    @property
    def heard(self) -> bool:
        """Whether anybody listens."""
        return bool(self._subscribers)

    def tell(self, event: BusEvent) -> None:
        """Tell an event that is there already."""
        for subscriber, hears in tuple(self._subscribers.values()):
            if not hears(event):
                continue
            try:
                subscriber(event)
            except BaseException:  # whatever it is, the turn that tells it goes on
                name = getattr(subscriber, "__qualname__", repr(subscriber))
                about = {"action": event.type, "agent": event.agent, "code": name}
                log.exception("the subscriber %s failed at %s", name, event.type, extra=about)


class AgentEvents:
    """The events of one agent (`agent.events`), as long as it is awake."""

    def __init__(self) -> None:
        self._own = EventBus()
        self._bus: EventBus | None = None
        self._agent_id = ""
        self._leave: Disposer | None = None

    @overload
    def subscribe(self, subscriber: Subscriber, *patterns: str) -> Disposer: ...
    @overload
    def subscribe(self, subscriber: Callable[[One], object], kind: type[One], /) -> Disposer: ...
    def subscribe(self, subscriber: Callable[[Any], object], *patterns: Any) -> Disposer:
        """Hear events of this agent. As `app.events.subscribe`; it ends when the agent sleeps."""
        dispose = self._own.subscribe(subscriber, *patterns)
        self._listen()

        def leave() -> None:
            dispose()
            if not self._own.heard:  # or every event would be made, for nobody
                self.close()

        return leave

    def emit(self, event: Callable[P, BusEvent], /, *args: P.args, **fields: P.kwargs) -> None:
        """Tell an event, to whoever listens to this agent or to the app.

        `agent` is this agent, unless the event names one.
        """
        if self._bus is None or not self._bus.heard:
            return
        made = event(*args, **fields)
        if made.agent is None:
            made = msgspec.structs.replace(made, agent=self._agent_id)
        self._bus.tell(made)

    def attach(self, bus: EventBus, agent_id: str) -> None:
        """The agent wakes."""
        self._bus, self._agent_id = bus, agent_id
        if self._own.heard:
            self._listen()

    def close(self) -> None:
        """The agent sleeps: it subscribes again when it wakes."""
        if self._leave is not None:
            self._leave()
            self._leave = None

    def _listen(self) -> None:
        # Only once somebody wants to hear: an agent without subscribers costs the bus nothing.
        if self._bus is not None and self._leave is None:
            self._leave = self._bus.subscribe(self._own.tell, agent=self._agent_id)
