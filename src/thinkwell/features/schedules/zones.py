"""Time zones by their IANA names, whatever the case they are written in."""

from __future__ import annotations

from datetime import tzinfo
from functools import cache
from typing import Any

from thinkwell.core.errors import ScheduleError
from thinkwell.core.spelling import did_you_mean


@cache
def canonical_zone(name: str) -> str:
    """The name of a zone as the IANA database spells it. Raises `ScheduleError`."""
    from zoneinfo import ZoneInfo, available_timezones

    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # not found, a folder, or no name at all
        pass
    else:
        return name
    # Only now: the list is read from the disk, and most names are right.
    known = {zone.casefold(): zone for zone in available_timezones()}
    found = known.get(name.casefold())
    if found is None:
        near = did_you_mean(name, known.values())
        raise ScheduleError(
            f"There is no time zone {name!r}.{near} Write an IANA name such as 'Europe/Berlin' or "
            "'UTC'."
        )
    return found


@cache
def zone_of(name: str) -> tzinfo:
    """The zone with that name, in any case."""
    from zoneinfo import ZoneInfo

    return ZoneInfo(canonical_zone(name))


def checked_zone(zone: Any, where: str) -> str | None:
    """What a user wrote as a zone, or None. `where` names the place in an error."""
    if zone is None:
        return None
    key = getattr(zone, "key", zone)  # a `ZoneInfo` knows its name
    if not isinstance(key, str) or not key:
        raise ScheduleError(
            f"{where} is {zone!r}. Write the IANA name of a time zone, for example 'Europe/Berlin'."
        )
    return canonical_zone(key)
