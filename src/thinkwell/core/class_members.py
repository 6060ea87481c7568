"""What a class holds, its base classes included, without running any code of it."""

from __future__ import annotations

from typing import Any


def nearest_members(owner: type) -> dict[str, Any]:
    """What each attribute of a class is where it is defined last: properties stay properties."""
    members: dict[str, Any] = {}
    for base in reversed(owner.__mro__):
        members.update(vars(base))
    return members
