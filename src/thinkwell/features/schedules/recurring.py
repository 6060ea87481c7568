"""When a job that comes again does so, read from its row. Pure.

`recurs` of a job is one of `{"cron": "0 9 * * *", "tz": "UTC"}`, `{"every": 60.0}` and
`{"schedule": "every day at 09:00 in UTC", ...}`. Stored format: what was written once stays
readable.
"""

from __future__ import annotations

from typing import Any

from thinkwell.core.errors import ScheduleError
from thinkwell.features.schedules.cron import next_cron
from thinkwell.features.schedules.occurrences import next_occurrence
from thinkwell.features.schedules.timetable import parse_timetable
from thinkwell.journal.jobs import Job


def next_time(job: Job, now: float) -> float:
    """When a job whose run is over comes again: in the future, and after the time it was meant for.

    Raises `ScheduleError` if what is stored says no time.
    """
    return time_after(job.recurs or {}, now, job.scheduled_for)


def time_after(recurs: dict[str, Any], now: float, previous: float | None) -> float:
    """The first time after now, and after the one before: a clock that steps back repeats none."""
    match recurs:
        case {"every": int() | float() as seconds}:
            return now + seconds  # from its end on: runs of one schedule never overlap
        case {"cron": str(cron), "tz": str(zone)}:
            return next_cron(cron, zone, now if previous is None else max(now, previous))
        case {"schedule": str(text)}:
            return next_occurrence(parse_timetable(text), now, previous)
        case _:
            raise ScheduleError(f"Nothing says when it comes again: {recurs!r}.")
