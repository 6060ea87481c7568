"""Where the repository is, which files belong to it, and how to run a tool on it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import thinkwell

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "thinkwell"
MODULES = sorted(thinkwell._MODULES)  # pyright: ignore[reportPrivateUsage]
"""The public modules beside `thinkwell` itself."""


def run_tool(*command: str) -> subprocess.CompletedProcess[str]:
    """Run a tool of this environment in the repository and keep what it printed."""
    executable = Path(sys.executable).parent / command[0]
    return subprocess.run(
        [str(executable), *command[1:]], cwd=ROOT, capture_output=True, text=True, check=False
    )


def run_python(code: str) -> str:
    """Run a snippet in a fresh interpreter and return what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def repository_files() -> list[Path]:
    """Every file that is, or is about to be, in the repository: tracked, or new and not ignored."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    paths = (ROOT / name for name in listed.stdout.split("\0") if name)
    return [path for path in paths if path.is_file()]


def text_of(path: Path) -> str | None:
    """The text of a file, or None when it is not text."""
    data = path.read_bytes()
    if b"\0" in data:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
