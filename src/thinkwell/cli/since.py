"""`--since 7d`: how far back a command looks."""

from __future__ import annotations

import re

import click

from thinkwell.core.clock import SystemClock

_UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 604800}


def begin_of(since: str | None) -> float:
    """When `7d`, `12h` or `30min` ago was; the beginning of time for None."""
    if since is None:
        return 0.0
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]+)", since.strip().lower())
    if found is None or found[2] not in _UNITS:
        raise click.BadParameter(
            f"{since!r} is no time. Write 7d, 12h or 30min.", param_hint="--since"
        )
    return SystemClock().now() - float(found[1]) * _UNITS[found[2]]
