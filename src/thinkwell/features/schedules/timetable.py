"""The small language of recurring tasks: `every 15 minutes`, `every weekday at 09:00 in UTC`.

    schedule = "every" ( interval | wall )
    interval = N ("minute" | "minutes" | "hour" | "hours")
    wall     = days "at" HH ":" MM [ "in" ZONE ]
    days     = "day" | "weekday" | "week on" day { "," day }

Blanks and case do not matter. Pure: text goes in, a timetable or an error that quotes the text
comes out (spec/04 §11.1).
"""

from __future__ import annotations

import re
from typing import Any, Final, Literal, NoReturn, TypeAlias

import msgspec

from thinkwell.core.errors import ScheduleError
from thinkwell.core.spelling import did_you_mean
from thinkwell.features.schedules.zones import canonical_zone, checked_zone

Unit: TypeAlias = Literal["minute", "hour"]
DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_LONG: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
EVERY_DAY: Final = frozenset(range(7))
WEEKDAYS: Final = frozenset(range(5))
SECONDS: Final[dict[Unit, int]] = {"minute": 60, "hour": 3600}
LONGEST: Final = 366 * 24 * 3600
"""Seconds of the longest interval: beyond a year it is a date that somebody means."""
FORMS: Final = (
    "`every 15 minutes`, `every 2 hours`, `every day at 09:00 in Europe/Berlin`, "
    "`every weekday at 09:00 in Europe/Berlin` or "
    "`every week on mon, thu at 09:00 in Europe/Berlin`"
)


class IntervalTimetable(msgspec.Struct, frozen=True):
    """Every so many minutes or hours, counted from the time before."""

    count: int
    unit: Unit

    def __str__(self) -> str:
        return f"every {self.count} {self.unit}{'' if self.count == 1 else 's'}"

    @property
    def seconds(self) -> int:
        """From one time to the next."""
        return self.count * SECONDS[self.unit]


class WallClockTimetable(msgspec.Struct, frozen=True):
    """At one time of some days of the week, as clocks in a time zone show it."""

    days: frozenset[int]
    """0 is Monday."""
    hour: int
    minute: int
    zone: str | None = None
    """None until somebody says which: the task, or its agent's default."""

    def __str__(self) -> str:
        inside = "" if self.zone is None else f" in {self.zone}"
        return f"every {self._days} at {self.hour:02}:{self.minute:02}{inside}"

    @property
    def _days(self) -> str:
        if self.days == EVERY_DAY:
            return "day"
        if self.days == WEEKDAYS:
            return "weekday"
        return f"week on {', '.join(DAYS[day] for day in sorted(self.days))}"


Timetable: TypeAlias = IntervalTimetable | WallClockTimetable

_INTERVAL = re.compile(r"every ([0-9]+) ([a-z]+)")
_UNIT_ALONE = re.compile(r"every (minute|hour)s?")
_WALL = re.compile(
    r"every (day|weekday|week on (?P<days>.*?)) at (?P<time>\S+)(?: in (?P<zone>.*))?"
)
_TIME = re.compile(r"([0-9]{2}):([0-9]{2})")
_ZONE = re.compile(r"[A-Za-z_][A-Za-z0-9_+/-]*")


def parse_timetable(text: Any) -> Timetable:
    """Read a schedule. Raises `ScheduleError`, which quotes the text and says what to write."""
    if isinstance(text, IntervalTimetable | WallClockTimetable):
        return text
    if not isinstance(text, str):
        raise ScheduleError(f"{text!r} is no schedule. Write a text: {FORMS}.")
    written = " ".join(text.split())
    if not written.isascii():  # letters whose lower case is an ASCII letter are not meant
        _refuse(text, "it has characters that no schedule has")
    lowered = written.lower()
    if (interval := _INTERVAL.fullmatch(lowered)) is not None:
        return _interval(text, interval[1], interval[2])
    if (unit := _UNIT_ALONE.fullmatch(lowered)) is not None:
        _refuse(text, "it does not say how many", f"every 1 {unit[1]}")
    if (wall := _WALL.fullmatch(lowered)) is not None:
        zone = None if wall["zone"] is None else written[wall.start("zone") :]
        return _wall(text, wall, zone)
    return _explain(text, lowered)


def zoned(text: Any, timezone: Any = None, default: Any = None) -> Timetable:
    """Read a schedule and give it its zone: its own, else the task's, else the default.

    Raises `ScheduleError` for a time of day without any, for an interval with one, and for two
    that differ.
    """
    timetable = parse_timetable(text)
    given = checked_zone(timezone, "timezone=")
    if isinstance(timetable, IntervalTimetable):
        if given is not None:
            _refuse(text, f"an interval has no time zone, and timezone={given!r} is given")
        return timetable
    if timetable.zone is not None and given is not None and timetable.zone != given:
        _refuse(text, f"it says {timetable.zone}, but timezone={given!r}. Say it once")
    zone = timetable.zone or given or checked_zone(default, "get_default_timezone()")
    if zone is None:
        _refuse(text, "it names no time zone", f"{timetable} in Europe/Berlin")
    return msgspec.structs.replace(timetable, zone=zone)


def _interval(text: str, number: str, unit: str) -> IntervalTimetable:
    singular = unit.removesuffix("s")
    if singular not in ("minute", "hour"):
        near = did_you_mean(unit, ("minutes", "hours"))
        _refuse(text, f"an interval has minutes or hours.{near}".rstrip("."))
    if number.startswith("0"):
        _refuse(text, "a number begins with 1 to 9")
    count = int(number[:10])
    if (unit == singular) != (count == 1):
        _refuse(text, "the number and the word do not agree", _plural(count, singular))
    if len(number) > 9 or count * SECONDS[singular] > LONGEST:
        _refuse(text, "an interval is at most a year long")
    return IntervalTimetable(count, singular)


def _plural(count: int, unit: str) -> str:
    return f"every {count} {unit}{'' if count == 1 else 's'}"


def _wall(text: str, found: re.Match[str], zone: str | None) -> WallClockTimetable:
    time = _TIME.fullmatch(found["time"])
    if time is None:
        _refuse(text, f"{found['time']!r} is no time. Write two digits each", "every day at 09:05")
    hour, minute = int(time[1]), int(time[2])
    if hour > 23 or minute > 59:
        _refuse(text, f"there is no time {found['time']}: 00:00 to 23:59")
    named = {"day": EVERY_DAY, "weekday": WEEKDAYS}
    days = named[found[1]] if found["days"] is None else _read_days(text, found["days"])
    return WallClockTimetable(days, hour, minute, None if zone is None else _zone(text, zone))


def _read_days(text: str, listed: str) -> frozenset[int]:
    days: list[int] = []
    for word in (part.strip() for part in listed.split(",")):
        if word not in (*DAYS, *_LONG):
            near = did_you_mean(word, _LONG)
            _refuse(text, f"{word!r} is no day of the week.{near}".rstrip("."))
        days.append((DAYS if word in DAYS else _LONG).index(word))
    if len(set(days)) < len(days):
        _refuse(text, "it names a day twice")
    return frozenset(days)


def _zone(text: str, zone: str) -> str:
    if _ZONE.fullmatch(zone) is None:
        _refuse(text, f"{zone!r} is no time zone", "every day at 09:00 in Europe/Berlin")
    try:
        return canonical_zone(zone)
    except ScheduleError as error:
        raise ScheduleError(f"The schedule {text!r} cannot be read: {error}") from None


def _explain(text: str, lowered: str) -> NoReturn:
    """What is wrong with a text that is none of the forms."""
    if re.fullmatch(r"every [0-9]+ (minute|hour)s? in .+", lowered):
        _refuse(text, "an interval has no time zone")
    if re.fullmatch(r"every (day|weekday|week on .+)", lowered):
        _refuse(text, "it does not say when", f"{lowered} at 09:00 in Europe/Berlin")
    if (day := re.fullmatch(rf"every ({'|'.join((*DAYS, *_LONG))})\b(.*)", lowered)) is not None:
        _refuse(text, "days of the week come after `week on`", f"every week on {day[1]}{day[2]}")
    if not lowered.startswith("every "):
        _refuse(text, "it does not begin with `every`")
    near = did_you_mean(lowered.split(" ")[1], ("day", "weekday", "week"))
    _refuse(text, f"it is none of the forms.{near}".rstrip("."))


def _refuse(text: Any, why: str, instead: str | None = None) -> NoReturn:
    write = f"`{instead}`" if instead is not None else FORMS
    raise ScheduleError(f"The schedule {str(text)!r} cannot be read: {why}. Write {write}.")
