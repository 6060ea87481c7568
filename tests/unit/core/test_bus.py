"""The event bus: told in order, never part of the flow."""

from __future__ import annotations

import pytest

from thinkwell.core.bus import Event, EventBus


def test_subscribers_are_told_in_the_order_they_came():
    bus, heard = EventBus(), list[str]()
    bus.subscribe(lambda event: heard.append(f"a {event.name}"))
    bus.subscribe(lambda event: heard.append(f"b {event.name}"))
    bus.emit("turn", number=1)
    assert heard == ["a turn", "b turn"]


def test_an_event_carries_its_fields():
    bus, heard = EventBus(), list[Event]()
    bus.subscribe(heard.append)
    bus.emit("turn", number=1, name_of="x")
    assert heard == [Event("turn", {"number": 1, "name_of": "x"})]


def test_a_subscriber_that_raises_is_logged_and_kept(caplog: pytest.LogCaptureFixture):
    bus, heard = EventBus(), list[str]()

    def broken(event: Event) -> None:
        raise RuntimeError("no")

    bus.subscribe(broken)
    bus.subscribe(lambda event: heard.append(event.name))
    bus.emit("one")
    bus.emit("two")
    assert heard == ["one", "two"]
    assert caplog.text.count("subscriber failed") == 2


def test_a_disposer_removes_its_own_subscription_only():
    bus, heard = EventBus(), list[Event]()
    first = bus.subscribe(heard.append)
    bus.subscribe(heard.append)
    first()
    first()
    bus.emit("one")
    assert len(heard) == 1


def test_one_that_leaves_while_it_is_told_does_not_disturb_the_others():
    bus, heard = EventBus(), list[str]()
    stop = bus.subscribe(lambda event: stop())
    bus.subscribe(lambda event: heard.append(event.name))
    bus.emit("one")
    assert heard == ["one"]
