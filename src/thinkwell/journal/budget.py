"""How often a turn may take its process down, or lose its model, before it has to end (spec/04
§5.1-5.4, DESIGN §8.16).

Pure: what is stored of a turn's attempts goes in, with what was found after the last one; the
incident to go on with comes out, or why not to. The caller says what time it is.

A *place* is where an attempt was when its process died: `tool:<name>:<call id>`,
`hook:<event>:<name>`, `model`, `assemble`, or `turn` for what lies between them. A first attempt
writes down no places; its open tool calls are read from the ledger, and a death of which nothing
is known (`?`) counts for wherever the second attempt dies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from thinkwell.messages.plain_parts import EVERYWHERE

DEATHS = 3
"""Deaths in a row at one place, after which a turn is parked."""
ASSEMBLE, MODEL, BETWEEN, UNKNOWN = "assemble", "model", "turn", "?"
_PROGRESS = frozenset(
    {
        "text-delta",
        "tool-input-available",
        "tool-output-available",
        "tool-output-error",
        "tool-output-denied",
        *EVERYWHERE,
    }
)
"""Chunks that a next attempt does not have to make again. Reasoning is thought anew, a cut input
is asked for again."""


class Incident(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """What the row of a turn remembers of its attempts. Stored format."""

    boots: tuple[int, ...] = ()
    """In which lives of the process its last two attempts began."""
    progress: int = 0
    """How far the turn was when the running attempt began."""
    places: tuple[str, ...] | None = None
    """Where the running attempt is, written before it goes there; None if it keeps no record."""
    deaths: Mapping[str, int] = msgspec.field(default_factory=dict[str, int])
    """Deaths in a row, by place."""
    barren: int = 0
    """Attempts begun after a death since the last progress, wherever it died."""
    since: float | None = None
    """When the first of these deaths was found."""
    stalls: int = 0
    """How often the model stalled in the step `stalled_step`."""
    stalled_step: int = 0

    def begun(self, boot: int, progress: int, *, first: bool = False) -> Incident:
        """The incident of an attempt that begins now."""
        boots = self.boots if self.boots[-1:] == (boot,) else (*self.boots[-1:], boot)
        places = None if first else ()
        return msgspec.structs.replace(self, boots=boots, progress=progress, places=places)


class Remains(msgspec.Struct, frozen=True, kw_only=True):
    """What a dead attempt left behind."""

    progress: int
    running: Sequence[str] = ()
    """Places of the tool calls that were claimed and have no result."""
    settled: frozenset[str] = frozenset()
    """Places of the tool calls that have one."""


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """The budget is used up."""

    places: tuple[str, ...]
    """Where; of parallel calls nobody can tell which one it was."""
    count: int

    @property
    def reason(self) -> str:
        """For operators: where, and how often."""
        if self.places == (BETWEEN,):
            return f"The process died {self.count} times while this turn ran and made no progress."
        where = " or ".join(describe(place) for place in self.places)
        return f"The process died {self.count} times in a row in {where}."


Verdict: TypeAlias = Incident | Spent


def after_death(incident: Incident, found: Remains, *, max_attempts: int, now: float) -> Verdict:
    """The process died under an attempt, and nobody had planned it."""
    moved = found.progress > incident.progress
    deaths = {
        place: _count(incident.deaths, place, moved=moved) for place in _died_at(incident, found)
    }
    # The attempt that begins now is counted: one allowed means one, also after a death in the
    # middle of the text, which was progress.
    barren = 1 if moved else incident.barren + 1
    worst = max(deaths.values())
    if worst >= DEATHS:
        # The one entered last comes first: it may lie inside the others.
        places = tuple(place for place in reversed(deaths) if deaths[place] == worst)
        return Spent(places=places, count=worst)
    if barren > max_attempts:
        return Spent(places=(BETWEEN,), count=barren)
    # A death without progress counts at its place too, so `barren` has nothing to add here.
    since = (incident.since or now) if any(deaths.values()) else None
    return msgspec.structs.replace(incident, deaths=deaths, barren=barren, since=since)


def after_stall(incident: Incident, step: int, *, max_attempts: int) -> Verdict:
    """The model fell silent. Only a finished step begins the count anew: words do not, else a model
    that says two and hangs would be asked for ever.
    """
    stalls = incident.stalls + 1 if incident.stalled_step == step else 1
    if stalls > max_attempts:
        return Spent(places=(MODEL,), count=stalls)
    return msgspec.structs.replace(incident, stalls=stalls, stalled_step=step)


def _died_at(incident: Incident, found: Remains) -> Sequence[str]:
    if incident.places is None:
        return found.running or (UNKNOWN,)
    return [place for place in incident.places if place not in found.settled] or (BETWEEN,)


def _count(deaths: Mapping[str, int], place: str, *, moved: bool) -> int:
    """How often in a row the process has died here, the last time included."""
    before = deaths.get(place, deaths.get(UNKNOWN, 0))
    if moved:  # parallel calls and words count; preliminary results are no progress
        return 0 if place == MODEL else 1  # a call that brought text is not the call without it
    return before + 1


def progress_of(chunks: Sequence[Mapping[str, Any]], settled_calls: int) -> int:
    """A number that grows with whatever the next attempt need not do again."""
    said = sum(
        chunk["type"] in _PROGRESS and chunk.get("preliminary") is not True for chunk in chunks
    )
    return said + settled_calls


def tool_place(name: str, call_id: str) -> str:
    """Inside a call of a tool, its hooks included."""
    return f"tool:{name}:{call_id}"


def hook_place(event: str, name: str) -> str:
    """Inside a hook."""
    return f"hook:{event}:{name}"


def describe(place: str) -> str:
    """A place for people."""
    kind, _, rest = place.partition(":")
    if kind == "tool":
        name, _, call_id = rest.partition(":")
        return f"the tool {name} (call {call_id})"
    if kind == "hook":
        event, _, name = rest.partition(":")
        return f"the hook {name} ({event})"
    texts = {MODEL: "the model call", ASSEMBLE: "the preparation of its prompt"}
    return texts.get(place, "this turn")
