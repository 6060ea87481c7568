"""`every`: the same timetables as the texts, in a form that type checkers read (M-084).

`every.weekday.at(9, 30, "Europe/Berlin")` is `every weekday at 09:30 in Europe/Berlin`. A wrong
hour, day or unit is an error in the editor; whatever gets past that is one when the line runs.
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias, get_args

from thinkwell.core.errors import ScheduleError
from thinkwell.features.schedules.timetable import (
    EVERY_DAY,
    WEEKDAYS,
    IntervalTimetable,
    WallClockTimetable,
    parse_timetable,
)
from thinkwell.features.schedules.zones import checked_zone

# fmt: off
Hour: TypeAlias = Literal[
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23,
]
Minute: TypeAlias = Literal[
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25,
    26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49,
    50, 51, 52, 53, 54, 55, 56, 57, 58, 59,
]
# fmt: on
Day: TypeAlias = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
_DAYS: Final[tuple[str, ...]] = get_args(Day)


class DaysAt:
    """Some days of the week, still without a time: `.at(9, 30)`."""

    def __init__(self, days: frozenset[int]) -> None:
        self._days = days

    def at(self, hour: Hour, minute: Minute = 0, timezone: str | None = None) -> WallClockTimetable:
        """At this time of these days, in that zone, or in the one of the task or the agent."""
        zone = checked_zone(timezone, "timezone=")
        for value, most, name in ((hour, 23, "hour"), (minute, 59, "minute")):
            if type(value) is not int or not 0 <= value <= most:
                raise ScheduleError(
                    f"at({hour!r}, {minute!r}): the {name} is a whole number from 0 to {most}. "
                    "Write `every.weekday.at(9, 30)`."
                )
        return WallClockTimetable(self._days, hour, minute, zone)


class Every:
    """How a timetable begins: `every.day`, `every.weekday`, `every.week_on(...)`, and intervals."""

    day: Final = DaysAt(EVERY_DAY)
    weekday: Final = DaysAt(WEEKDAYS)
    minute: Final = IntervalTimetable(1, "minute")
    hour: Final = IntervalTimetable(1, "hour")

    def week_on(self, first: Day, *more: Day) -> DaysAt:
        """Each week on these days: `every.week_on("mon", "thu").at(9)`."""
        days: list[Any] = [first, *more]
        unknown = [day for day in days if day not in _DAYS]
        if unknown or len(set(days)) < len(days):
            raise ScheduleError(
                f"week_on({', '.join(map(repr, days))}): give each day once, as one of "
                f"{', '.join(_DAYS)}."
            )
        return DaysAt(frozenset(_DAYS.index(day) for day in days))

    def minutes(self, count: int) -> IntervalTimetable:
        """Every so many minutes."""
        return _interval(count, "minute")

    def hours(self, count: int) -> IntervalTimetable:
        """Every so many hours."""
        return _interval(count, "hour")


def _interval(count: Any, unit: Literal["minute", "hour"]) -> IntervalTimetable:
    if type(count) is not int or count < 1:
        raise ScheduleError(
            f"every.{unit}s({count!r}): give a whole number, 1 or more, for example "
            f"`every.{unit}s(15)`."
        )
    interval = IntervalTimetable(count, unit)
    parse_timetable(str(interval))  # refuses one that is too long
    return interval


every: Final = Every()
"""The beginning of a typed timetable: `every.weekday.at(9, 30, "Europe/Berlin")`."""
