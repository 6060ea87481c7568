"""`trace`: what stands around a turn, a model call or a tool call, for whoever records spans.

Unlike the other moments it has a duration: a hook gives a context manager, which is entered before
and left after. Nobody is asked in a turn whose `TurnConfig.telemetry` says nothing, so such a turn
pays nothing. What a hook or its context manager raises is reported and changes nothing else.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Literal, cast

import msgspec

from thinkwell.core.user_code import as_exception
from thinkwell.hooks.dispatch import Hooks
from thinkwell.hooks.registry import TRACE, Hook


class TraceContext(msgspec.Struct, kw_only=True):
    """What is traced. `end_facts` and `output` are there once it is left without an error."""

    kind: Literal["turn", "step", "tool"]
    agent: Any
    telemetry: Mapping[str, Any]
    """What `TurnConfig.telemetry` says."""
    facts: Mapping[str, Any]
    """What is known at the beginning, by name: `agent_id`, `request_id`, `model`, `tool_name`, …"""
    input: Any
    """The prompt, or the arguments of the call."""
    end_facts: Mapping[str, Any] = msgspec.field(default_factory=dict[str, Any])
    output: Any = None


@contextmanager
def traced(hooks: Hooks, context: TraceContext) -> Generator[None]:
    """Enter what the hooks give, in order; leave it in the opposite one."""
    entered: list[tuple[Hook, AbstractContextManager[Any]]] = []
    for hook in hooks.registry.hooks(TRACE):
        try:
            given = cast("AbstractContextManager[Any] | None", hook.call(context))
            if given is not None:
                given.__enter__()
                entered.append((hook, given))
        except BaseException as error:  # noqa: BLE001 - a turn can do without its spans
            hooks.report(TRACE, hook.name, as_exception(error, hook.name, "hook"))
    try:
        yield
    except BaseException as error:
        _leave(hooks, entered, error)
        raise
    _leave(hooks, entered, None)


def _leave(
    hooks: Hooks,
    entered: list[tuple[Hook, AbstractContextManager[Any]]],
    error: BaseException | None,
) -> None:
    """What a context manager answers is not asked: no span may swallow an error of the turn."""
    kind, trace = (None, None) if error is None else (type(error), error.__traceback__)
    for hook, manager in reversed(entered):
        try:
            manager.__exit__(kind, error, trace)
        except BaseException as raised:  # noqa: BLE001 - as above
            if raised is not error:
                hooks.report(TRACE, hook.name, as_exception(raised, hook.name, "hook"))
