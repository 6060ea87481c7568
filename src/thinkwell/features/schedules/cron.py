"""Cron expressions: five fields, minutes, in a time zone. The one place that knows `cronsim`.

`cronsim` has the rules of Debian's cron: a fixed time that the clocks skip comes right after the
gap, one that they show twice comes once. What names its hours in another way (`*/30 1 * * *`) is
held to the same here.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from importlib import import_module
from typing import Any, cast

from thinkwell.core.errors import ScheduleError
from thinkwell.features.schedules.zones import zone_of

FIELDS = 5
EXAMPLE = (
    "Write five fields (minute, hour, day, month, day of the week), for example `0 9 * * 1-5`."
)


def check_cron(text: Any) -> str:
    """The expression with single blanks. Raises `ScheduleError` for what is none."""
    if not isinstance(text, str):
        raise ScheduleError(f"cron={text!r} is no text. {EXAMPLE}")
    fields = text.split()
    if len(fields) != FIELDS:
        raise ScheduleError(f"The cron expression {text!r} has {len(fields)} fields. {EXAMPLE}")
    next_cron(" ".join(fields), "UTC", 0.0)
    return " ".join(fields)


def next_cron(text: str, zone: str, after: float) -> float:
    """The first moment after `after` that a cron expression names in a zone."""
    cronsim = import_module("cronsim")  # on first use: an agent without cron does not load it
    start = datetime.fromtimestamp(after, zone_of(zone))
    names_hours = text.split()[1] != "*"
    try:
        moments = cast("Iterator[datetime]", cronsim.CronSim(text, start))
        for moment in moments:
            repeated = moment.fold and names_hours  # the clocks show this hour again
            if not repeated and moment.timestamp() > after:
                return moment.timestamp()
    except cronsim.CronSimError as error:
        raise ScheduleError(f"The cron expression {text!r} is wrong: {error}. {EXAMPLE}") from None
    raise ScheduleError(f"The cron expression {text!r} names a day that never comes. {EXAMPLE}")
