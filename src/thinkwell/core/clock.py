"""Time comes from here, so that tests can bring their own."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Where the time comes from."""

    def now(self) -> float:
        """Wall clock, seconds since the epoch. Stored."""
        ...

    def monotonic(self) -> float:
        """Seconds on a clock that never goes back. For durations."""
        ...


class SystemClock:
    """The clock of the machine."""

    def now(self) -> float:
        """Wall clock, seconds since the epoch."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds on a clock that never goes back."""
        return time.perf_counter()
