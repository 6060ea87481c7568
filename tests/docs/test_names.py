"""The documents name files and commands that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "thinkwell"
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LAYER_PATH = re.compile(
    r"`((?:cli|server|host|agent|features|live|turn|hooks|session|journal|tools|models|store|wire"
    r"|messages|core|testing)/[\w./]*)`(?! \(to come\))"
)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_source_file_that_is_named_exists(document: Path):
    named = set(LAYER_PATH.findall(document.read_text()))
    assert [name for name in sorted(named) if not (PACKAGE / name).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_leads_somewhere(document: Path):
    links = LINK.findall(document.read_text())
    assert [link for link in links if not (document.parent / link).exists()] == []


def test_every_make_target_that_is_named_exists():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    texts = [document.read_text() for document in DOCUMENTS]
    named = {name for text in texts for name in re.findall(r"^make ([a-z-]+)", text, re.M)}
    assert named - targets == set()


def test_every_crash_point_is_explained():
    from thinkwell.journal.crash_points import CRASH_POINTS

    texts = [
        (ROOT / "docs" / page).read_text()
        for page in ("the-turn.md", "jobs.md", "schedules.md", "cli.md", "search.md")
    ]
    explained = {name for text in texts for name in re.findall(r"^\| ([a-z]\d+) \|", text, re.M)}
    assert explained == set(CRASH_POINTS)
