# type: ignore
"""What events do not have, and who cannot hear them."""

from __future__ import annotations

from thinkwell import App
from thinkwell.events import Event, HookFailed, JobFailed


def note(event: Event) -> None:
    # E pyright: Cannot access attribute "hook" for class "ChatTurnStart"
    # E mypy: has no attribute "hook"
    print(event.hook)
    if event.type == "hook:error":
        # E pyright: Cannot access attribute "status" for class "HookFailed"
        # E mypy: "HookFailed" has no attribute "status"
        print(event.status)
    # E pyright: will always evaluate to False
    # E mypy: Non-overlapping equality check
    if event.type == "hook:eror":
        print("never")


def failed(event: HookFailed) -> None:
    # E pyright: Attribute "hook" is read-only
    # E mypy: Property "hook" defined in "HookFailed" is read-only
    event.hook = "mine"


def use(app: App) -> None:
    # E pyright: No overloads for "subscribe" match
    # E mypy: Argument 1 to "subscribe" of "EventBus" has incompatible type
    app.events.subscribe(failed, JobFailed)
    # E pyright: No parameter named "what"
    # E mypy: Unexpected keyword argument "what"
    app.events.emit(HookFailed, what=1)
