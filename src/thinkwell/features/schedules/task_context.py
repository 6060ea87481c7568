"""What a run of a declared task knows of itself, and how its code is called with it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Literal, NamedTuple

import msgspec

from thinkwell.core.signal import AbortSignal


class ScheduledTaskContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a handler, or a function that makes a prompt, knows of the run it is called for."""

    task_id: str
    scheduled_for: float
    """The time this run is meant for, in seconds since the epoch, however late it is."""
    occurrence_key: str
    """The task and that time: the same for every attempt, and in every process."""
    idempotency_key: str
    """The same, told apart from all other agents: hand it to whoever can tell a repetition."""
    schedule: str
    """The schedule as it was understood."""
    schedule_kind: Literal["interval", "wall-clock"]
    timezone: str | None
    metadata: Mapping[str, Any] | None
    attempt: int
    """Which attempt of this run it is, from 1."""
    signal: AbortSignal
    """Aborts when the run is cancelled, or takes too long."""

    @property
    def scheduled_for_date(self) -> datetime:
        """The time this run is meant for, in UTC."""
        return datetime.fromtimestamp(self.scheduled_for, UTC)


class TaskRun(NamedTuple):
    """What the job says of a run."""

    scheduled_for: float
    attempt: int
    signal: AbortSignal


def owner_key(agent_id: str) -> str:
    """What tells the tasks of one agent from those of all others."""
    return sha256(agent_id.encode()).hexdigest()[:16]


def call_with(function: Callable[..., Any], context: ScheduledTaskContext) -> Any:
    """Call a handler with what it takes: the context, or nothing."""
    return function(context) if positional(function) else function()


def positional(function: Callable[..., Any]) -> int:
    """How many arguments a function takes by their place, two at most that count."""
    kinds = [p.kind for p in inspect.signature(function).parameters.values()]
    if inspect.Parameter.VAR_POSITIONAL in kinds:
        return 2
    return sum(kind in (0, 1) for kind in kinds)
