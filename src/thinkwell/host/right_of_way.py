"""Turns go first: somebody waits for them, and for jobs nobody does."""

from __future__ import annotations

import asyncio

from thinkwell.core.clock import Clock
from thinkwell.turn.ask.policy import Crowd

ROUNDS = 30
"""Rounds of the event loop between two jobs that begin while turns run. A turn needs some of them
for each commit and each chunk; as long as all turns wait for their models, a round takes no time.
"""
LINGER = 0.1
"""Seconds after the last turn: the next one of a conversation must not find a rush of jobs."""


class RightOfWay:
    """Lets jobs begin one by one while turns run on this host, and all at once while none does."""

    def __init__(self, crowd: Crowd, clock: Clock) -> None:
        self._crowd = crowd
        self._clock = clock
        self._one_begins = asyncio.Lock()
        self._quiet_since = float("-inf")

    async def give_way(self) -> None:
        """Before a job begins. It never waits for a turn to end: jobs are slowed, not starved."""
        async with self._one_begins:
            for _ in range(ROUNDS):
                if not self._turns_run():
                    return
                await asyncio.sleep(0)

    def _turns_run(self) -> bool:
        now = self._clock.monotonic()
        if self._crowd.running:
            self._quiet_since = now + LINGER
        return now < self._quiet_since
