"""What may be asked of a search, checked: an error says what to write instead (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypedDict, cast, get_args

from thinkwell.core.principal import Principal
from thinkwell.messages.validate import ROLES
from thinkwell.session.search.find import SearchMode

LIMIT, MOST_HITS = 20, 200
"""Results of one search: whoever wants to read everything reads the history."""


@dataclass(frozen=True, kw_only=True)
class ClientFilters:
    """What narrows a client's search down; times as ISO 8601."""

    limit: int = LIMIT
    roles: tuple[str, ...] = ()
    tool: str | None = None
    after: str | None = None
    before: str | None = None


class SearchOptions(TypedDict, total=False):
    """What narrows a search down."""

    limit: int
    mode: SearchMode
    roles: str | Sequence[str]
    """`"user"`, `"assistant"`, or several."""
    tool: str | None
    """Messages with a call of this tool."""
    after: datetime | float | None
    """Said at this time or later: a datetime with a time zone, or seconds since the epoch."""
    before: datetime | float | None
    """Said before this time."""
    session: str | None
    """One conversation of the agent; `""` is its own."""


def check_query(query: Any, call: str) -> str:
    """A text. Raises `TypeError`."""
    if not isinstance(query, str):
        raise TypeError(f'{call}({query!r:.60}): give the words to look for, as a text: "invoice".')
    return query


def check_limit(limit: Any, call: str) -> int:
    """How many results. Raises `ValueError`."""
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MOST_HITS:
        raise ValueError(f"{call}(limit={limit!r}): give a number from 1 to {MOST_HITS}.")
    return limit


def check_mode(mode: Any, call: str) -> SearchMode:
    """One of the modes. Raises `ValueError`."""
    known = get_args(SearchMode)
    if mode not in known:
        raise ValueError(f"{call}(mode={mode!r}): choose one of {', '.join(map(repr, known))}.")
    return cast("SearchMode", mode)


def check_roles(roles: Any, call: str) -> tuple[str, ...]:
    """The roles that count; none: all of them. Raises `ValueError`."""
    given = (roles,) if isinstance(roles, str) else tuple(roles or ())
    for role in given:
        if role not in ROLES:
            raise ValueError(f"{call}(roles={roles!r}): a role is one of {', '.join(ROLES)}.")
    return given


def seconds(moment: Any, name: str, call: str) -> float | None:
    """A time in seconds since the epoch. Raises `ValueError`."""
    if moment is None:
        return None
    if isinstance(moment, datetime):
        if moment.tzinfo is None:
            raise ValueError(
                f"{call}({name}={moment!r}) has no time zone. Write `datetime.now(UTC)`, or "
                "`.replace(tzinfo=UTC)`."
            )
        return moment.timestamp()
    if isinstance(moment, bool) or not isinstance(moment, int | float):
        raise ValueError(
            f"{call}({name}={moment!r}): give a datetime with a time zone, or seconds since the "
            "epoch."
        )
    return float(moment)


def id_of(principal: Any, call: str) -> str | None:
    """Whose messages are wanted; None: everybody's. Raises `TypeError`."""
    whose = principal.id if isinstance(principal, Principal) else principal
    if whose is not None and not (isinstance(whose, str) and whose):
        raise TypeError(f"{call}(principal={principal!r}): give a Principal, or its id.")
    return whose


def moment_of(text: str | None, name: str) -> datetime | None:
    """The time a model or a client wrote down. Raises `ValueError` that tells it how."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f'{name}={text!r} is no date. Write one like "2026-03-28", or with the time '
            '"2026-03-28T12:00:00+00:00".'
        ) from None
    return moment if moment.tzinfo is not None else moment.astimezone()
