"""How much work there is at the moment: what a scrape of metrics asks of a host."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import msgspec

from thinkwell.agent.wiring import Activation, Shared
from thinkwell.core.errors import StoreError
from thinkwell.core.histogram import Histogram
from thinkwell.models.gate import LimitFigures


class OpenWork(msgspec.Struct, frozen=True, kw_only=True):
    """Turns and jobs that have not ended."""

    turns_waiting: int
    """Accepted and not running: in line, paused, or interrupted and not taken up yet."""
    jobs_due: int
    jobs_running: int
    jobs_held: int
    """Due, but nothing in this process can run them."""


class HostFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What a host can say about itself."""

    awake: Mapping[str, int]
    """Agents that are awake, by class."""
    turns_running: int
    chunks: int
    commits: Histogram
    lags: Histogram
    spent: Mapping[tuple[str, str], int]
    """Tokens and billionths of a dollar, by model and word (`PriceBook.spent`)."""
    open_work: OpenWork | None
    """None while the store cannot be read."""
    model_limits: Sequence[LimitFigures] = ()
    """Calls that run and wait, by limit."""


async def figures_of(shared: Shared, awake: Callable[[], Sequence[Activation]]) -> HostFigures:
    """The figures of a host. Only the open work is read from the store, away from the loop."""
    done = shared.commits.figures
    work = await _open_work(shared)
    return HostFigures(
        awake=Counter(each.agent.agent_class for each in awake()),
        turns_running=shared.crowd.running,
        chunks=done.chunks,
        commits=done.durations,
        lags=done.lags,
        spent=shared.models.prices.spent,
        open_work=work,
        model_limits=() if shared.gate is None else shared.gate.figures(),
    )


async def _open_work(shared: Shared) -> OpenWork | None:
    try:
        (row,) = await shared.store.fetch_in_background("open_work", {"now": shared.clock.now()})
    except StoreError:  # the rest is worth telling all the more
        return None
    return OpenWork(
        turns_waiting=max(row["turns"] - shared.crowd.running, 0),
        jobs_due=row["jobs_due"],
        jobs_running=row["jobs_running"],
        jobs_held=row["jobs_held"],
    )
