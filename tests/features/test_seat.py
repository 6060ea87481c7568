"""The seat is the same for all: what it offers is documented, and ours have no back door."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

from tests.architecture.support import PACKAGE, ROOT
from thinkwell.features import Feature, Kit

PAGE = (ROOT / "docs" / "features.md").read_text()
CONSTANTS = {"thinkwell.turn.end.end_turn": {"SAFE_ERROR"}}
"""What features may take of the turn beside the kit: words, nothing that acts."""


def rows(section: str) -> set[str]:
    """The names in the first column of the table under a heading."""
    text = PAGE.split(f"\n## `{section}`")[1].split("\n## ")[0]
    cells = re.findall(r"^\| ([^|]*) \|", text, re.M)
    return {name for cell in cells for name in re.findall(r"`(?:await )?(\w+)", cell)}


def members(owner: Any) -> set[str]:
    return {name for name in vars(owner) if not name.startswith("_")}


def test_every_method_of_a_feature_has_a_row():
    assert members(Feature) - {"namespace"} == rows("Feature")


def test_every_member_of_the_kit_has_a_row():
    assert members(Kit) == rows("Kit")


def test_our_features_reach_the_turn_through_the_kit_alone():
    found: dict[str, list[str]] = {}
    for path in (PACKAGE / "features").rglob("*.py"):
        for module, names in runtime_imports(path):
            layer = module.removeprefix("thinkwell.").partition(".")[0]
            if layer in ("turn", "live") and not names <= CONSTANTS.get(module, set()):
                found.setdefault(path.name, []).append(module)
    assert found == {}


def runtime_imports(path: Path) -> list[tuple[str, set[str]]]:
    tree = ast.parse(path.read_text())
    nodes = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    return [(node.module or "", {alias.name for alias in node.names}) for node in nodes]
