"""What to do with a message that arrives while the agent is busy (spec/02 §3.8, DESIGN §8.8), and
how many may wait.

`plan_intake` is a pure decision over what runs and waits; the accepting transaction then carries it
out. Only submits of chat clients, over the socket or HTTP, are subject to a policy, and only when
they overlap another turn. `Crowd` counts what each client waits for, over all agents of a host.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias

import msgspec

from thinkwell.core.errors import ConfigurationError
from thinkwell.core.limits import Limits
from thinkwell.core.principal import Principal
from thinkwell.turn.ask.admission import CHAT_TRIGGERS
from thinkwell.turn.handle import TurnHandle

Strategy: TypeAlias = Literal["queue", "latest", "merge", "drop", "debounce", "steer"]
STRATEGIES: tuple[Strategy, ...] = ("queue", "latest", "merge", "drop", "debounce", "steer")
DEBOUNCE_MS = 750


class Policy(msgspec.Struct, frozen=True):
    """A concurrency policy."""

    strategy: Strategy
    debounce: float = DEBOUNCE_MS / 1000
    """Seconds of quiet before a debounced turn runs."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What to do with an input."""

    drop: bool = False
    supersedes: tuple[TurnHandle, ...] = ()
    """Waiting turns whose place it takes; their messages come first."""
    not_before: float | None = None
    steer: bool = False


def read_policy(value: str | Mapping[str, Any]) -> Policy:
    """A policy from the setting `message_concurrency`. An invalid debounce time is the default."""
    if isinstance(value, str):
        strategy, wait = value, DEBOUNCE_MS
    else:
        strategy, wait = value.get("strategy", ""), value.get("debounce_ms", DEBOUNCE_MS)
    if strategy not in STRATEGIES:
        raise ConfigurationError(
            f"message_concurrency is {value!r}. Use one of {', '.join(STRATEGIES)}, or "
            '{"strategy": "debounce", "debounce_ms": 750}.'
        )
    valid = isinstance(wait, int | float) and not isinstance(wait, bool) and wait >= 0
    return Policy(strategy, (wait if valid else DEBOUNCE_MS) / 1000)


def plan_intake(
    policy: Policy, line: Sequence[TurnHandle], now: float, principal: Principal | None = None
) -> Plan:
    """Decide about an input that arrives while `line` is not empty.

    The first in line runs, or is about to: only a debounced turn waits there.
    """
    if not line:
        return Plan()
    match policy.strategy:
        case "queue":
            return Plan()
        case "drop":
            return Plan(drop=True)
        case "steer":
            return Plan(steer=True)
        case "latest" | "merge":
            return Plan(supersedes=_overlapping(line, principal))
        case "debounce":
            mine = _overlapping(line, principal)
            return Plan(supersedes=mine, not_before=now + policy.debounce)


def _overlapping(line: Sequence[TurnHandle], principal: Principal | None) -> tuple[TurnHandle, ...]:
    """Submits of a principal that came while another turn was there. A regenerate keeps its place.

    Nobody's question becomes part of somebody else's turn: it would run with their rights.
    """
    return tuple(
        handle
        for place, handle in enumerate(line)
        if handle.record.trigger in CHAT_TRIGGERS
        and handle.record.branch_from is None
        and _same(handle.record.principal, principal)
        and (place > 0 or handle.record.not_before is not None)
    )


def _same(one: Principal | None, other: Principal | None) -> bool:
    return (one and one.id) == (other and other.id)


class Crowd:
    """Counts the turns that clients asked for and that have not ended."""

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._waiting: Counter[str] = Counter()
        self.running = 0
        """Turns that run now, over all agents, whoever asked for them."""

    def has_room(self, payer: str | None, line: int) -> bool:
        """Whether one more turn may be asked for; `line` is how many its agent has already."""
        limits = self._limits
        if limits.waiting_turns_per_agent is not None and line >= limits.waiting_turns_per_agent:
            return False
        if payer is None or limits.waiting_turns is None:
            return True
        return self._waiting[payer] < limits.waiting_turns

    @contextmanager
    def one_runs(self) -> Generator[None]:
        """Around a turn that runs."""
        self.running += 1
        try:
            yield
        finally:
            self.running -= 1

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
