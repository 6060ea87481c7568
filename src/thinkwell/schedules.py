"""Work for later: recurring tasks, schedules, the queue, and how often something is tried."""

from thinkwell.features.schedules.declared import (
    ScheduledTask,
    define_scheduled_tasks,
)
from thinkwell.features.schedules.every import every
from thinkwell.features.schedules.marks import scheduled
from thinkwell.features.schedules.retries import RetryOptions
from thinkwell.features.schedules.rows import QueueItem, Schedule, TaskState
from thinkwell.features.schedules.schedules import Schedules
from thinkwell.features.schedules.task_context import ScheduledTaskContext

__all__ = [
    "QueueItem",
    "RetryOptions",
    "Schedule",
    "ScheduledTask",
    "ScheduledTaskContext",
    "Schedules",
    "TaskState",
    "define_scheduled_tasks",
    "every",
    "scheduled",
]
