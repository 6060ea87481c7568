"""Ids that nobody has to coordinate: UUIDv7, so that they sort by the time they were made."""

from __future__ import annotations

import os
import time


def new_id() -> str:
    """A new UUIDv7 as text."""
    stamp = time.time_ns() // 1_000_000 & 0xFFFF_FFFF_FFFF
    random = int.from_bytes(os.urandom(10), "big")
    # Written out, not through `uuid.UUID`, which takes longer than all the rest.
    high = f"{stamp:012x}7{random >> 62 & 0xFFF:03x}"
    low = f"{0b10 << 62 | random & 0x3FFF_FFFF_FFFF_FFFF:016x}"
    return f"{high[:8]}-{high[8:12]}-{high[12:]}-{low[:4]}-{low[4:]}"
