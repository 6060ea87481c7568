"""What arrived: how many of the provider's deltas, and how long each was under way."""

from __future__ import annotations

import re
import time
from array import array

STAMP = re.compile(rb"~(\d+)")


def microseconds() -> int:
    """The clock the provider stamps with."""
    return time.monotonic_ns() // 1000


class Arrivals:
    """Counts deltas by their stamps, so merged ones count in full; keeps lags while `recording`."""

    def __init__(self) -> None:
        self.deltas = 0
        self.lags = array("q")
        self.recording = False
        self.firsts = array("q")
        """The lag of each turn's first delta."""
        self.waits = array("q")
        """How long whoever asked waited for it."""

    def take(self, text: bytes, *, first: bool) -> bool:
        """Text has arrived, `first` if none did before in this turn. Whether it held a delta."""
        now = microseconds()
        stamps = STAMP.findall(text)
        self.deltas += len(stamps)
        if first and stamps:
            self.firsts.append(now - int(stamps[0]))
        if self.recording:
            self.lags.extend([now - int(stamp) for stamp in stamps])
        return bool(stamps)
