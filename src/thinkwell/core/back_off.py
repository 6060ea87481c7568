"""How long to wait before trying again (pure)."""

from __future__ import annotations

from collections.abc import Callable

_MOST_DOUBLINGS = 60
"""Beyond it a pause is at its longest anyhow, and the number would grow out of a float."""


def pause_after(
    attempt: int, *, base_delay: float, max_delay: float, random: Callable[[], float]
) -> float:
    """Seconds to wait after an attempt that failed, the first being 1.

    Exponential with full jitter: what failed together does not come back together.
    """
    return random() * min(base_delay * 2.0 ** min(attempt, _MOST_DOUBLINGS), max_delay)
