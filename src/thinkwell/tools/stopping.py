"""When a turn has done enough steps (spec/02 §8.1 `stop_when`).

Owns the ready-made conditions and how several are asked: in order, the first that holds stops the
turn. The caller asks after each step that had tool calls and adds its own cap of steps. Whatever a
condition raises comes through.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeAlias

from thinkwell.core.errors import ConfigurationError
from thinkwell.core.user_code import call_user

StopCondition: TypeAlias = "Callable[[Sequence[Any]], bool | Awaitable[bool]]"
"""Given the finished steps (`StepResult`s, oldest first), says whether to stop.

Contract: asked once per step with tool calls; may be async; a raise fails the turn.
"""
StopWhen: TypeAlias = "StopCondition | Iterable[StopCondition]"


def step_count_is(count: int) -> StopCondition:
    """Stop when the turn has made `count` steps."""
    if count < 1:
        raise ConfigurationError(f"step_count_is({count}) can never hold. Give 1 or more.")
    # A turn that was taken up again may be past the number already.
    return lambda steps: len(steps) >= count


def has_tool_call(*names: str) -> StopCondition:
    """Stop when the last step called one of these tools."""
    if not names:
        raise ConfigurationError('has_tool_call() names no tool. Write has_tool_call("done").')
    wanted = frozenset(names)
    return lambda steps: (
        bool(steps) and any(call.tool_name in wanted for call in steps[-1].tool_calls)
    )


async def should_stop(conditions: StopWhen | None, steps: Sequence[Any]) -> bool:
    """Whether one of the conditions holds; those after it are not asked."""
    for condition in as_conditions(conditions):
        if await call_user("stop_when", condition, steps):
            return True
    return False


def as_conditions(conditions: StopWhen | None) -> tuple[StopCondition, ...]:
    """One condition, several or none, as a tuple."""
    if conditions is None:
        return ()
    return (conditions,) if callable(conditions) else tuple(conditions)
