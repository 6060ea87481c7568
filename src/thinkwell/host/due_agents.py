"""Whose jobs are due: what has been read of the wake index, and who is served now.

An agent is in one of two places: it waits to be served, or it is served. What becomes due for one
that is served is only noted, and it waits again afterwards: whoever is counted twice would take up
the room that lets the index be read on.
"""

from __future__ import annotations

import asyncio

from thinkwell.core.clock import Clock
from thinkwell.journal.jobs import START, Place, due_agents, next_due
from thinkwell.store.base import Reader

PIECE = 256
"""Rows of the wake index that are read at once."""


class DueAgents:
    """The line of agents with due jobs. At most `most` are served at a time."""

    def __init__(self, reader: Reader, clock: Clock, most: int) -> None:
        self._reader = reader
        self._clock = clock
        self._most = most
        self._read = START
        self._waiting: dict[str, None] = {}  # in the order their jobs became due
        self._served: dict[str, bool] = {}  # and whether to look at them once more

    def add(self, agent_id: str) -> None:
        """Something of this agent is due."""
        if agent_id in self._served:
            # It may have found nothing more just before this became due.
            self._served[agent_id] = True
        else:
            self._waiting[agent_id] = None

    def add_at(self, agent_id: str, due_at: float) -> None:
        """Something of this agent is due then."""
        if due_at <= self._clock.now():
            self.add(agent_id)
        elif due_at <= self._read.due_at:  # the clock was set back: read the index from there again
            self._read = Place(due_at, 0)

    async def take(self) -> list[str]:
        """Who is to be served now: they are, until `done`."""
        now = self._clock.now()
        while len(self._waiting) + len(self._served) < self._most:
            agents, self._read = await due_agents(self._reader, self._read, now=now, limit=PIECE)
            for agent_id in agents:
                self.add(agent_id)
            if not agents:
                break
            await asyncio.sleep(0)  # a long index must not hold up everybody else
        taken = list(self._waiting)[: self._most - len(self._served)]
        for agent_id in taken:
            del self._waiting[agent_id]
            self._served[agent_id] = False
        return taken

    def done(self, agent_id: str) -> None:
        """An agent is served no more."""
        if self._served.pop(agent_id):
            self.add(agent_id)

    def is_served(self, agent_id: str) -> bool:
        """Whether it is served now."""
        return agent_id in self._served

    async def next_at(self) -> float | None:
        """When the next job is due; None if none is, or nobody more can be served."""
        if len(self._served) >= self._most:
            return None  # whoever is done first makes room, and the index is read on then
        if self._waiting:
            return self._clock.now()
        return await next_due(self._reader, self._read)
