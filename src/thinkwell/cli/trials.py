"""What `thinkwell turns replay` prints: one line per turn, and the sum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from rich.console import Console
from rich.padding import Padding

from thinkwell.cli.plain_text import PlainTable, PlainText
from thinkwell.cli.tables import WIDE
from thinkwell.host.replaying import Replay
from thinkwell.messages.usage import Usage
from thinkwell.turn.travel.case import Case
from thinkwell.turn.travel.replies import divergence
from thinkwell.turn.travel.story import TurnStory


class Trial(NamedTuple):
    """One turn and what came of its replay."""

    case: Case
    story: TurnStory
    replay: Replay | None
    problem: str | None
    cost: float | None = None
    """What the replay cost, if the prices are known."""

    @property
    def seconds(self) -> float | None:
        """How long the recorded turn took."""
        return self.story.seconds

    def said(self, *, compares: bool) -> str:
        """What differs, in a line."""
        if self.replay is None:
            return self.problem or ""
        if self.replay.turn.status == "error" and self.case.turn.status != "error":
            return f"failed: {self.replay.turn.error}"
        if compares:
            first = self.replay.first
            return "identical" if first is None else first.title
        return divergence(self.case.journal.bodies, self.replay.journal.bodies)


def trials_as_data(trials: Sequence[Trial], *, compares: bool) -> dict[str, Any]:
    """For programs."""
    return {
        "turns": [_data(trial, compares=compares) for trial in trials],
        "sum": {
            "turns": len(trials),
            "identical": sum(t.replay is not None and t.replay.identical for t in trials),
            "recorded": {"usage": _tokens(trials), "seconds": _sum(t.seconds for t in trials)},
            "now": {
                "usage": _tokens(trials, now=True),
                "seconds": _sum(t.replay and t.replay.seconds for t in trials),
                "cost": _sum(t.cost for t in trials),
            },
        },
    }


def show_trials(trials: Sequence[Trial], *, compares: bool) -> None:
    """For people: a table, and below it both values of each first difference."""
    console = Console(highlight=False, markup=False)
    if not console.is_terminal:
        console.width = WIDE
    table = PlainTable(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("turn", no_wrap=True)
    table.add_column("differs" if compares else "divergence", overflow="fold")
    for name in ("tokens in", "out", "seconds", "cost"):
        table.add_column(name, justify="right", no_wrap=True)
    for trial in trials:
        _add(table, trial, compares=compares)
    table.add_section()
    same = sum(trial.said(compares=compares) in ("identical", "none") for trial in trials)
    before, after = _tokens(trials), _tokens(trials, now=True)
    table.add_row(
        PlainText(f"{len(trials)} turn{'' if len(trials) == 1 else 's'}", style="bold"),
        PlainText(f"{same} the same"),
        _change(before.input_tokens, after.input_tokens),
        _change(before.output_tokens, after.output_tokens),
        _times(
            _sum(t.seconds for t in trials), _sum(t.replay and t.replay.seconds for t in trials)
        ),
        _money(_sum(t.story.cost for t in trials), _sum(t.cost for t in trials)),
    )
    console.print(table)
    for trial in trials if compares else ():
        if trial.replay is not None and trial.replay.first is not None:
            console.print(PlainText(f"\n{trial.case.turn.request_id}", style="bold"))
            console.print(Padding(PlainText(str(trial.replay.first)), (0, 0, 0, 2)))


def _add(table: PlainTable, trial: Trial, *, compares: bool) -> None:
    said = trial.said(compares=compares)
    now = Usage() if trial.replay is None else trial.replay.usage
    before = trial.case.turn.usage
    good = said in ("identical", "none")
    table.add_row(
        PlainText(trial.case.turn.request_id),
        PlainText(said, style="green" if good else "yellow"),
        _change(before.input_tokens, now.input_tokens),
        _change(before.output_tokens, now.output_tokens),
        _times(trial.seconds, trial.replay and trial.replay.seconds),
        _money(trial.story.cost, trial.cost),
    )


def _data(trial: Trial, *, compares: bool) -> dict[str, Any]:
    replay, turn = trial.replay, trial.case.turn
    return {
        "agent": turn.agent_id,
        "id": turn.request_id,
        "differs": trial.said(compares=compares),
        "identical": replay is not None and replay.identical,
        "differences": [] if replay is None else list(replay.differences),
        "problem": trial.problem,
        "recorded": {"usage": turn.usage, "seconds": trial.seconds, "cost": trial.story.cost},
        "now": None
        if replay is None
        else {
            "status": replay.turn.status,
            "usage": replay.usage,
            "seconds": replay.seconds,
            "cost": trial.cost,
        },
    }


def _tokens(trials: Sequence[Trial], *, now: bool = False) -> Usage:
    if now:
        used = [trial.replay.usage for trial in trials if trial.replay is not None]
    else:
        used = [trial.case.turn.usage for trial in trials]
    return sum(used, start=Usage())


def _sum(amounts: Any) -> float | None:
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if known else None


def _change(before: int | None, after: int | None) -> str:
    if before == after:
        return f"{before or 0:,}"
    return f"{before or 0:,} → {after or 0:,}"


def _times(before: float | None, after: float | None) -> str:
    return " → ".join("?" if each is None else f"{each:.2f}" for each in (before, after))


def _money(before: float | None, after: float | None) -> str:
    if before is None and after is None:
        return "unknown"
    return " → ".join("?" if each is None else f"{each:.4f}" for each in (before, after))
