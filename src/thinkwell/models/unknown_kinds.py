"""Providers grow: what they send that nobody here knows is passed over, and logged once."""

from __future__ import annotations

import logging

log = logging.getLogger("thinkwell.models")

_seen: set[tuple[str, str, str]] = set()
_MOST = 1_000
"""A provider that makes up a new name every time must not fill the memory."""


def note_unknown(provider: str, what: str, kind: str) -> None:
    """Log a kind of event, block or item the first time it comes."""
    key = (provider, what, kind)
    if key not in _seen and len(_seen) < _MOST:
        _seen.add(key)
        log.warning("%s sent an unknown %s, %r; it is passed over", provider, what, kind)
