"""What group commit has done since the start, as plain numbers. Nobody reads them until a scrape.

They grow once per commit, with times that group commit reads for itself: a chunk costs nothing.
"""

from __future__ import annotations

from typing import Final

from thinkwell.core.histogram import Histogram

COMMIT_BOUNDS: Final = (0.0005, 0.001, 0.005, 0.025, 0.1, 0.5, 2.5)
LAG_BOUNDS: Final = (0.001, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5, 10.0)
"""Group commit holds chunks back for 5 ms, so most of them are below the third bound."""


class CommitFigures:
    """Commits, the chunks in them, and how long chunks waited to be stored."""

    def __init__(self) -> None:
        self.chunks = 0
        """Chunks that are stored."""
        self.durations = Histogram(COMMIT_BOUNDS)
        """From the beginning of a transaction to the end of its commit."""
        self.lags = Histogram(LAG_BOUNDS)
        """From the oldest chunk of a commit to the end of that commit."""
        self.oldest: float | None = None
        """Since when a chunk waits."""
