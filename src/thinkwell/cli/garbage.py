"""Keeps the garbage collector from walking through everything while agents answer.

A full collection looks at every object. With a thousand agents awake that takes a quarter of a
second, in which nobody hears anything, and finds next to nothing: most objects stay as long as
their agent, and are freed without its help when that goes. So whatever has survived a full
collection is set aside, and the next one looks only at what is new.

What is set aside is still freed when nobody refers to it; only cycles among it are not found any
more. For those everything is looked through once in a while: when nothing runs, or when so much was
set aside since the last time that it may be a good part of the memory.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from contextlib import suppress

THRESHOLDS = 10_000, 3, 3
"""New objects before the youngest are looked through, and how often that is until the older ones
are. A turn makes and drops some hundreds: at Python's own 700 each of them would be looked at in
the middle of the turn it is needed for. All are looked through about as often as Python does.
"""
LOOK_EVERY = 10.0
"""Seconds between two looks at whether it is time for everything."""
WORTH_A_LOOK = 50_000
"""Objects set aside since the last time below which it is not worth it."""
TOO_MANY = 500_000
"""Objects beyond twice those of the last time from which it does not wait for a quiet moment."""


class Garbage:
    """Use it around the life of a server: `with Garbage(busy):`."""

    def __init__(self, busy: Callable[[], bool]) -> None:
        """`busy` says whether anybody would have to wait."""
        self._busy = busy
        self._kept = 0
        self._thresholds = gc.get_threshold()

    def __enter__(self) -> Garbage:
        gc.set_threshold(*THRESHOLDS)
        gc.callbacks.append(self._heard)
        self.look_through_everything()
        return self

    def __exit__(self, *failure: object) -> None:
        with suppress(ValueError):
            gc.callbacks.remove(self._heard)
        gc.set_threshold(*self._thresholds)
        gc.unfreeze()

    async def watch(self) -> None:
        """Look from time to time, until it is cancelled."""
        while True:
            await asyncio.sleep(LOOK_EVERY)
            self.look()

    def look(self) -> None:
        """Look through everything if it is time."""
        kept = gc.get_freeze_count()
        quiet = kept >= self._kept + WORTH_A_LOOK and not self._busy()
        if quiet or kept >= 2 * self._kept + TOO_MANY:
            self.look_through_everything()

    def look_through_everything(self) -> None:
        """Free what nobody can reach, and set the rest aside."""
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        self._kept = gc.get_freeze_count()

    def _heard(self, phase: str, info: dict[str, int]) -> None:
        if phase == "stop" and info["generation"] == 2:
            gc.freeze()
