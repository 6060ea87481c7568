"""Packages as users get them: built from a tree, installed into environments of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ("index.html", "app.js", "app.css")


def run(*command: str, cwd: Path = ROOT, env: Mapping[str, str] | None = None) -> str:
    """What a command said; it must succeed."""
    status, said = attempt(*command, cwd=cwd, env=env)
    assert status == 0, said
    return said


def attempt(
    *command: str, cwd: Path = ROOT, env: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """How a command ended, and what it said."""
    full = {**os.environ, **(env or {})}
    done = subprocess.run(
        command, cwd=cwd, env=full, capture_output=True, text=True, check=False, timeout=240
    )
    return done.returncode, done.stdout + done.stderr


def build(target: str, folder: Path, root: Path = ROOT, **env: str) -> Path:
    """Build a wheel or an sdist of a tree."""
    run(
        sys.executable,
        "-m",
        "hatchling",
        "build",
        "-t",
        target,
        "-d",
        str(folder),
        cwd=root,
        env=env,
    )
    (built,) = folder.glob("*.whl" if target == "wheel" else "*.tar.gz")
    return built


def names_in(package: Path) -> set[str]:
    """The files in a wheel, or those of `src/` in an sdist, as they are called when installed."""
    if package.suffix == ".whl":
        with zipfile.ZipFile(package) as archive:
            return set(archive.namelist())
    with tarfile.open(package) as archive:
        return {name.partition("/src/")[2] for name in archive.getnames() if "/src/" in name}


def page_in(names: set[str]) -> set[str]:
    """Which files of the chat page are there."""
    return {name for name in PAGE if f"thinkwell/server/page/{name}" in names}


def clean_clone(folder: Path) -> Path:
    """What git has and nothing else: no page, no libraries to build it with."""
    listed = run("git", "ls-files", "-z").rstrip("\0").split("\0")
    for name in listed:
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder


def without_node(folder: Path) -> str:
    """A PATH on which there is everything but Node."""
    folder.mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        for program in Path(place).glob("*") if Path(place).is_dir() else ():
            if program.name not in ("node", "npm", "npx") and not (folder / program.name).exists():
                (folder / program.name).symlink_to(program)
    return str(folder)


def new_environment(folder: Path) -> Path:
    """A virtual environment with nothing in it; its `bin`."""
    run(sys.executable, "-m", "venv", "--without-pip", str(folder))
    return folder / "bin"


def install(bin_folder: Path, *what: str, **env: str) -> None:
    """`pip install`, from wherever pip is told to take things."""
    python = str(bin_folder / "python")
    run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", *what, env=env)
