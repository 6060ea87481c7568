"""`agent.costs`: what the turns of this agent have cost, read from their rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import get_args

from thinkwell.core.errors import ConfigurationError
from thinkwell.hooks.feature import Feature
from thinkwell.journal.costs import CostBy, CostLine


class Costs(Feature):
    """What this agent's turns have cost. Only ended turns are in it; what runs comes at its end."""

    name = "costs"

    async def today(self) -> CostLine:
        """Since midnight, UTC."""
        now = datetime.fromtimestamp(self.kit.clock.now(), UTC)
        return await self.total(now.replace(hour=0, minute=0, second=0, microsecond=0))

    async def total(self, since: datetime | timedelta | None = None) -> CostLine:
        """Everything, or what ended since a moment or in the last `timedelta`."""
        lines = await self.by("agent", since)
        return lines[0] if lines else CostLine(key=None)

    async def by(self, by: CostBy, since: datetime | timedelta | None = None) -> list[CostLine]:
        """One line per `"principal"`, `"day"` or `"model"`, the dearest first."""
        if by not in get_args(CostBy):
            known = ", ".join(map(repr, get_args(CostBy)))
            raise ConfigurationError(f"costs.by({by!r}) is unknown. Write one of {known}.")
        return await self.kit.costs_by(by, since=_moment(since, self.kit.clock.now()))


def _moment(since: datetime | timedelta | None, now: float) -> float:
    if since is None:
        return 0.0
    if isinstance(since, timedelta):
        return now - since.total_seconds()
    if since.tzinfo is None:
        raise ConfigurationError(
            f"costs were asked for since {since!r}, which has no time zone. Write "
            "`datetime(2026, 5, 1, tzinfo=UTC)`, or a `timedelta`."
        )
    return since.timestamp()
