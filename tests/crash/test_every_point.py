"""Named crash points are worth something only if each is in the code and under test."""

from __future__ import annotations

import re
from pathlib import Path

from tests.crash.process import ROOT
from thinkwell.journal.crash_points import CRASH_POINTS


def names_in(folder: Path, lines_with: str) -> set[str]:
    lines = [line for file in folder.rglob("*.py") for line in file.read_text().splitlines()]
    picked = [line for line in lines if lines_with in line]
    return {name for line in picked for name in re.findall(r'"([a-z]\d+)(?::\d+)?"', line)}


def test_every_named_point_can_kill_the_process():
    assert names_in(ROOT / "src" / "thinkwell", "crash_here(") == set(CRASH_POINTS)


def test_every_named_point_is_exercised():
    assert set(CRASH_POINTS) <= names_in(ROOT / "tests" / "crash", "")
