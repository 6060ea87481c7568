"""The picture of the layers shows the layers that import-linter checks."""

from __future__ import annotations

import re
import tomllib
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text()


def layers() -> list[list[str]]:
    """The rows of the import contract, from the top."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    contract = next(c for c in settings["contracts"] if c.get("containers") == ["thinkwell"])
    return [row.split(" | ") for row in contract["layers"]]


def picture() -> str:
    return PAGE.split("```mermaid")[1].split("```")[0]


def arrows() -> list[tuple[str, str]]:
    """Every arrow between two layers, from an arrow line such as `a & b --> c --> d`."""
    found: list[tuple[str, str]] = []
    for line in picture().splitlines():
        ends = [re.findall(r"\w+", end) for end in line.split("-->")] if "-->" in line else []
        for above, below in pairwise(ends):
            found += [(a, b) for a in above for b in below]
    return found


def test_every_layer_is_in_the_picture_and_nothing_else():
    drawn = re.findall(r'^\s+(\w+)\["<b>(\w+)</b>', picture(), re.M)
    assert [name for name, _ in drawn] == [title for _, title in drawn]
    assert {name for name, _ in drawn} == {name for row in layers() for name in row}


def test_every_arrow_points_down():
    rank = {name: number for number, row in enumerate(layers()) for name in row}
    assert [(a, b) for a, b in arrows() if rank[a] >= rank[b]] == []


def test_every_layer_is_reached():
    assert {b for _, b in arrows()} == {name for row in layers()[1:] for name in row}


def test_the_table_of_state_names_every_table():
    schema = (ROOT / "src/thinkwell/store/schema.sql").read_text()
    tables = set(re.findall(r"^CREATE TABLE (\w+)", schema, re.M)) - {"schema_version", "sessions"}
    section = (ROOT / "docs/the-turn.md").read_text().split("## Where state lives")[1]
    assert {
        t
        for row in re.findall(r"^\| [^|]+ \| ([^|]+) \|", section, re.M)
        for t in re.findall(r"`(\w+)`", row)
    } == tables
