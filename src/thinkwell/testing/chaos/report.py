"""What a run came to: figures, promises, the app's tools, and how to see a failure again."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from thinkwell.testing.chaos.evidence import Evidence
from thinkwell.testing.chaos.options import ChaosOptions
from thinkwell.testing.chaos.promises import REPEATABLE, Finding, PromiseName, grouped_runs

PROMISES: dict[PromiseName, str] = {
    "P1": "Nothing accepted is lost",
    "P2": "No effect happens twice",
    "P3": "No text appears twice",
    "P4": "No endless spinner",
    "P5": "No endless bill",
}


class ToolFacts(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One tool of the app over the whole run."""

    name: str
    effect: str
    calls: int
    """Calls that began to run at least once."""
    runs: int
    twice: int
    """Calls that ran more than once."""
    allowed: bool
    """Whether its declared effect allows that."""


class ChaosReport(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The verdict of a run."""

    ok: bool
    seed: int
    figures: dict[str, int]
    promises: dict[str, dict[str, Any]]
    tools: list[ToolFacts]
    points: dict[str, bool]
    """Named crash points of the run, and whether anything in the app came there."""
    findings: list[Finding]
    reproduce: list[str]
    """Commands that live the lives of the findings again."""
    notes: list[str]


def make_report(evidence: Evidence, findings: list[Finding], options: ChaosOptions) -> ChaosReport:
    """Count everything and put it into words."""
    broken = Counter(finding.promise for finding in findings)
    checked = _checked(evidence)
    return ChaosReport(
        ok=not findings,
        seed=options.seed,
        figures=_figures(evidence, findings),
        promises={
            name: {"says": says, "checked": checked[name], "broken": broken[name]}
            for name, says in PROMISES.items()
        },
        tools=_tools(evidence),
        points={life["point"]: life["reached"] for life in evidence.lives if life["point"]},
        findings=findings,
        reproduce=sorted({command for f in findings for command in _again(f, evidence, options)}),
        notes=_notes(evidence),
    )


def _figures(evidence: Evidence, findings: list[Finding]) -> dict[str, int]:
    kinds = Counter(finding.kind for finding in findings)
    killed = [life for life in evidence.lives if life["status"] == -9]
    readings = [reading for client in evidence.clients for reading in client.readings]
    opened = [x for client in evidence.clients for x in client.lines if x["event"] == "open"]
    statuses = Counter(turn.status for turn in evidence.turns.values())
    begun = [line for line in evidence.effects if line["moment"] == "begin"]
    return {
        "lives": len(evidence.lives),
        "kills": len(killed),
        "turns": len(evidence.turns),
        **{f"turns {status}": count for status, count in sorted(statuses.items())},
        "tool runs": len(begun),
        "connections": len(opened),
        "chunks read": sum(len(reading.chunks) for reading in readings),
        "lost": kinds["lost"],
        "doubled": kinds["doubled"],
        "out of order": kinds["out of order"],
    }


def _checked(evidence: Evidence) -> dict[PromiseName, str]:
    """What each promise was checked on, in words."""
    turns, effects = len(evidence.turns), len(grouped_runs(evidence.effects))
    readings = sum(len(client.readings) for client in evidence.clients)
    attempts = sum(turn.attempts for turn in evidence.turns.values())
    return {
        "P1": f"{turns:,} turns",
        "P2": f"{effects:,} tool calls",
        "P3": f"{readings:,} streams read",
        "P4": f"{turns:,} turns, {len(evidence.clients):,} clients",
        "P5": f"{attempts:,} attempts",
    }


def _tools(evidence: Evidence) -> list[ToolFacts]:
    groups: dict[str, list[list[dict[str, Any]]]] = {}
    for group in grouped_runs(evidence.effects).values():
        groups.setdefault(str(group[0]["tool"]), []).append(group)
    return [
        ToolFacts(
            name=name,
            effect=str(calls[0][0]["effect"]),
            calls=len(calls),
            runs=sum(map(len, calls)),
            twice=sum(len(runs) > 1 for runs in calls),
            allowed=calls[0][0]["effect"] in REPEATABLE or bool(calls[0][0]["reconcile"]),
        )
        for name, calls in sorted(groups.items())
    ]


def _notes(evidence: Evidence) -> list[str]:
    notes: list[str] = []
    if evidence.rewrites:
        notes.append(
            "The app rewrites replies, so words were compared with what clients read and with what "
            "is stored, not with the script."
        )
    own = Counter(life["status"] for life in evidence.lives if life["status"] not in (0, -9))
    notes += [
        f"The app ended by itself {times:,} times with status {status}."
        for status, times in own.items()
    ]
    parked = [t for t in evidence.turns.values() if t.stop_reason == "parked"]
    if parked:
        notes.append(
            f"{len(parked):,} turns were parked: the process died three times at the same place in "
            "them. They ended visibly, with an error."
        )
    return notes


def _again(finding: Finding, evidence: Evidence, options: ChaosOptions) -> list[str]:
    """The lives of a turn, as commands that live them again."""
    turn = evidence.turns.get((finding.agent, finding.turn))
    lives = [life for life in evidence.lives if life["name"] not in ("rehearsal", "last")]
    if turn is not None:
        end = turn.settled_at or float("inf")
        lives = [x for x in lives if x["ended"] >= turn.created_at and x["began"] <= end] or lives
    numbers = [int(life["name"]) for life in lives if life["name"].isdigit()]
    points = [life["name"] for life in lives if not life["name"].isdigit()]
    made = [f"thinkwell chaos {options.app} --seed {options.seed} --clients {options.clients}"]
    made += [f"--at {point}" for point in points[:3]]
    if numbers:
        made.append(f"--first {numbers[0]} --kills {numbers[-1] - numbers[0] + 1}")
    elif points:
        made.append("--kills 0")
    return [" ".join(made)]
