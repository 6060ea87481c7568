"""Whether an interrupted turn goes on, and when it is given up (spec/04 §5.1-5.4, DESIGN §8.16).

One pure decision. `decide` takes what is stored of a turn's attempts, what the last one left
behind, the budget and the time; it answers how to go on, or why not to.

A *place* is where an attempt was when its process died: `tool:<name>:<call id>`,
`hook:<event>:<name>`, `model`, `assemble`, or `turn` for what lies between them. A first attempt
writes down no places; its open tool calls are read from the ledger, and a death of which nothing
is known (`?`) counts for wherever the second attempt dies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from thinkwell.core.named_fields import NamedFields
from thinkwell.messages.plain_parts import EVERYWHERE

Cause: TypeAlias = Literal["death", "stop", "stall"]
"""What interrupted an attempt: the process died, it was asked to stop, or the model fell silent."""
RecoveryKind: TypeAlias = Literal["retry", "continue"]
"""Whether the next attempt answers from the beginning or goes on in a reply that has begun."""
GiveUpReason: TypeAlias = Literal[
    "crash_loop",
    "work_budget_exceeded",
    "no_progress_timeout",
    "recovery_aborted",
    "max_attempts_exceeded",
]
"""Why a turn is given up, in the order in which the reasons are looked at."""

DEATHS = 3
"""Deaths in a row at one place, after which a turn is parked."""
ASSEMBLE, MODEL, BETWEEN, UNKNOWN = "assemble", "model", "turn", "?"
WAITING = "waiting"
"""Not a place where anything of the turn runs: it waits for its model's limits. A death there says
nothing about it."""
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
_MILESTONES = frozenset(
    {
        "text-start",
        "reasoning-start",
        "tool-input-available",
        "tool-output-available",
        "tool-output-error",
        "tool-output-denied",
    }
)
"""Chunks that count as work done, one each: what a recovery may produce at most is counted in them.
Deltas would make a wordy model look busier than one that pays for a hundred tool calls."""


class RecoveryBudget(msgspec.Struct, frozen=True, kw_only=True, metaclass=NamedFields):
    """How much recovery a turn gets. Planned stops cost nothing of it."""

    max_attempts: int = 10
    """How many attempts may follow an interruption while nothing comes of them."""
    no_progress_timeout: float = 300.0
    """Seconds after the last progress, or else after the first interruption."""
    max_recovery_work: float = 1000
    """Units of work since the first interruption; `math.inf` for no limit."""


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
    """When there was progress last, or when the first interruption was found. None until then."""
    stalls: int = 0
    """How often the model stalled in the step `stalled_step`."""
    stalled_step: int = 0
    milestones: int = 0
    """How much work was done when the running attempt began."""
    work: int = 0
    """How much was done since the first interruption."""
    exhausted: str | None = None
    """Why the turn was given up (a `GiveUpReason`); None if it was not."""
    stash: Any = None
    """What the agent's code wants to find again after an interruption."""

    def begun(
        self, boot: int, progress: int, *, first: bool = False, milestones: int = 0
    ) -> Incident:
        """The incident of an attempt that begins now."""
        boots = self.boots if self.boots[-1:] == (boot,) else (*self.boots[-1:], boot)
        return msgspec.structs.replace(
            self,
            boots=boots,
            progress=progress,
            milestones=milestones,
            places=None if first else (),
        )


class Interruption(msgspec.Struct, frozen=True, kw_only=True):
    """What interrupted an attempt, and what it left behind."""

    cause: Cause
    progress: int = 0
    milestones: int = 0
    said: bool = False
    """Whether the reply has begun: it is continued then, else the turn is tried anew."""
    step: int = 0
    """The step in which the model fell silent."""
    running: Sequence[str] = ()
    """Places of the tool calls that were claimed and have no result."""
    settled: frozenset[str] = frozenset()
    """Places of the tool calls that have one."""


class GoOn(msgspec.Struct, frozen=True, kw_only=True):
    """Another attempt is made."""

    kind: RecoveryKind
    incident: Incident
    used: int
    """How many attempts of the budget this makes; a planned stop adds none."""
    asks: bool
    """Whether the app may still refuse it (`should_keep_recovering`)."""


class GivenUp(msgspec.Struct, frozen=True, kw_only=True):
    """No attempt is made any more."""

    reason: GiveUpReason
    incident: Incident
    """As it is stored with the end."""
    count: int
    """Attempts without progress; for `crash_loop`, deaths at one place."""
    places: tuple[str, ...] = (BETWEEN,)
    """Where the process died; of parallel calls nobody can tell which one it was."""

    @property
    def text(self) -> str:
        """For operators: what happened, and how often."""
        return describe_reason(self.reason, self.places, self.count)


Decision: TypeAlias = GoOn | GivenUp


def decide(
    incident: Incident,
    found: Interruption,
    budget: RecoveryBudget,
    now: float,
    *,
    wanted: bool = True,
) -> Decision:
    """What becomes of an interrupted turn. `wanted` is False if the app has refused to go on."""
    following, used = _counted(incident, found, now)
    innocent = _is_innocent(incident, found)
    asks = not innocent and incident.since is not None
    given_up = None
    if not innocent:
        given_up = _reason(following, used, budget, now, refused=asks and not wanted)
    if given_up is None:
        kind: RecoveryKind = "continue" if found.said else "retry"
        return GoOn(kind=kind, incident=following, used=used, asks=asks)
    worst = max(following.deaths.values(), default=0)
    places: tuple[str, ...] = (BETWEEN,)
    count = used
    if found.cause == "stall":
        places = (MODEL,)
    elif given_up == "crash_loop":
        # The one entered last comes first: it may lie inside the others.
        deaths = dict(following.deaths)
        places = tuple(place for place in reversed(deaths) if deaths[place] == worst)
        count = worst
    sealed = msgspec.structs.replace(following, exhausted=given_up)
    return GivenUp(reason=given_up, incident=sealed, count=count, places=places)


def _reason(
    incident: Incident, used: int, budget: RecoveryBudget, now: float, *, refused: bool
) -> GiveUpReason | None:
    """The first reason to give up. A first interruption meets none that has to do with time, work
    or the app: each of them begins to count with it.
    """
    if max(incident.deaths.values(), default=0) >= DEATHS:
        return "crash_loop"
    if incident.work > budget.max_recovery_work:
        return "work_budget_exceeded"
    if now - (now if incident.since is None else incident.since) > budget.no_progress_timeout:
        return "no_progress_timeout"
    if refused:
        return "recovery_aborted"
    return "max_attempts_exceeded" if used > budget.max_attempts else None


def _is_innocent(incident: Incident, found: Interruption) -> bool:
    """Whether the interruption has nothing to do with the turn."""
    waited = incident.places is not None and WAITING in incident.places
    return found.cause == "stop" or (found.cause == "death" and waited)


def _counted(incident: Incident, found: Interruption, now: float) -> tuple[Incident, int]:
    """The incident with this interruption, and how many attempts of the budget are used then."""
    if _is_innocent(incident, found):
        # Nor does the time count for which the process was down: whoever stopped it wanted that,
        # and whoever waited can do nothing about it.
        since = None if incident.since is None else now
        return msgspec.structs.replace(incident, since=since), incident.barren
    moved = found.progress > incident.progress
    opened = incident.since is not None
    gained = max(found.milestones - incident.milestones, int(moved))
    counted = msgspec.structs.replace(
        incident,
        since=now if moved or incident.since is None else incident.since,
        work=incident.work + (gained if opened else 0),
    )
    if found.cause == "stall":
        # Only a finished step begins the count anew: words do not, else a model that says two and
        # hangs would be asked for ever.
        stalls = incident.stalls + 1 if incident.stalled_step == found.step else 1
        stalled = msgspec.structs.replace(counted, stalls=stalls, stalled_step=found.step)
        return stalled, stalls
    deaths = {
        place: _count(incident.deaths, place, moved=moved) for place in _died_at(incident, found)
    }
    # The attempt that begins now is counted: one allowed means one, also after a death in the
    # middle of the text, which was progress.
    barren = 1 if moved else incident.barren + 1
    return msgspec.structs.replace(counted, deaths=deaths, barren=barren), barren


def _died_at(incident: Incident, found: Interruption) -> Sequence[str]:
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


def work_of(chunks: Sequence[Mapping[str, Any]]) -> int:
    """A number that grows with what was produced, whoever has to pay for it."""
    return sum(
        chunk["type"] in _MILESTONES and chunk.get("preliminary") is not True for chunk in chunks
    )


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


def describe_reason(reason: GiveUpReason, places: Sequence[str], count: int) -> str:
    """Why a turn was given up, for people."""
    if tuple(places) == (MODEL,) and reason == "max_attempts_exceeded":
        return f"The model fell silent {count} times in one step."
    match reason:
        case "crash_loop" if tuple(places) != (BETWEEN,):
            where = " or ".join(describe(place) for place in places)
            return f"The process died {count} times in a row in {where}."
        case "crash_loop" | "max_attempts_exceeded":
            return f"The process died {count} times while this turn ran and made no progress."
        case "work_budget_exceeded":
            return "The turn was interrupted again and again and used up the work it may recover."
        case "no_progress_timeout":
            return f"The turn made no progress for too long; it was interrupted {count} times."
        case "recovery_aborted":
            return "The agent's should_keep_recovering said not to go on."
