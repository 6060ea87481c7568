"""The table of faults names a test for each row, and each of these tests is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "faults.md").read_text()
ROWS = [line for line in PAGE.splitlines() if line.startswith("|") and "---" not in line]
FAULTS = [row for row in ROWS if not row.startswith("| fault")]
FILES = sorted((ROOT / "tests" / "faults").glob("test_*.py"))


def cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip("|").split("|")]


@pytest.mark.parametrize("row", FAULTS, ids=lambda row: cells(row)[0])
def test_every_fault_says_what_happens_and_names_a_test_that_exists(row: str):
    assert len(cells(row)) == 5
    assert all(cells(row))
    found = re.fullmatch(r"`(tests/[\w/]+\.py)::(test_\w+)`", cells(row)[-1])
    assert found is not None
    file, name = found.groups()
    assert re.search(rf"def {name}\(", (ROOT / file).read_text())


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_test_of_a_fault_is_in_the_table(file: Path):
    names = re.findall(r"def (test_\w+)\(", file.read_text())
    assert [name for name in names if f"{file.name}::{name}`" not in PAGE] == []
