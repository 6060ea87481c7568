"""Where the live rows of interrupted turns stand, found out once for all of them.

The live journal has no index by turn: whatever is appended would pay for it. One turn is found by
a scan from where it began. But a crash may leave a thousand turns with a hundred rows each, and a
thousand scans over all of those would take minutes. So the first turn that is taken up looks
through the journal, a slice at a time, and notes the place of everybody's rows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from thinkwell.core import json
from thinkwell.store.base import Reader, Row

_SLICE = 5_000
"""Positions that one statement looks at: a few milliseconds."""


class Ends(NamedTuple):
    """From where to where the journal has been looked through."""

    first: int
    last: int


class LeftRows:
    """The places of rows that were in the live journal when the first turn was taken up."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._one_looks = asyncio.Lock()
        self._looked: Ends | None = None
        self._places: dict[tuple[str, str], list[int]] = {}

    async def take(self, agent_id: str, turn: str, start: int) -> Sequence[Row]:
        """The live rows of a turn from `start` on, in order. Its places are forgotten."""
        looked = await self._look()
        if start < looked.first:  # somebody has brought it in since: an agent was imported
            return await self._scan(agent_id, turn, start)
        places = self._places.pop((agent_id, turn), [])
        known: Sequence[Row] = ()
        if places:
            named = {"agent": agent_id, "turn": turn, "places": json.dumps(places)}
            known = await self._reader.fetch_all("journal_rows_at", named)
        return [*known, *await self._scan(agent_id, turn, max(start, looked.last + 1))]

    async def _scan(self, agent_id: str, turn: str, start: int) -> Sequence[Row]:
        named = {"agent": agent_id, "turn": turn, "start": start}
        return await self._reader.fetch_all("read_journal", named)

    async def _look(self) -> Ends:
        async with self._one_looks:
            if self._looked is None:
                self._looked = await self._look_through()
            return self._looked

    async def _look_through(self) -> Ends:
        needed = await self._reader.fetch_one("needed_journal", {})
        ends = await self._reader.fetch_one("journal_ends", {})
        first = 0 if needed is None else needed["pos"] or 0
        last = first - 1 if ends is None else ends["last"] or first - 1
        for start in range(first, last + 1, _SLICE):
            bounds = {"start": start, "stop": min(start + _SLICE, last + 1)}
            for row in await self._reader.fetch_all("journal_places", bounds):
                places = self._places.setdefault((row["agent"], row["turn"]), [])
                places += json.loads(f"[{row['places']}]")
            await asyncio.sleep(0)  # live turns have their go
        return Ends(first, last)
