"""What several runs gave: one value each, shown as their median with the least and the most."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spread:
    """One figure, run by run."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """The one that is compared with a target."""
        return statistics.median(self.values)

    @property
    def low(self) -> float:
        """The least."""
        return min(self.values)

    @property
    def high(self) -> float:
        """The most."""
        return max(self.values)

    def over(self, other: Spread) -> Spread:
        """The ratio to another figure of the same runs, run by run."""
        pairs = zip(self.values, other.values, strict=False)
        return Spread(tuple(own / theirs for own, theirs in pairs))

    def show(self, text: Callable[[float], str]) -> str:
        """The median and, if there were several runs, how far they were apart."""
        if len(self.values) == 1:
            return text(self.median)
        return f"{text(self.median)} ({text(self.low)} to {text(self.high)})"
