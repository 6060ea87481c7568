"""What a user says about a schedule, read and checked: its time (`When`) and payload. Pure."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from thinkwell.core import json
from thinkwell.core.errors import JobError, ScheduleError
from thinkwell.features.jobs.desk import checked_json
from thinkwell.features.schedules.cron import check_cron
from thinkwell.features.schedules.recurring import time_after
from thinkwell.features.schedules.zones import checked_zone
from thinkwell.journal.jobs import JobKind

LONGEST_INTERVAL: Final = 30 * 24 * 3600
_OLDEST: Final = 1e9
"""2001: a number of seconds below it was meant as a delay."""
_CHOICE: Final = (
    "Give one of at= (a datetime with a time zone), delay= (seconds), cron= (five fields) and "
    "every= (seconds)"
)


class When(NamedTuple):
    """When a schedule comes, and comes again."""

    kind: JobKind
    due_at: float
    recurs: dict[str, Any] | None = None


def read_when(
    now: float, *, at: Any = None, delay: Any = None, cron: Any = None, every: Any = None, tz: Any
) -> When:
    """When a schedule is to come. Raises `ScheduleError`, which says what to write."""
    said = {"at": at, "delay": delay, "cron": cron, "every": every}
    given = [name for name, value in said.items() if value is not None]
    if len(given) != 1:
        named = " and ".join(f"{name}=" for name in given) or "no time"
        raise ScheduleError(f"schedule() was given {named}. {_CHOICE}.")
    if tz is not None and cron is None:
        raise ScheduleError(f"schedule({given[0]}=..., tz={tz!r}): only cron= is read in a zone.")
    if at is not None:
        return When("scheduled", _moment(at))
    if delay is not None:
        return When("delayed", now + _seconds("delay", delay))
    if every is not None:
        seconds = _interval(every)
        return When("interval", now + seconds, {"every": seconds})
    zone = checked_zone(tz, "tz=") or "UTC"
    recurs = {"cron": check_cron(cron), "tz": zone}
    return When("cron", time_after(recurs, now, None), recurs)


def read_reference_when(when: Any) -> dict[str, Any]:
    """What `schedule(when, ...)` of the reference means: seconds, a date, or a cron expression."""
    if isinstance(when, str):
        return {"cron": when}
    if isinstance(when, datetime):
        return {"at": when}
    if _is_number(when) or isinstance(when, timedelta):
        return {"delay": when}
    raise ScheduleError(
        f"schedule({when!r}, ...): give seconds, a datetime with a time zone, or a cron expression."
    )


def read_payload(name: str, payload: Any) -> Any:
    """What the method is given, as JSON data. Raises `JobError` for what a row cannot hold."""
    try:
        # Sorted, so that equal payloads are equal rows: that is how the same schedule is found.
        return json.loads(json.canonical(checked_json(payload)))
    except ValueError as error:
        raise JobError(
            f"The payload for {name!r} cannot be stored: {error}. Give what JSON can hold, for "
            f"example an id: `{{'id': 7}}`."
        ) from error


def _moment(at: Any) -> float:
    if not isinstance(at, datetime):
        raise ScheduleError(
            f"at={at!r} is no datetime. Write `at=datetime(2026, 12, 1, 9, tzinfo=UTC)`, or "
            "delay= in seconds."
        )
    if at.tzinfo is None:
        raise ScheduleError(
            f"at={at!r} has no time zone. Write `datetime(..., tzinfo=UTC)` or "
            "`tzinfo=ZoneInfo('Europe/Berlin')`."
        )
    return at.timestamp()


def _seconds(name: str, value: Any) -> float:
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if not _is_number(seconds) or seconds < 0:
        raise ScheduleError(f"{name}={value!r}: give seconds, 0 or more.")
    if name == "delay" and seconds > _OLDEST:
        raise ScheduleError(
            f"delay={value!r} is more than thirty years. For a moment write "
            f"`at=datetime.fromtimestamp({value!r}, UTC)`."
        )
    return float(seconds)


def _interval(every: Any) -> float:
    seconds = _seconds("every", every)
    if not 0 < seconds <= LONGEST_INTERVAL:
        raise ScheduleError(
            f"every={every!r}: an interval is longer than 0 seconds and at most 30 days. For a "
            "longer one write `cron=`."
        )
    return seconds


def _is_number(value: Any) -> bool:
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return plain and math.isfinite(value)
