"""Who is called at which moment, and in which order (spec/02 §5.0).

The class method comes first, then registered hooks in the order they were added. A dispatch walks
over a snapshot: a hook added meanwhile waits for the next time, one disposed meanwhile and not yet
reached is skipped. A method that is not overridden is not called at all, so an unused hook costs
nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from thinkwell.core.signal import Disposer

EVENTS: Final = (
    "before_turn",
    "before_step",
    "before_tool_call",
    "after_tool_call",
    "on_step_finish",
    "on_chunk",
    "on_chat_response",
    "on_chat_error",
)
"""Moments for which hooks can be overridden and registered."""


class Hook:
    """One registered callable. `alive` turns False when it is disposed."""

    __slots__ = ("alive", "call", "name")

    def __init__(self, call: Callable[..., Any], name: str) -> None:
        self.call = call
        self.name = name
        self.alive = True


class HookRegistry:
    """The hooks of one activation."""

    def __init__(self, owner: object, base: type) -> None:
        self._hooks: dict[str, tuple[Hook, ...]] = dict.fromkeys(EVENTS, ())
        for event in EVENTS:
            if getattr(type(owner), event) is not getattr(base, event):
                method = getattr(owner, event)
                self._hooks[event] = (Hook(method, f"{type(owner).__name__}.{event}"),)

    def hooks(self, event: str) -> tuple[Hook, ...]:
        """A snapshot of who is called for `event`, in order."""
        return self._hooks[event]

    def add(self, event: str, call: Callable[..., Any], *, name: str | None = None) -> Disposer:
        """Register `call`.

        Each call registers anew; the disposer removes only its own and may be called
        again.
        """
        if event not in self._hooks:
            raise ValueError(f"There is no hook event {event!r}. Events are: {', '.join(EVENTS)}.")
        hook = Hook(call, name or getattr(call, "__qualname__", repr(call)))
        self._hooks[event] = (*self._hooks[event], hook)

        def dispose() -> None:
            hook.alive = False
            self._hooks[event] = tuple(h for h in self._hooks[event] if h is not hook)

        return dispose
