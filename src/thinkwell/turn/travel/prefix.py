"""The beginning of a journal, up to the end of a step: what a fork shares with its source. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from thinkwell.core import json
from thinkwell.core.errors import TurnError
from thinkwell.journal.reading import StoredJournal

_KEPT = frozenset({"hidden", "model", "answer", "claim", "result", "decision", "output"})
"""Events that say something about the steps that are kept. Requests name messages of another agent,
so they stay behind."""


class Prefix(msgspec.Struct, frozen=True):
    """Rows of a live journal: kind, number of the first chunk and of the last, body."""

    rows: Sequence[tuple[str, int, int, str]]


def cut_journal(journal: StoredJournal, steps: int) -> Prefix:
    """The journal of the first `steps` steps. Raises `TurnError` if there are not so many."""
    stop = _end_of_step(journal.bodies, steps)
    rows: list[tuple[str, int, int, str]] = []
    start = 0
    events = [event for event in journal.events if event.kind in _KEPT and event.seq <= stop]
    for event in events:
        if event.kind == "model" and json.loads(event.body)["stepNumber"] >= steps:
            continue
        if event.seq > start:
            rows.append(_chunks(journal.bodies, start, event.seq))
            start = event.seq
        rows.append((event.kind, event.seq, event.seq, event.body))
    if stop > start:
        rows.append(_chunks(journal.bodies, start, stop))
    return Prefix(rows)


def count_steps(journal: StoredJournal) -> int:
    """How many steps have ended."""
    return sum(json.loads(body)["type"] == "finish-step" for body in journal.bodies)


def _end_of_step(bodies: Sequence[str], steps: int) -> int:
    ended = 0
    for place, body in enumerate(bodies):
        if json.loads(body)["type"] == "finish-step":
            ended += 1
            if ended == steps:
                return place + 1
    raise TurnError(f"The turn has {ended} whole steps, so it cannot go on after {steps}.")


def _chunks(bodies: Sequence[str], start: int, stop: int) -> tuple[str, int, int, str]:
    return ("chunks", start, stop - 1, f"[{','.join(bodies[start:stop])}]")
