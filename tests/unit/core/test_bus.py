"""The event bus: told in order, by pattern and by agent, never part of the flow (spec/04 §17)."""

from __future__ import annotations

import json
from typing import Any, Literal, get_args

import pytest

from thinkwell.core.bus import AgentEvents, EventBus
from thinkwell.core.bus_event import BusEvent, JobEvent
from thinkwell.core.events import (
    TYPES,
    Event,
    JobFinished,
    JobStarted,
    StoreFailing,
    StoreRecovered,
    ToolQueued,
)
from thinkwell.core.turn_events import HookFailed


def queued(bus: EventBus, agent: str = "a/x") -> None:
    bus.emit(ToolQueued, agent=agent, waiting=1)


def test_subscribers_are_told_in_the_order_they_came():
    bus, heard = EventBus(), list[str]()
    bus.subscribe(lambda event: heard.append(f"a {event.type}"))
    bus.subscribe(lambda event: heard.append(f"b {event.type}"))
    queued(bus)
    assert heard == ["a tool:queued", "b tool:queued"]


def test_an_event_carries_its_type_agent_and_fields():
    bus, heard = EventBus(), list[Event]()
    bus.subscribe(heard.append)
    queued(bus)
    assert heard == [ToolQueued(agent="a/x", waiting=1)]


def test_nobody_listens_and_no_event_is_made():
    def made() -> BusEvent:
        raise AssertionError

    EventBus().emit(made)


@pytest.mark.parametrize(
    ("patterns", "heard"),
    [
        ((), 3),
        (("*",), 3),
        (("store:*",), 2),
        (("store:failing",), 1),
        (("store:failing", "tool:*"), 2),
        (("job:*",), 0),
    ],
)
def test_a_subscriber_hears_what_its_patterns_name(patterns: tuple[str, ...], heard: int):
    bus, events = EventBus(), list[Event]()
    bus.subscribe(events.append, *patterns)
    bus.emit(StoreFailing, reason="full")
    bus.emit(StoreRecovered)
    queued(bus)
    assert len(events) == heard


def test_a_class_is_a_pattern_too():
    bus, reasons = EventBus(), list[str]()

    def note(event: StoreFailing) -> None:
        reasons.append(event.reason)

    bus.subscribe(note, StoreFailing)
    bus.emit(StoreFailing, reason="full")
    queued(bus)
    assert reasons == ["full"]


@pytest.mark.parametrize("base", [JobEvent, BusEvent])
def test_a_base_class_hears_all_that_are_derived_from_it(base: type[BusEvent]):
    bus, heard = EventBus(), list[str]()
    bus.subscribe(lambda event: heard.append(event.type), base)
    bus.emit(JobStarted, agent="a/x", job="j", name="tidy", attempt=1)
    bus.emit(JobFinished, agent="a/x", job="j", name="tidy", attempt=1)
    queued(bus)
    jobs = ["job:started", "job:finished"]
    assert heard == (jobs if base is JobEvent else [*jobs, "tool:queued"])


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("hook:eror", r"no event 'hook:eror'\. Did you mean 'hook:error'\?"),
        ("chat:turn:finsh", r"Did you mean 'chat:turn:finish'\?"),
        ("chat:nothing", r"Events are: .*chat:turn:finish"),
        ("HookFailed", r"a class such as HookFailed itself, not its name"),
        ("chat.turn", r"no event 'chat\.turn'.*chat:turn:start"),
        ("chat.*", r"no event 'chat\.\*'"),
    ],
)
def test_a_pattern_that_can_never_match_is_an_error_with_the_right_form(pattern: str, said: str):
    with pytest.raises(ValueError, match=said):
        EventBus().subscribe(print, pattern)


@pytest.mark.parametrize("pattern", ["shop:sold", "shop*", "*:error", "chat*"])
def test_a_pattern_that_may_match_is_none(pattern: str):
    assert EventBus().subscribe(print, pattern)


@pytest.mark.parametrize("pattern", [int, 3, HookFailed | JobStarted])
def test_what_is_neither_a_name_nor_an_event_is_an_error(pattern: Any):
    with pytest.raises(TypeError, match=r"is no event\. Give a name such as \"hook:error\""):
        EventBus().subscribe(print, pattern)


def test_a_pattern_in_the_place_of_the_function_is_an_error():
    subscribe: Any = EventBus().subscribe
    with pytest.raises(TypeError, match=r"'chat:\*' is no function\. The function comes first"):
        subscribe("chat:*", print)


@pytest.mark.parametrize(
    ("agent", "error", "said"),
    [
        ("clerk", ValueError, r"not `class/name`.*agent=\"clerk/default\""),
        ("clerk/", ValueError, r"not `class/name`"),
        ("Clerk/default", ValueError, r"serves no 'Clerk', only 'clerk'.*mean 'clerk'\?"),
        ("nope/x", ValueError, r"serves no 'nope', only 'clerk'"),
        (3, TypeError, r"agent=3 is no text.*agent=\"clerk/default\""),
    ],
)
def test_an_agent_that_can_never_be_is_an_error(agent: Any, error: type[Exception], said: str):
    bus = EventBus(served=["clerk"])
    with pytest.raises(error, match=said):
        bus.subscribe(print, agent=agent)
    assert bus.subscribe(print, agent="clerk/not yet")


class Sold(BusEvent, frozen=True, kw_only=True):
    """Something was sold."""

    type: Literal["shop:sold"] = "shop:sold"
    what: str


def test_an_app_tells_events_of_its_own():
    bus, heard = EventBus(), list[Any]()
    bus.subscribe(heard.append, "shop:*")
    bus.emit(Sold, what="tea")
    assert [event.what for event in heard] == ["tea"]


def test_an_async_subscriber_is_refused():
    async def note(event: Event) -> None: ...

    with pytest.raises(TypeError, match=r"note is async.*Write `def`"):
        EventBus().subscribe(note)


def test_a_subscriber_that_raises_is_logged_and_kept(caplog: pytest.LogCaptureFixture):
    bus, heard = EventBus(), list[str]()

    def broken(event: Event) -> None:
        raise RuntimeError("no")

    bus.subscribe(broken)
    bus.subscribe(lambda event: heard.append(event.type))
    queued(bus)
    queued(bus)
    assert heard == ["tool:queued"] * 2
    records = [record for record in caplog.records if record.name == "thinkwell.events"]
    assert [(vars(r)["agent"], bool(r.exc_info)) for r in records] == [("a/x", True)] * 2
    assert "broken failed at tool:queued" in records[0].getMessage()
    said = vars(records[0])
    assert said["code"].endswith("broken")
    assert "hook" not in said  # it is none


def test_a_disposer_removes_its_own_subscription_only():
    bus, heard = EventBus(), list[Event]()
    first = bus.subscribe(heard.append)
    bus.subscribe(heard.append)
    first()
    first()
    queued(bus)
    assert len(heard) == 1


def test_one_that_leaves_while_it_is_told_does_not_disturb_the_others():
    bus, heard = EventBus(), list[str]()
    stop = bus.subscribe(lambda event: stop())
    bus.subscribe(lambda event: heard.append(event.type))
    queued(bus)
    assert heard == ["tool:queued"]


def test_a_subscriber_may_hear_one_agent_only():
    bus, heard = EventBus(), list[Event]()
    bus.subscribe(heard.append, "tool:*", agent="a/x")
    queued(bus)
    queued(bus, "a/y")
    assert [event.agent for event in heard] == ["a/x"]


def test_the_events_of_an_agent_are_heard_while_it_is_awake():
    bus, events, heard = EventBus(), AgentEvents(), list[Event]()
    events.subscribe(heard.append, "tool:*")  # before it wakes
    queued(bus)
    events.attach(bus, "a/x")
    queued(bus)
    queued(bus, "a/y")
    bus.emit(StoreRecovered)
    events.close()
    queued(bus)
    assert [event.agent for event in heard] == ["a/x"]
    assert not bus.heard


def test_an_agent_hears_what_it_tells_itself():
    bus, events, heard = EventBus(), AgentEvents(), list[Any]()
    events.attach(bus, "a/x")
    events.subscribe(heard.append, Sold)
    events.emit(Sold, what="tea")
    events.emit(Sold, agent="a/y", what="coffee")
    assert [(event.agent, event.what) for event in heard] == [("a/x", "tea")]


def test_an_agent_whose_last_subscriber_left_does_not_listen_any_more():
    bus, events, heard = EventBus(), AgentEvents(), list[Event]()
    events.attach(bus, "a/x")
    first, second = events.subscribe(heard.append), events.subscribe(heard.append)
    first()
    assert bus.heard
    second()
    assert not bus.heard
    events.subscribe(heard.append)
    second()
    queued(bus)
    assert len(heard) == 1


def test_an_agent_that_nobody_listens_to_does_not_listen_itself():
    bus, events = EventBus(), AgentEvents()
    events.attach(bus, "a/x")
    assert not bus.heard


def test_every_event_has_a_name_of_its_own_and_all_are_frozen():
    assert len(set(TYPES)) == len(get_args(Event))
    event: Any = StoreFailing(reason="full")
    with pytest.raises(AttributeError):
        event.reason = "other"


def test_an_event_as_json_data_has_texts_for_errors():
    event = HookFailed(
        agent="a/x", request_id="q1", event="on_chunk", hook="guard", error=ValueError("no")
    )
    data = json.loads(json.dumps(event.to_dict()))
    assert data == {
        "type": "hook:error",
        "agent": "a/x",
        "request_id": "q1",
        "event": "on_chunk",
        "hook": "guard",
        "error": "ValueError: no",
    }
