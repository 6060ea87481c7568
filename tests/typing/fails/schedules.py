# type: ignore
"""Timetables that never were, and tasks without a prompt or with too much (M-084)."""

from __future__ import annotations

from thinkwell.schedules import ScheduledTask, define_scheduled_tasks, every

# E pyright: "Literal[24]" is not assignable to type "Hour"
# E mypy: incompatible type "Literal[24]"
every.weekday.at(24)
# E pyright: "Literal[60]" is not assignable to type "Minute"
# E mypy: incompatible type "Literal[60]"
every.day.at(9, 60)
# E pyright: Cannot access attribute "weekdya" for class "Every"
# E mypy: "Every" has no attribute "weekdya"
every.weekdya.at(9)
# E pyright: "Literal['monday']" is not assignable to type "Day"
# E mypy: incompatible type "Literal['monday']"
every.week_on("monday")
# E pyright: "float" is not assignable to "int"
# E mypy: has incompatible type "float"; expected "int"
every.minutes(0.5)
# E pyright: Type "DaysAt" is not assignable to type "Scheduling"
# E mypy: No overload variant of "ScheduledTask" matches argument types "DaysAt"
ScheduledTask(every.day, prompt="Without a time of day.")
# E pyright: No overloads for "__init__" match
# E mypy: No overload variant of "ScheduledTask" matches argument type
ScheduledTask(every.hour)
# E pyright: No overloads for "__init__" match
# E mypy: No overload variant of "ScheduledTask" matches argument types
ScheduledTask(every.hour, prompt="Hello", handler=print)
# E pyright: is not assignable to type "Handler"
# E mypy: No overload variant of "ScheduledTask" matches argument types
ScheduledTask(every.hour, handler="clean_up")
# E pyright: is not assignable to "ScheduledTask"
# E mypy: Dict entry 0 has incompatible type
define_scheduled_tasks({"digest": "every day at 09:00"})
