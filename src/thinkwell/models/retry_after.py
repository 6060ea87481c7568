"""The `Retry-After` header: seconds, or the time to come back as an HTTP date."""

from __future__ import annotations

from email.utils import parsedate_to_datetime


def read_retry_after(value: str | None, now: float) -> float | None:
    """Seconds from `now`; None if the header is missing or says nothing."""
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
