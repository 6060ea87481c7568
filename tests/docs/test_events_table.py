"""The table of events beside those of the reference (spec/04 §17) is what the code tells."""

from __future__ import annotations

import re
from pathlib import Path

from thinkwell.core.events import TYPES

PAGE = (Path(__file__).parents[2] / "docs" / "observability.md").read_text()
TABLE = PAGE.split("### Beside the reference's names")[1].split("\n## ")[0]
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in TABLE.splitlines()
    if line.startswith("| ") and not line.startswith("| there")
]


def names(cell: str) -> set[str]:
    return set(re.findall(r"`([\w:*-]+)`", cell))


def test_every_event_of_the_table_is_told_and_every_event_is_in_it():
    assert {name for row in ROWS for name in names(row[1])} == set(TYPES)


def test_what_is_not_told_here_has_a_reason():
    assert [row for row in ROWS if not names(row[1]) and not row[2]] == []


def test_a_name_that_both_have_stands_on_both_sides_of_one_row():
    for row in ROWS:
        there = names(row[0])
        assert [name for name in there & set(TYPES) if name not in names(row[1])] == []
