"""What was broken when an agent woke, so that it serves without it (spec/04 §18)."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Literal, TypeAlias

import msgspec

from thinkwell.core import json
from thinkwell.core.bus import EventBus
from thinkwell.core.clock import Clock
from thinkwell.core.turn_events import ChatOnStartDegraded

log = logging.getLogger("thinkwell.agent")

DegradedStep: TypeAlias = Literal["state", "transcript-hydration", "durable-work-recovery"]


class Degradation(msgspec.Struct, frozen=True, kw_only=True):
    """One thing an agent goes without, until a start finds it mended."""

    step: DegradedStep
    error: str
    at: float
    """When it was found."""


class Degradations:
    """Those of one activation: the next one begins with none and tries everything again."""

    def __init__(self, agent_id: str, bus: EventBus, clock: Clock) -> None:
        self._agent_id = agent_id
        self._bus = bus
        self._clock = clock
        self._found: dict[str, Degradation] = {}

    def __iter__(self) -> Iterator[Degradation]:
        return iter(self._found.values())

    def note(self, step: DegradedStep, error: Exception) -> None:
        """Say it once for each step: in the log, on the bus, and to whoever asks."""
        if step in self._found:
            return
        text = json.error_text(error)
        self._found[step] = Degradation(step=step, error=text, at=self._clock.now())
        about = {"agent": self._agent_id, "action": "start"}
        log.critical("an agent serves without %s: %s", step, text, exc_info=error, extra=about)
        self._bus.emit(ChatOnStartDegraded, agent=self._agent_id, step=step, error=error)
