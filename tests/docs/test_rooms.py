"""Every change a newcomer makes has its room; a table in CONTRIBUTING says which (DESIGN §3.1)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "thinkwell"
TO_COME = {"features/sub_agents/", "features/workspace/", "store/postgres.py"}
"""Rooms that nothing has moved into yet."""
PATH = re.compile(r"`([a-z_]+/[\w./]*)`( \(to come\))?")


def rooms() -> list[tuple[str, str, str]]:
    """The rows of the first table: what somebody wants, its room, and what belongs to it."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    table = text.split("| you want | its room | and also |")[1].split("\n\n")[0]
    cells = [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]
    return [(row[0], row[1], row[2] if len(row) > 2 else "") for row in cells]


def test_there_are_the_twelve_changes():
    assert len(rooms()) == 12


@pytest.mark.parametrize("room", [room for _, room, _ in rooms()])
def test_every_room_exists_or_is_to_come(room: str):
    named = PATH.findall(room)
    assert named, "a row needs a path"
    missing = {path for path, _ in named if not (PACKAGE / path).exists()}
    assert missing == {path for path, mark in named if mark}


def test_what_is_to_come_is_known_here():
    marked = {path for _, room, _ in rooms() for path, mark in PATH.findall(room) if mark}
    assert marked == TO_COME


@pytest.mark.parametrize("also", [also for _, _, also in rooms() if also])
def test_what_belongs_to_a_change_is_there_too(also: str):
    paths = [path for path, _ in PATH.findall(also)]
    missing = [path for path in paths if not any((at / path).exists() for at in (ROOT, PACKAGE))]
    assert missing == []
