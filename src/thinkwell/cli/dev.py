"""`thinkwell dev`: the server in a child process that is replaced when a Python file changes.

The parent owns the listening socket, so the port stays and connections made during a change wait
for the new child instead of failing. A change ends the child (politely for a moment, then not: what
it was doing is in the store and goes on in the next one). A child that was killed is started again;
one that cannot start waits for the next change.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType

import click

from thinkwell.cli.loading import split_target
from thinkwell.cli.serve import Listening, listen

POLL = 0.25
"""Seconds between two looks at the files."""
GRACE = 2.0
"""Seconds a child gets to end before it is killed for a reload."""
LAST_GRACE = 15.0
"""Seconds it gets when everything ends; enough for the drain."""
USAGE_ERROR = 2
"""The status of a command line that no change of a file can mend."""
_SKIPPED = frozenset({"__pycache__", "node_modules", "site-packages", "venv"})

Snapshot = dict[str, int]
"""Path → time of the last change."""


def run_dev(path: str, listening: Listening, options: Sequence[str]) -> int:
    """Serve `path` and reload on changes until a signal comes; gives the exit status.

    `options` are handed to `thinkwell serve` as they are.
    """
    with listen(listening) as sock:
        os.set_inheritable(sock.fileno(), True)
        command = [
            *(sys.executable, "-m", "thinkwell.cli", "serve", path),
            *("--host", listening.host, "--fd", str(sock.fileno()), "--dev"),
            *options,
        ]
        opening = [*command, "--open"] if listening.open_page else command
        supervisor = Supervisor(
            lambda first: subprocess.Popen(opening if first else command, pass_fds=[sock.fileno()]),
            folder_of(path),
        )
        return supervisor.run()


def folder_of(path: str) -> Path:
    """The folder whose Python files are watched."""
    place = Path(split_target(path)[0])
    if place.is_dir():
        return place
    return place.parent if place.exists() else Path()


def python_files(folder: Path) -> Snapshot:
    """The Python files below a folder with their times; hidden and installed ones do not count."""
    return dict(_scan(folder))


def changes(before: Snapshot, after: Snapshot) -> list[str]:
    """The files that were written, added or removed."""
    return sorted({path for path, _ in before.items() ^ after.items()})


def _scan(folder: Path) -> Iterator[tuple[str, int]]:
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name[0] != "." and name not in _SKIPPED]
        for name in files:
            if name.endswith(".py"):
                path = os.path.join(place, name)
                try:
                    yield path, os.stat(path).st_mtime_ns
                except FileNotFoundError:  # gone since the folder was read
                    continue


class Supervisor:
    """Keeps one child running and replaces it on changes."""

    def __init__(
        self, start: Callable[[bool], subprocess.Popen[bytes]], folder: Path, *, poll: float = POLL
    ) -> None:
        """`start` starts a child; it is reported whether it is the first one."""
        self._start = start
        self._folder = folder
        self._poll = poll

    def run(self) -> int:
        """Run until a signal comes or the command line proves to be wrong."""
        signal.signal(signal.SIGTERM, _interrupt)
        first = True
        child: subprocess.Popen[bytes] | None = None
        try:
            while True:
                before = python_files(self._folder)
                child = self._start(first)
                first = False
                status = self._watch(child, before)
                if status == USAGE_ERROR:
                    return status
        except KeyboardInterrupt:
            if child is not None:
                stop(child, LAST_GRACE)
            return 0

    def _watch(self, child: subprocess.Popen[bytes], before: Snapshot) -> int | None:
        """Wait until it is time for the next child."""
        reported = False
        while True:
            time.sleep(self._poll)
            status = child.poll()
            if status == USAGE_ERROR:
                return status
            if status == -signal.SIGKILL:
                click.secho("The server was killed. Starting it again.", fg="yellow")
                return None
            if status is not None and not reported:
                reported = True
                click.secho(
                    f"The server ended with status {status}. Waiting for a change.", fg="yellow"
                )
            if changed := self._changed(before):
                more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
                name = os.path.relpath(changed[0], self._folder)
                click.secho(f"{name}{more} changed. Reloading.", dim=True)
                stop(child, GRACE)
                return None

    def _changed(self, before: Snapshot) -> list[str]:
        """What has changed, once nothing changes any more (editors write in several steps)."""
        now = python_files(self._folder)
        while now != before:
            time.sleep(self._poll)
            last, now = now, python_files(self._folder)
            if now == last:
                return changes(before, now)
        return []


def stop(child: subprocess.Popen[bytes], grace: float) -> None:
    """End a child: ask it, wait for `grace` seconds, then kill it."""
    if child.poll() is not None:
        return
    child.terminate()
    try:
        child.wait(grace)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
