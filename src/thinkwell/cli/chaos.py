"""`thinkwell chaos`: runs the chaos kit on an app and shows what it found."""

from __future__ import annotations

import asyncio
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from thinkwell.core import json
from thinkwell.journal.crash_points import BY_COMMAND, CRASH_POINTS
from thinkwell.testing.chaos import CannotBeginError, ChaosOptions, run_chaos

if TYPE_CHECKING:
    from thinkwell.testing.chaos.lives import Life
    from thinkwell.testing.chaos.report import ChaosReport, ToolFacts

WIDE = 110
"""Columns of a file or a pipe."""
MOST_SHOWN = 12
"""Findings that are shown; the others are counted."""


def run(path: str, *, as_json: bool, keep: Path | None, **asked: Any) -> int:
    """Run and print; the exit code: 0 if every promise held."""
    points = _points(asked.pop("at"), every=asked.pop("points"))
    seed = asked.pop("seed")
    if seed is None:
        seed = random.SystemRandom().randint(1, 999_999)
    folder = _folder(keep)
    options = ChaosOptions(
        app=path,
        folder=folder,
        points=points,
        seed=seed,
        headers=tuple(asked.pop("headers")),
        **asked,
    )
    screen = _Screen(options, quiet=as_json)
    try:
        with screen.progress():
            report = asyncio.run(run_chaos(options, screen.lived))
    except CannotBeginError as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        click.echo(json.dumps(msgspec.to_builtins(report)))
    else:
        screen.show(report)
    if report.ok and keep is None:
        shutil.rmtree(folder, ignore_errors=True)
    return 0 if report.ok else 1


def _points(at: tuple[str, ...], *, every: bool) -> tuple[str, ...]:
    for point in at:
        if point.partition(":")[0] not in CRASH_POINTS:
            known = ", ".join(CRASH_POINTS)
            raise click.BadParameter(f"{point!r} is no crash point. There are {known}.")
    return (*at, *(point for point in CRASH_POINTS if point not in BY_COMMAND)) if every else at


def _folder(keep: Path | None) -> Path:
    if keep is None:
        return Path(tempfile.mkdtemp(prefix="thinkwell-chaos-"))
    keep.mkdir(parents=True, exist_ok=True)
    if any(keep.iterdir()):
        raise click.BadParameter(f"--keep {keep} is not empty: name a new folder.")
    return keep


class _Screen:
    """What a person sees."""

    def __init__(self, options: ChaosOptions, *, quiet: bool) -> None:
        self._options = options
        self._quiet = quiet
        self._out = Console(highlight=False)
        self._status: Any = None
        if not self._out.is_terminal:
            self._out.width = WIDE

    @contextmanager
    def progress(self) -> Generator[None]:
        """A line that moves while the app lives and dies."""
        if self._quiet:
            yield
            return
        options = self._options
        self._out.print(
            f"[bold]Chaos[/bold] for {escape(options.app)}: "
            f"{_count(options.kills, 'random kill')}, "
            f"{_count(len(options.points), 'crash point')}, "
            f"{_count(options.clients, 'client')}, {options.model} model, seed {options.seed}"
        )
        self._out.print("[dim]A scratch database is used. Tools run for real.[/dim]")
        with self._out.status("a rehearsal, without kills") as self._status:
            yield

    def lived(self, life: Life, so_far: Counter[str]) -> None:
        """One life is over."""
        if self._status is not None:
            total = self._options.kills + len(self._options.points)
            self._status.update(f"life {so_far['lives'] - 1} of {total}: {life.told}")

    def show(self, report: ChaosReport) -> None:
        """The verdict."""
        self._figures(report)
        self._promises(report)
        if report.tools:
            self._tools(report.tools)
        self._points(report)
        for note in report.notes:
            self._out.print(f"[yellow]![/yellow] {escape(note)}")
        if not report.ok:
            self._broken(report)

    def _figures(self, report: ChaosReport) -> None:
        f = report.figures
        self._out.print(
            f"\n{_count(f['kills'], 'kill')} in {_count(f['lives'], 'life', 'lives')}, "
            f"{_count(f['turns'], 'turn')}, {_count(f['tool runs'], 'tool run')}, "
            f"{_count(f['connections'], 'connection')}, {_count(f['chunks read'], 'chunk')} read\n"
        )

    def _promises(self, report: ChaosReport) -> None:
        table = Table.grid(padding=(0, 2))
        for name, facts in report.promises.items():
            broken = facts["broken"]
            mark = "[red]✗[/red]" if broken else "[green]✓[/green]"
            wrong = f"[bold red]{broken:,} broken[/bold red]" if broken else ""
            table.add_row(mark, f"[bold]{name}[/bold]", facts["says"], facts["checked"], wrong)
        self._out.print(table)
        f = report.figures
        self._out.print(
            f"   [bold]lost {f['lost']:,}, doubled {f['doubled']:,}, "
            f"out of order {f['out of order']:,}[/bold]"
        )

    def _tools(self, tools: list[ToolFacts]) -> None:
        table = Table(box=None, padding=(0, 2), pad_edge=False)
        for name, side in (("your tool", "left"), ("declared", "left"), ("calls", "right")):
            table.add_column(name, justify=side, header_style="dim")  # pyright: ignore[reportArgumentType]
        table.add_column("runs", justify="right", header_style="dim")
        table.add_column("ran twice", header_style="dim")
        for tool in tools:
            counts = (f"{tool.calls:,}", f"{tool.runs:,}")
            table.add_row(tool.name, tool.effect, *counts, _twice(tool))
        self._out.print()
        self._out.print(table)

    def _points(self, report: ChaosReport) -> None:
        if not report.points:
            return
        missed = [point for point, reached in report.points.items() if not reached]
        total = len(report.points)
        line = f"\n{total - len(missed)} of {total} crash points were reached"
        if missed:
            line += f"; nothing in this app goes to {', '.join(missed)}"
        self._out.print(f"{line}.")

    def _broken(self, report: ChaosReport) -> None:
        self._out.print("\n[bold red]What broke[/bold red]")
        for finding in report.findings[:MOST_SHOWN]:
            self._out.print(f"  [bold]{finding.promise}[/bold] {escape(finding.what)}")
            self._out.print(f"     [dim]{escape(finding.agent)}, turn {escape(finding.turn)}[/dim]")
        if len(report.findings) > MOST_SHOWN:
            self._out.print(f"  and {len(report.findings) - MOST_SHOWN:,} more (--json has all)")
        self._out.print("\n[bold]To see it again[/bold]")
        for command in report.reproduce[:3]:
            self._out.print(f"  {escape(command)}", soft_wrap=True)
        where = self._options.folder
        self._out.print(f"\nLogs of clients, tools and the server: {escape(str(where))}")


def _twice(tool: ToolFacts) -> str:
    if not tool.twice:
        return "[dim]never[/dim]"
    calls = _count(tool.twice, "call")
    return f"{calls}, as declared" if tool.allowed else f"[bold red]{calls}, not allowed[/bold red]"


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"
