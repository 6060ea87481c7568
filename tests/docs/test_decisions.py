"""The records of decisions: numbered, listed, short, and all of one shape."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DECISIONS = Path(__file__).resolve().parents[2] / "docs" / "decisions"
RECORDS = sorted(DECISIONS.glob("[0-9]*.md"))
SCREEN = 45


def title_of(record: Path) -> str:
    return record.read_text().splitlines()[0].removeprefix("# ")


def test_they_are_numbered_without_gaps():
    numbers = [int(record.name[:4]) for record in RECORDS]
    assert numbers == list(range(1, len(RECORDS) + 1))


def test_the_index_lists_every_record_by_its_title_and_nothing_else():
    rows = re.findall(
        r"^\| \[(\d{4})\]\((.+)\) \| (.+) \|$", (DECISIONS / "index.md").read_text(), re.M
    )
    assert [(name, f"{number} {title}") for number, name, title in rows] == [
        (record.name, title_of(record)) for record in RECORDS
    ]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.stem)
def test_a_record_says_why_what_and_what_follows_on_one_screen(record: Path):
    text = record.read_text()
    assert re.findall(r"^## (.+)$", text, re.M) == ["Context", "Decision", "Consequences"]
    assert re.search(r"^Status: (accepted|replaced by \[\d{4}\])", text, re.M)
    assert len(text.splitlines()) <= SCREEN
