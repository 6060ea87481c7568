"""Tasks that a class declares: `@scheduled` on a method, `ScheduledTask` in `get_scheduled_tasks`.

What is written is checked at once: the text when the decorator runs, the class when it is made.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, Final, NamedTuple, TypeAlias, cast, overload

import msgspec

from thinkwell.core import json
from thinkwell.core.errors import ScheduleError
from thinkwell.features.schedules.occurrences import iso_time
from thinkwell.features.schedules.retries import RetryOptions, check_retry
from thinkwell.features.schedules.task_context import (
    ScheduledTaskContext,
    TaskRun,
    owner_key,
)
from thinkwell.features.schedules.timetable import (
    IntervalTimetable,
    Timetable,
    parse_timetable,
)
from thinkwell.features.schedules.zones import checked_zone
from thinkwell.journal.submission import OF_TASKS

_TASK_ID: Final = re.compile(r"[A-Za-z0-9_-]+")


Handler: TypeAlias = Callable[[ScheduledTaskContext], Any] | Callable[[], Any]
"""Does the work of a task; may be async, and take the context or nothing."""
Prompt: TypeAlias = str | Handler
"""A user message, or what makes one when it is time."""
Retrying: TypeAlias = RetryOptions | Mapping[str, Any] | None
Scheduling: TypeAlias = str | Timetable
"""A text such as `every weekday at 09:00`, or `every.weekday.at(9)`."""


class ScheduledTask:
    """A recurring task: when, and either a prompt that becomes a turn or a handler."""

    __slots__ = ("handler", "metadata", "prompt", "retry", "schedule", "timezone")

    @overload
    def __init__(
        self,
        schedule: Scheduling,
        *,
        prompt: Prompt,
        timezone: str | None = None,
        retry: Retrying = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self,
        schedule: Scheduling,
        *,
        handler: Handler,
        timezone: str | None = None,
        retry: Retrying = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None: ...
    def __init__(
        self,
        schedule: Scheduling,
        *,
        prompt: Prompt | None = None,
        handler: Handler | None = None,
        timezone: str | None = None,
        retry: Retrying = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        self.schedule = parse_timetable(schedule)
        if (prompt is None) == (handler is None):
            said = "neither prompt= nor handler=" if prompt is None else "prompt= and handler="
            raise ScheduleError(
                f"ScheduledTask({str(schedule)!r}) has {said}. Give one of them: what the agent "
                "is asked, or what is called."
            )
        given = cast("Any", prompt)
        if prompt is not None and not (callable(given) or (isinstance(given, str) and given)):
            raise ScheduleError(f"prompt={prompt!r} is no text and makes none.")
        if handler is not None and not callable(handler):
            raise ScheduleError(
                f"handler={handler!r} cannot be called. Give the method itself: "
                "`handler=self.clean_up`."
            )
        self.prompt, self.handler = prompt, handler
        self.timezone = checked_zone(timezone, "timezone=")
        self.retry = None if retry is None else check_retry(retry)
        self.metadata = checked_metadata(metadata)


def checked_metadata(metadata: Any) -> dict[str, Any] | None:
    """What a user gave as `metadata=`, as JSON data."""
    if metadata is None:
        return None
    try:
        plain = json.to_storable(metadata)
    except ValueError as error:
        raise ScheduleError(f"metadata= cannot be stored: {error}.") from error
    if not isinstance(plain, dict):
        raise ScheduleError(
            f"metadata={metadata!r} is no object. Write `metadata={{'team': 'a'}}`."
        )
    return cast("dict[str, Any]", plain)


def define_scheduled_tasks(tasks: Mapping[str, ScheduledTask]) -> Mapping[str, ScheduledTask]:
    """The same tasks, checked here and now: where the module is loaded, not when an agent wakes."""
    for task_id, task in tasks.items():
        check_task_id(task_id)
        check_task(task_id, task)
    return tasks


class Declared(NamedTuple):
    """A task of one agent, ready to be compared with what is stored and to be run."""

    task: ScheduledTask
    timetable: Timetable
    """With its time zone."""
    retry: RetryOptions
    """Its own, or those of the class."""

    @property
    def hash(self) -> str:
        """Changes when anything does that can be compared."""
        task = self.task
        what = task.prompt if isinstance(task.prompt, str) else None
        kind = "handler" if task.prompt is None else "prompt"
        retry = msgspec.structs.asdict(self.retry)
        return _hash([str(self.timetable), retry, kind, what, task.metadata])

    def context(self, task_id: str, agent_id: str, run: TaskRun) -> ScheduledTaskContext:
        """What a run of it is told."""
        occurrence = f"{task_id}:{iso_time(run.scheduled_for)}"
        timetable = self.timetable
        interval = isinstance(timetable, IntervalTimetable)
        return ScheduledTaskContext(
            task_id=task_id,
            scheduled_for=run.scheduled_for,
            occurrence_key=occurrence,
            idempotency_key=f"{OF_TASKS}{owner_key(agent_id)}:{occurrence}",
            schedule=str(timetable),
            schedule_kind="interval" if interval else "wall-clock",
            timezone=None if interval else timetable.zone,
            metadata=self.task.metadata,
            attempt=run.attempt,
            signal=run.signal,
        )

    @property
    def recurs(self) -> dict[str, Any]:
        """What its job's row says of it."""
        return {"schedule": str(self.timetable), "hash": self.hash}


def check_task_id(task_id: Any) -> None:
    """Refuse what cannot be the name of a task."""
    if not isinstance(task_id, str) or _TASK_ID.fullmatch(task_id) is None:
        raise ScheduleError(
            f"{task_id!r} is no name of a task. Use letters, digits, `_` and `-`: `morning-digest`."
        )


def check_task(task_id: str, task: Any) -> None:
    """Refuse what is no task."""
    if not isinstance(task, ScheduledTask):
        raise ScheduleError(
            f"The task {task_id!r} is {task!r}. Write "
            '`ScheduledTask("every weekday at 09:00 in UTC", prompt="...")`.'
        )


def _hash(parts: list[Any]) -> str:
    return sha256(json.canonical(parts).encode()).hexdigest()[:16]
