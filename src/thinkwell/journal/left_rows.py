"""Where the live rows of interrupted turns stand, found out once for all of them.

The live journal has no index by turn: whatever is appended would pay for it. One turn is found by
a scan from where it began. But a crash may leave a thousand turns with a hundred rows each, and a
thousand scans over all of those would take minutes. So the first turn that is taken up looks
through the journal, a slice at a time, and notes the place of everybody's rows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from thinkwell.core import json
from thinkwell.store.base import Reader, Row

_SLICE = 5_000
"""Positions that one statement looks at: a few milliseconds."""


class LeftRows:
    """The places of rows that were in the live journal when the first turn was taken up."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._one_looks = asyncio.Lock()
        self._upto: int | None = None
        """The last position that was looked at."""
        self._places: dict[tuple[str, str], list[int]] = {}

    async def take(self, agent_id: str, turn: str, start: int) -> Sequence[Row]:
        """The live rows of a turn from `start` on, in order. Its places are forgotten.

        What has no places, because it was taken before or came with an import, is searched for: a
        journal that was emptied meanwhile counts its positions anew, so none can be ruled out.
        """
        upto = await self._look()
        places = self._places.pop((agent_id, turn), None)
        if places is None:
            return await self._scan(agent_id, turn, start)
        places = [place for place in places if place >= start]
        named = {"agent": agent_id, "turn": turn, "places": json.dumps(places)}
        known = await self._reader.fetch_all("journal_rows_at", named)
        if len(known) < len(places):  # another turn with this id is meant by now
            return await self._scan(agent_id, turn, start)
        return [*known, *await self._scan(agent_id, turn, max(start, upto + 1))]

    async def _scan(self, agent_id: str, turn: str, start: int) -> Sequence[Row]:
        named = {"agent": agent_id, "turn": turn, "start": start}
        return await self._reader.fetch_all("read_journal", named)

    async def _look(self) -> int:
        async with self._one_looks:
            if self._upto is None:
                self._upto = await self._look_through()
            return self._upto

    async def _look_through(self) -> int:
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
        return last
