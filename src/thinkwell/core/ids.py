"""Ids that nobody has to coordinate: UUIDv7, so that they sort by the time they were made."""

from __future__ import annotations

import os
import time
import uuid


def new_id() -> str:
    """A new UUIDv7 as text."""
    stamp = time.time_ns() // 1_000_000
    random = int.from_bytes(os.urandom(10), "big")
    value = (stamp & 0xFFFF_FFFF_FFFF) << 80
    value |= 0x7 << 76
    value |= (random >> 62 & 0xFFF) << 64
    value |= 0b10 << 62
    value |= random & 0x3FFF_FFFF_FFFF_FFFF
    return str(uuid.UUID(int=value))
