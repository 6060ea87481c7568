"""`@scheduled`: tasks that are methods of a class; and all tasks of one agent, from wherever."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeVar, cast

from thinkwell.core.class_members import nearest_members
from thinkwell.core.errors import AgentDefinitionError, ScheduleError
from thinkwell.core.user_code import call_user
from thinkwell.features.schedules.declared import (
    Declared,
    Retrying,
    ScheduledTask,
    Scheduling,
    check_task,
    check_task_id,
    checked_metadata,
)
from thinkwell.features.schedules.retries import RetryOptions, check_retry
from thinkwell.features.schedules.task_context import positional
from thinkwell.features.schedules.timetable import (
    Timetable,
    WallClockTimetable,
    parse_timetable,
    zoned,
)
from thinkwell.features.schedules.zones import checked_zone

F = TypeVar("F", bound=Callable[..., Any])
_MARK: Final = "__thinkwell_scheduled__"


def scheduled(
    schedule: Scheduling,
    *,
    timezone: str | None = None,
    name: str | None = None,
    retry: Retrying = None,
    metadata: Mapping[str, Any] | None = None,
) -> Callable[[F], F]:
    """Call a method of an agent again and again: `@scheduled("every weekday at 09:00 in UTC")`.

    The method takes a `ScheduledTaskContext`, or nothing. `name` is the task's name, unless it is
    the method's.
    """
    if callable(schedule):
        raise ScheduleError('@scheduled needs a schedule. Write `@scheduled("every 15 minutes")`.')
    zone = checked_zone(timezone, "timezone=")
    default = "UTC" if isinstance(parse_timetable(schedule), WallClockTimetable) else None
    zoned(schedule, zone, default)  # refuses what no default could mend
    tries = None if retry is None else check_retry(retry)
    mark = ScheduleMark(parse_timetable(schedule), zone, name, tries, checked_metadata(metadata))

    def mark_method(method: F) -> F:
        if hasattr(method, _MARK):
            raise ScheduleError(f"{method.__name__} has @scheduled twice. Write a second method.")
        setattr(method, _MARK, mark)
        return method

    return mark_method


class ScheduleMark(NamedTuple):
    """What `@scheduled` says of a method."""

    schedule: Timetable
    timezone: str | None
    name: str | None
    retry: RetryOptions | None
    metadata: dict[str, Any] | None


def marked_methods(cls: type) -> Iterator[tuple[str, str, ScheduleMark]]:
    """Attribute, task and mark of every method with `@scheduled`, those of base classes too."""
    # At every start of an agent: `inspect.getattr_static` for each name would take longer than all
    # the rest of it.
    for attribute, member in sorted(nearest_members(cls).items()):
        mark = getattr(member, _MARK, None)
        if isinstance(mark, ScheduleMark):
            yield attribute, mark.name or attribute, mark


def check_scheduled_methods(cls: type, *, has_default_zone: bool) -> None:
    """Refuse a class whose tasks could never run. Raises `AgentDefinitionError`."""
    seen: dict[str, str] = {}
    for attribute, task_id, mark in marked_methods(cls):
        where = f"{cls.__name__}.{attribute}"
        try:
            check_task_id(task_id)
            zoned(mark.schedule, mark.timezone, "UTC" if has_default_zone else None)
        except ScheduleError as error:
            raise AgentDefinitionError(f"{where}, marked with @scheduled: {error}") from None
        if task_id in seen:
            raise AgentDefinitionError(
                f"{where} and {cls.__name__}.{seen[task_id]} are both the task {task_id!r}. Give "
                "one of them another name: `@scheduled(..., name=...)`."
            )
        seen[task_id] = attribute
        _check_method(where, getattr(cls, attribute))


def _check_method(where: str, method: Any) -> None:
    if not inspect.isfunction(method):
        raise AgentDefinitionError(f"{where}, marked with @scheduled, is no method.")
    try:
        inspect.signature(method).bind(*(None,) * min(2, positional(method)))
    except TypeError:
        raise AgentDefinitionError(
            f"{where}{inspect.signature(method)} cannot be called by its schedule. Write "
            f"`async def {method.__name__}(self, ctx)`."
        ) from None


async def declared_tasks(agent: Any) -> dict[str, Declared]:
    """The tasks that an agent declares, by name. Raises `ScheduleError` for what is none."""
    default = None
    if (get_zone := getattr(agent, "get_default_timezone", None)) is not None:
        default = await call_user("get_default_timezone", get_zone)
    tasks = {
        task_id: ScheduledTask(
            mark.schedule,
            handler=getattr(agent, attribute),
            timezone=mark.timezone,
            retry=mark.retry,
            metadata=mark.metadata,
        )
        for attribute, task_id, mark in marked_methods(agent.__class__)
    }
    if (get_tasks := getattr(agent, "get_scheduled_tasks", None)) is not None:
        _merge(tasks, await call_user("get_scheduled_tasks", get_tasks), type(agent).__name__)
    tries = getattr(agent, "retry_options", RetryOptions())
    return {
        task_id: Declared(task, _zoned(task_id, task, default), task.retry or tries)
        for task_id, task in tasks.items()
    }


def _merge(tasks: dict[str, ScheduledTask], returned: Any, cls: str) -> None:
    if not isinstance(returned, Mapping):
        raise ScheduleError(
            f"{cls}.get_scheduled_tasks() returned {returned!r}. Return tasks by name: "
            '`{"digest": ScheduledTask("every weekday at 09:00 in UTC", prompt="...")}`.'
        )
    for task_id, task in cast("Mapping[Any, Any]", returned).items():
        check_task_id(task_id)
        check_task(task_id, task)
        if task_id in tasks:
            raise ScheduleError(
                f"The task {task_id!r} is a method with @scheduled and stands in "
                f"{cls}.get_scheduled_tasks() too. Rename one of them."
            )
        tasks[task_id] = task


def _zoned(task_id: str, task: ScheduledTask, default: Any) -> Timetable:
    try:
        return zoned(task.schedule, task.timezone, default)
    except ScheduleError as error:
        raise ScheduleError(f"The task {task_id!r}: {error}") from None
