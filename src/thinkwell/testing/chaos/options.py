"""What a chaos run is asked to do."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

ModelChoice = Literal["scripted", "real"]


class CannotBeginError(Exception):
    """The app does not answer even while nobody kills it; the text says what to do."""


class ChaosOptions(msgspec.Struct, frozen=True, kw_only=True):
    """One run. The same options make the same plan: questions, tool inputs, moments of death."""

    app: str
    """The app, as `thinkwell serve` takes it."""
    folder: Path
    """Where the scratch database and all logs go; empty before the run."""
    kills: int = 100
    """Lives that end at a random moment."""
    seed: int = 1
    first: int = 1
    """The number of the first random life, to run some of an earlier run again."""
    points: tuple[str, ...] = ()
    """Named crash points (`c4`, or `c4:3` for the third time), each a life of its own."""
    clients: int = 4
    turns: int | None = None
    """The most questions to ask; None asks some in every life."""
    model: ModelChoice = "scripted"
    minutes: float | None = None
    """End the run after so long, however many lives are left."""
    headers: tuple[str, ...] = ()
    """`NAME: VALUE` lines that clients send, for an app with `auth`."""
    patience: float = 60.0
    """Seconds without any progress after which something counts as stuck."""
