"""How long something took, counted in buckets: what a scraper of metrics reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf


class Histogram:
    """Durations by upper bound. Whoever measures adds to the numbers itself, without a call."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        """How many took longer than the bound before and at most this one; the last has none."""
        self.total = 0.0
        """Seconds of all of them together."""

    def buckets(self) -> Iterator[tuple[float, int]]:
        """Each upper bound with how many took at most that long; the last bound is infinite."""
        so_far = 0
        for bound, count in zip((*self.bounds, inf), self.counts, strict=True):
            so_far += count
            yield bound, so_far
