"""Who is called at which moment, and in which order (spec/02 §5.0).

The class method comes first, then registered hooks in the order they were added. A dispatch walks
over a snapshot: a hook added meanwhile waits for the next time, one disposed meanwhile and not yet
reached is skipped. A method that is not overridden is not called at all, so an unused hook costs
nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final, Literal, TypeVar, cast

from thinkwell.core.signal import Disposer
from thinkwell.core.spelling import did_you_mean, spelled
from thinkwell.hooks.arity import ERROR_HOOKS, takes_event

OBSERVERS: Final = (
    "on_turn_start",
    "on_message",
    "on_chunk",
    "after_tool_call",
    "on_step_finish",
    "on_chat_done",
    "on_chat_abort",
    "on_chat_response",
    "on_scope_register",
    "on_scope_unregister",
)
"""Moments at which hooks look on: what they return is ignored."""
INTERCEPTORS: Final = (
    "on_chat_recovery",
    "before_turn",
    "before_step",
    "on_response",
    "before_tool_call",
    "on_tool_result",
    "on_tool_error",
    "classify_chat_error",
    "on_chat_error",
)
"""Moments at which hooks may change what happens next by what they return."""
EVENTS: Final = (*OBSERVERS, *INTERCEPTORS)
TRACE: Final = "trace"
"""Stands around turns, steps and tool calls; see `trace.py`. No method of a class: it is added."""
ALIASES: Final = {
    "on_chat_start": "on_turn_start",
    "pre_request": "before_step",
    "pre_tool_call": "before_tool_call",
    "on_tool_call_result": "on_tool_result",
    "on_tool_call_error": "on_tool_error",
    "on_step_end": "on_step_finish",
}
"""Other names of the same moments."""

F = TypeVar("F", bound=Callable[..., Any])
Watch = Callable[[str, str, Callable[..., Any]], Callable[..., Any]]
"""Makes what is called for an event out of the event, the hook's name and the hook."""
OfError = Literal["both", "error", "context"]
_CONTEXT_NAMES = ("ctx", "context")
_ERROR_NAMES = ("error", "err", "exc", "exception")
_MARK = "__thinkwell_hook__"


class Hook:
    """One registered callable. `alive` turns False when it is disposed."""

    __slots__ = ("alive", "call", "name", "of_error", "timeout")

    def __init__(
        self,
        call: Callable[..., Any],
        name: str,
        timeout: float | None = None,
        *,
        of_class: bool = False,
    ) -> None:
        self.call = call
        self.name = name
        self.timeout = timeout
        self.alive = True
        self.of_error = _wanted_of_error(call, of_class=of_class)
        """What an error hook is called with."""


class HookRegistry:
    """The hooks of one activation."""

    def __init__(self, owner: object, base: type) -> None:
        self._hooks: dict[str, tuple[Hook, ...]] = dict.fromkeys((*EVENTS, TRACE), ())
        self._watch: Watch | None = None
        for event in EVENTS:
            if getattr(type(owner), event) is not getattr(base, event):
                method = getattr(owner, event)
                self._hooks[event] = (
                    Hook(method, f"{type(owner).__name__}.{event}", of_class=True),
                )
        for method, event, timeout in _decorated(owner):
            self.add(event, method, timeout=timeout)

    def hooks(self, event: str) -> tuple[Hook, ...]:
        """A snapshot of who is called for `event`, in order."""
        return self._hooks[event]

    def watch(self, watch: Watch) -> None:
        """Put `watch` around every hook, those to come included; once, however often asked."""
        if self._watch is not None:
            return
        self._watch = watch
        for event, hooks in self._hooks.items():
            for hook in hooks:
                hook.call = watch(event, hook.name, hook.call)

    def add(
        self,
        event: str,
        call: Callable[..., Any],
        *,
        name: str | None = None,
        timeout: float | None = None,
    ) -> Disposer:
        """Register `call`.

        Each call registers anew; the disposer removes only its own and may be called again.
        """
        _check_order(event, call)
        event = canonical_event(event)
        if not takes_event(call, event):
            what = getattr(call, "__qualname__", repr(call))
            given = "the error and a context" if event in ERROR_HOOKS else "one context"
            raise TypeError(
                f"{what}{inspect.signature(call)} cannot be called at {event!r}: it is given "
                f"{given}. Write `def {getattr(call, '__name__', 'hook')}(ctx)`."
            )
        hook = Hook(call, name or getattr(call, "__qualname__", repr(call)), timeout)
        if self._watch is not None:
            hook.call = self._watch(event, hook.name, call)
        self._hooks[event] = (*self._hooks[event], hook)

        def dispose() -> None:
            hook.alive = False
            self._hooks[event] = tuple(h for h in self._hooks[event] if h is not hook)

        return dispose


def _check_order(event: object, call: object) -> None:
    """Refuse an event that is no text and a hook that is no function, before either is used."""
    if not isinstance(event, str):
        what = getattr(event, "__qualname__", None) or repr(event)
        first = repr(call) if isinstance(call, str) else '"before_turn"'
        raise TypeError(
            f"add_hook({what}, ...) does not begin with the name of an event. Write "
            f"`add_hook({first}, {what if callable(event) else 'function'})`."
        )
    if not callable(call):
        raise TypeError(f"add_hook({event!r}, {call!r:.50}): give a function to call.")


def canonical_event(name: str) -> str:
    """The event a name or alias stands for. Raises `ValueError` for any other."""
    event = ALIASES.get(name, name)
    if event not in EVENTS and event != TRACE:
        known = (*EVENTS, TRACE, *ALIASES)
        raise ValueError(
            f"There is no hook event {name!r}.{did_you_mean(name, known)} Events are: "
            f"{', '.join(known)}."
        )
    return event


@spelled("@hook", example='Write `@hook("before_turn")`.')
def hook(event: str, *, timeout: float | None = None) -> Callable[[F], F]:
    """Register a method of an agent class for an event, beside the method of the event's own name.

    Decorated methods are registered when the agent wakes, in the order of the class body.
    """
    if callable(cast("object", event)):
        raise TypeError(
            "@hook stands above a method without saying when it is called. Write "
            '`@hook("before_turn")`.'
        )
    checked = canonical_event(event)

    def mark(function: F) -> F:
        setattr(function, _MARK, (checked, timeout))
        return function

    return mark


def hook_mark(function: Any) -> tuple[str, float | None] | None:
    """The event and the time limit that `@hook` left on a function."""
    return getattr(function, _MARK, None)


def _decorated(owner: object) -> list[tuple[Callable[..., Any], str, float | None]]:
    members: dict[str, Any] = {}
    for base in reversed(type(owner).__mro__):
        members.update(vars(base))
    marked = [(name, getattr(member, _MARK, None)) for name, member in members.items()]
    return [(getattr(owner, name), *mark) for name, mark in marked if mark is not None]


def _wanted_of_error(call: Callable[..., Any], *, of_class: bool) -> OfError:
    """What an error hook wants: both, or the one thing it takes.

    Think's method takes the error, and the context if it likes; AG2B's registered function takes
    the context, which has the error. What a parameter is called says more than where it stands.
    """
    try:
        parameters = list(inspect.signature(call).parameters.values())
    except (TypeError, ValueError):
        return "both"
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    places = [p for p in parameters if p.kind in kinds]
    starred = any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters)
    if starred or not places or any(map(_takes_context, places[1:2])):
        return "both"
    only = places[0].name
    if only in _CONTEXT_NAMES:
        return "context"
    return "error" if of_class or only in _ERROR_NAMES else "context"


def _takes_context(second: inspect.Parameter) -> bool:
    """A default that a lambda binds (`lambda ctx, tag=t: ...`) is no place for the context."""
    return second.default is inspect.Parameter.empty or second.name in _CONTEXT_NAMES
