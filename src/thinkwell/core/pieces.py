"""Long work in pieces, so that one client cannot hold up all agents.

A generator does the work and yields wherever others may go first; `in_pieces` lets the event loop
turn in between. The work itself stays free of asyncio.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import TypeAlias, TypeVar

T = TypeVar("T")
Pieces: TypeAlias = Generator[None, None, T]


async def in_pieces(work: Pieces[T]) -> T:
    """The result of the work; others go on meanwhile."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value
        await asyncio.sleep(0)
