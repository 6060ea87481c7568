"""When a timetable comes next: pure, and the same whatever the machine's own time zone.

A time that the clocks skip in spring comes at the first moment after the gap; one that they show
twice in autumn comes the first time only (spec/04 §11.2).
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from math import floor
from typing import Final

from thinkwell.core.errors import ScheduleError
from thinkwell.features.schedules.timetable import (
    IntervalTimetable,
    Timetable,
    WallClockTimetable,
)
from thinkwell.features.schedules.zones import zone_of

DAYS_AHEAD: Final = 370
LATEST: Final = 253_000_000_000.0
"""Some time in the year 9987: there is nothing to plan beyond, and dates end soon after."""


def next_occurrence(timetable: Timetable, now: float, previous: float | None = None) -> float:
    """The first time after now, and after `previous`: nothing is made up for, nothing comes twice.

    An interval counts from `previous`, so that it does not drift; without one from now.
    """
    if now > LATEST:
        raise ScheduleError("The clock of this machine is thousands of years ahead.")
    if isinstance(timetable, IntervalTimetable):
        return _next_interval(timetable.seconds, now, previous)
    return _next_wall(timetable, now if previous is None else max(now, previous))


def _next_interval(seconds: int, now: float, previous: float | None) -> float:
    if previous is None:
        return now + seconds
    steps = max(1, floor((now - previous) / seconds) + 1)
    # Dividing floats may land one step short of a moment that is exactly now.
    at = previous + steps * seconds
    return at if at > now else at + seconds


def _next_wall(timetable: WallClockTimetable, after: float) -> float:
    if timetable.zone is None:
        raise ScheduleError(f"The schedule '{timetable}' names no time zone.")
    zone = zone_of(timetable.zone)
    # A day earlier than today: what was skipped yesterday may come only now.
    first = datetime.fromtimestamp(after, zone).date() - timedelta(days=1)
    for offset in range(DAYS_AHEAD + 1):
        day = first + timedelta(days=offset)
        if day.weekday() in timetable.days:
            at = instant_of(day, timetable.hour, timetable.minute, timetable.zone)
            if at > after:
                return at
    raise ScheduleError(f"The schedule '{timetable}' does not come within a year.")


def instant_of(day: date, hour: int, minute: int, zone_name: str) -> float:
    """The moment at which clocks of a zone show a time on a day, or would have."""
    zone = zone_of(zone_name)
    local = datetime(day.year, day.month, day.day, hour, minute, tzinfo=zone)  # fold=0: the first
    instant = local.timestamp()
    shown = datetime.fromtimestamp(instant, zone)
    if shown.replace(tzinfo=None) == local.replace(tzinfo=None):
        return instant
    return _end_of_gap(local)


def _end_of_gap(local: datetime) -> float:
    """When the clocks were put forward over a time: the first moment after the gap.

    Read with the offset after the change (fold=1) the time lies before it, and the other way round.
    """
    before = floor(local.replace(fold=1).timestamp())
    after = floor(local.timestamp())
    offset = _offset(before, local)
    while after - before > 1:
        middle = (before + after) // 2
        if _offset(middle, local) == offset:
            before = middle
        else:
            after = middle
    return float(after)


def _offset(instant: int, local: datetime) -> timedelta | None:
    return datetime.fromtimestamp(instant, local.tzinfo).utcoffset()


def iso_time(moment: float) -> str:
    """A moment as it is written in keys: in UTC, to the second if it has no fraction."""
    shown = datetime.fromtimestamp(moment, UTC)
    return shown.isoformat(timespec="milliseconds" if shown.microsecond else "seconds").replace(
        "+00:00", "Z"
    )
