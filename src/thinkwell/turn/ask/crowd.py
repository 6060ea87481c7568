"""How many turns each client waits for, over all agents of a host, and how long one line may be."""

from __future__ import annotations

from collections import Counter

from thinkwell.core.limits import Limits


class Crowd:
    """Counts the turns that clients asked for and that have not ended."""

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._waiting: Counter[str] = Counter()

    def has_room(self, payer: str | None, line: int) -> bool:
        """Whether one more turn may be asked for; `line` is how many its agent has already."""
        limits = self._limits
        if limits.waiting_turns_per_agent is not None and line >= limits.waiting_turns_per_agent:
            return False
        if payer is None or limits.waiting_turns is None:
            return True
        return self._waiting[payer] < limits.waiting_turns

    def enter(self, payer: str | None) -> None:
        """One more waits."""
        if payer is not None:
            self._waiting[payer] += 1

    def leave(self, payer: str | None) -> None:
        """One has ended, or was not accepted."""
        if payer is not None:
            self._waiting[payer] -= 1
            if self._waiting[payer] <= 0:
                del self._waiting[payer]
