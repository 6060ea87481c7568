"""What may be said about a job: an error names the argument and what to write instead.

Types alone do not keep a text or a `timedelta` out, and a wrong value in a row would fail later, in
the runner, where nobody sees who enqueued it.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

from thinkwell.core.errors import JobError
from thinkwell.journal.jobs import JobStatus

_OLDEST = 1e9
"""2001: no job is due before that, but a delay that was given as `due` is always less."""
STATUSES: tuple[str, ...] = get_args(JobStatus)


def check_shapes(
    name: Any, key: Any, max_attempts: Any, *, base_delay: Any, max_delay: Any
) -> None:
    """Raises `JobError` for what is no job, whichever method it is for."""
    if not isinstance(name, str):
        of = getattr(name, "__name__", None)
        write = f"enqueue({of!r})" if isinstance(of, str) else 'enqueue("send_mail")'
        raise JobError(
            f"enqueue() was given {name!r}. Give the name of the method, which is what a row can "
            f"hold: `{write}`."
        )
    if key is not None and not (isinstance(key, str) and key):
        raise JobError(f"key={key!r} is no text. Write `key={str(key) or 'receipt-7'!r}`.")
    if isinstance(max_attempts, bool) or not isinstance(max_attempts, int) or max_attempts < 1:
        raise JobError(
            f"max_attempts={max_attempts!r} would never run {name!r}. Give a whole number, 1 or "
            "more."
        )
    if not (_is_number(base_delay) and _is_number(max_delay) and 0 < base_delay <= max_delay):
        raise JobError(
            f"base_delay={base_delay!r} and max_delay={max_delay!r} are no pauses. Give seconds "
            "above 0, base_delay the smaller one."
        )


def check_status(status: Any) -> None:
    """Raises `JobError` for a status that no job can have: it would find none, and say nothing."""
    if status is not None and status not in STATUSES:
        raise JobError(f"No job has the status {status!r}. There are: {', '.join(STATUSES)}.")


def due_at(now: float, due: Any, delay: Any) -> float:
    """When a job may begin, in seconds since the epoch."""
    if due is not None and delay is not None:
        raise JobError("enqueue() was given due= and delay=. Give one of them.")
    if due is not None:
        return _moment(now, due)
    if isinstance(delay, timedelta):
        delay = delay.total_seconds()
    if delay is not None and not (_is_number(delay) and delay >= 0):
        raise JobError(f"enqueue() was given delay={delay!r}. Give seconds, 0 or more.")
    return now + (delay or 0.0)


def _moment(now: float, due: Any) -> float:
    if isinstance(due, datetime):
        if due.tzinfo is None:
            raise JobError(
                f"due={due!r} has no time zone. Write `datetime.now(UTC) + timedelta(...)`, or "
                "give delay= in seconds."
            )
        return due.timestamp()
    if not _is_number(due):
        raise JobError(
            f"enqueue() was given due={due!r}. Give a datetime with a time zone "
            "(`datetime(2026, 12, 1, tzinfo=UTC)`), or seconds since the epoch."
        )
    if due < _OLDEST <= now:
        raise JobError(
            f"enqueue() was given due={due!r}, which is in {_year(due)}. Give delay={due!r} for a "
            "job that begins so many seconds from now."
        )
    return float(due)


def _year(moment: float) -> str:
    try:
        return str(datetime.fromtimestamp(moment, UTC).year)
    except (ValueError, OverflowError, OSError):
        return "no year"


def _is_number(value: Any) -> bool:
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return plain and math.isfinite(value)
