"""When a provider wants to be asked again: what its response headers say (pure).

Two spellings are known: `x-ratelimit-remaining-requests` with `x-ratelimit-reset-requests: 6m0s`
(OpenAI and most that speak its protocol), and `anthropic-ratelimit-requests-remaining` with
`anthropic-ratelimit-requests-reset`, a time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime

_LIMITS = (
    *(f"x-ratelimit-{{}}-{what}" for what in ("requests", "tokens")),
    *(
        f"anthropic-ratelimit-{what}-{{}}"
        for what in ("requests", "tokens", "input-tokens", "output-tokens")
    ),
)
"""The names of the headers about each limit, but for the word `remaining` or `reset`."""
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
    return _reset_of_spent(found, now)


def used_up_for(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds until a limit is reset that an answer's headers say is used up; None if none is."""
    return _reset_of_spent({name.lower(): value for name, value in headers.items()}, now)


def _reset_of_spent(found: Mapping[str, str], now: float) -> float | None:
    """All limits are told with every answer: only those with nothing left say when to come back."""
    spent = [name for name in _LIMITS if found.get(name.format("remaining")) == "0"]
    values = [found.get(name.format("reset")) for name in spent]
    resets = [reset for value in values if (reset := read_reset(value, now)) is not None]
    return max(resets, default=None)


def read_reset(value: str | None, now: float) -> float | None:
    """Seconds of a reset header: a duration such as `6m0s`, or a time such as RFC 3339 has it."""
    seconds = read_duration(value)
    if seconds is not None:
        return seconds
    try:
        return max(datetime.fromisoformat((value or "").strip()).timestamp() - now, 0.0)
    except (ValueError, OverflowError):
        return None


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
