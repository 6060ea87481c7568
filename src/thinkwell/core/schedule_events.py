"""What the bus tells of schedules, declared tasks and the queue (spec/04 §17).

They are jobs, so each has its `job:*` events as well; these speak of what was planned.
"""

from __future__ import annotations

from typing import Literal

from thinkwell.core.bus_event import BusEvent


class PlannedEvent(BusEvent, frozen=True, kw_only=True):
    """Something about one schedule, declared task or item of the queue."""

    id: str
    """The id of its job."""
    callback: str
    """The method that it calls, or the name of the declared task."""


class ScheduleCreated(PlannedEvent, frozen=True, kw_only=True):
    """A schedule is stored."""

    type: Literal["schedule:create"] = "schedule:create"


class ScheduleExecuted(PlannedEvent, frozen=True, kw_only=True):
    """An attempt of a run has begun."""

    type: Literal["schedule:execute"] = "schedule:execute"


class ScheduleRetried(PlannedEvent, frozen=True, kw_only=True):
    """An attempt has failed, and another one follows."""

    type: Literal["schedule:retry"] = "schedule:retry"
    attempt: int
    max_attempts: int


class ScheduleFailed(PlannedEvent, frozen=True, kw_only=True):
    """A run is given up. One that comes again has its next time all the same."""

    type: Literal["schedule:error"] = "schedule:error"
    error: str | None
    attempts: int


class ScheduleCancelled(PlannedEvent, frozen=True, kw_only=True):
    """It comes no more."""

    type: Literal["schedule:cancel"] = "schedule:cancel"


class ScheduleDuplicated(BusEvent, frozen=True, kw_only=True):
    """So many schedules that run once and do the same wait: somebody makes one at every start."""

    type: Literal["schedule:duplicate_warning"] = "schedule:duplicate_warning"
    callback: str
    count: int


class SchedulesUnreconciled(BusEvent, frozen=True, kw_only=True):
    """The tasks that an agent declares cannot be read. It serves, and those stored stay as they
    are.
    """

    type: Literal["schedule:reconcile_failed"] = "schedule:reconcile_failed"
    error: str


class QueueCreated(PlannedEvent, frozen=True, kw_only=True):
    """An item is in the queue."""

    type: Literal["queue:create"] = "queue:create"


class QueueRetried(PlannedEvent, frozen=True, kw_only=True):
    """An attempt has failed, and another one follows. What stands behind it waits."""

    type: Literal["queue:retry"] = "queue:retry"
    attempt: int
    max_attempts: int


class QueueFailed(PlannedEvent, frozen=True, kw_only=True):
    """An item is given up, and the next one begins."""

    type: Literal["queue:error"] = "queue:error"
    error: str | None
    attempts: int


class QueueDeadLetter(PlannedEvent, frozen=True, kw_only=True):
    """What was given up is kept, to look at and to try again."""

    type: Literal["queue:dead_letter"] = "queue:dead_letter"
