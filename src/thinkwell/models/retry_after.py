"""When a provider wants to be asked again: what its response headers say (pure)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

_RESETS = ("x-ratelimit-reset-requests", "x-ratelimit-reset-tokens")
_DURATION = re.compile(r"(?:(\d+(?:\.\d+)?)(ms|h|m|s))")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def retry_hint(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds from `now`; None if no header says anything."""
    found = {name.lower(): value for name, value in headers.items()}
    milliseconds = read_retry_after(found.get("retry-after-ms"), now)
    if milliseconds is not None:
        return milliseconds / 1000
    seconds = read_retry_after(found.get("retry-after"), now)
    if seconds is not None:
        return seconds
    # Both limits are told with every answer; the call was refused by one that is used up.
    spent = [name for name in _RESETS if found.get(name.replace("reset", "remaining")) == "0"]
    resets = [reset for name in spent if (reset := read_duration(found.get(name))) is not None]
    return max(resets, default=None)


def read_retry_after(value: str | None, now: float) -> float | None:
    """`Retry-After`: seconds, or the time to come back as an HTTP date."""
    if value is None:
        return None
    text = value.strip()
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(text).timestamp() - now
        except (ValueError, OverflowError):
            return None
    return max(seconds, 0.0) if seconds < float("inf") else None


def read_duration(value: str | None) -> float | None:
    """Seconds of a text such as `6m0s` or `20ms`; None if it is not one."""
    text = (value or "").strip()
    pieces = _DURATION.findall(text)
    if not pieces or "".join(number + unit for number, unit in pieces) != text:
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in pieces)
