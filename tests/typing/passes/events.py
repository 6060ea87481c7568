"""What a type checker knows of the events of the bus."""

from __future__ import annotations

from typing import Any, Literal, assert_type

from thinkwell import App, Think
from thinkwell.events import (
    BusEvent,
    ChatRequestFailed,
    ChatTurnFinish,
    Event,
    HookFailed,
    JobFailed,
)


def by_type(event: Event) -> str | None:
    assert_type(event.agent, str | None)
    if event.type == "hook:error":
        assert_type(event, HookFailed)
        return event.hook
    if event.type == "chat:turn:finish":
        assert_type(event.duration_ms, float)
        return event.status
    return None


def by_class(event: Event) -> dict[str, Any]:
    match event:
        case HookFailed():
            assert_type(event.error, BaseException)
        case JobFailed(job=job):
            assert_type(job, str)
        case _:
            pass
    return event.to_dict()


def failed(event: ChatRequestFailed) -> None:
    assert_type(event.stage, str)


class Sold(BusEvent, frozen=True, kw_only=True):
    """One of the app's own."""

    type: Literal["shop:sold"] = "shop:sold"
    what: str


class Clerk(Think):
    async def on_start(self) -> None:
        self.events.subscribe(by_type, "hook:*")
        self.events.emit(Sold, what="tea")


def use(app: App) -> None:
    stop = app.events.subscribe(by_type, "hook:*", "chat:*", agent="clerk/ann")
    app.events.subscribe(failed, ChatRequestFailed)
    app.events.subscribe(lambda event: print(event.type))
    stop()


def finished(event: ChatTurnFinish) -> str:
    return event.status
