"""Puts the chat page into every wheel and every source distribution, whoever builds them.

The page is made from `studio/` with Node and is not kept in git, so `pip install` from a clone has
to make it: this hook does, where it is missing or older than its sources. A source distribution
carries the page instead of `studio/`, so that nobody who installs from one needs Node. An editable
install uses the clone itself: `make page` builds the page there.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

OLDEST_NODE = 20
LEAVE_OUT = "THINKWELL_NO_PAGE"
WAYS_OUT = (
    f"Install Node {OLDEST_NODE} or newer with npm and try again, install a released wheel or "
    f"sdist, which have the page, or set {LEAVE_OUT}=1: then all but the page at / works."
)


class PageHook(BuildHookInterface[Any]):
    """Builds the page before the files are collected."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - hatchling's
        """Called once for each wheel or sdist; `version` says of which kind it is."""
        if version == "editable" or os.environ.get(LEAVE_OUT):
            return
        root = Path(self.root)
        page, studio = root / "src/thinkwell/server/page/index.html", root / "studio"
        if not (studio / "package.json").is_file():
            if not page.is_file():
                self.app.abort(f"The chat page is missing here, and so is studio/. {WAYS_OUT}")
        elif is_stale(page, studio):
            self._build(studio)

    def _build(self, studio: Path) -> None:
        problem = node_problem()
        if problem is not None:
            self.app.abort(f"The chat page has to be built, and {problem}. {WAYS_OUT}")
        for what, command in (
            ("Installing the libraries of the chat page", INSTALL),
            ("Building the chat page", ("npm", "run", "build")),
        ):
            self.app.display_info(what)
            done = subprocess.run(command, cwd=studio, check=False)
            if done.returncode:
                failed = f"{what} failed: `{' '.join(command)}` in studio/, see above."
                self.app.abort(f"{failed} {WAYS_OUT}")


# Exact versions without a lock file, since lock files hold the addresses of somebody's registry.
INSTALL = (
    *("npm", "install", "--no-package-lock", "--prefer-offline"),
    *("--no-audit", "--no-fund", "--loglevel=error"),
)


def is_stale(page: Path, studio: Path) -> bool:
    """Whether the page is missing or older than something it is made of, as in the Makefile."""
    if not page.is_file():
        return True
    built = page.stat().st_mtime
    return any(source.stat().st_mtime > built for source in sources(studio))


def sources(studio: Path) -> Iterator[Path]:
    """The files the page is made of."""
    for path in studio.iterdir():
        if path.is_file():
            yield path
        elif path.name != "node_modules":
            yield from (each for each in path.rglob("*") if each.is_file())


def node_problem() -> str | None:
    """Why the page cannot be built here; None if it can."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        return "there is no Node with npm on the PATH"
    said = subprocess.run(["node", "--version"], capture_output=True, text=True, check=False).stdout
    found = re.match(r"v(\d+)\.", said)
    if found is None or int(found[1]) < OLDEST_NODE:
        return f"Node {OLDEST_NODE} or newer is needed, not {said.strip() or 'this one'}"
    return None
