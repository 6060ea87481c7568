"""A class is known by its name alone: no two have the same, private ones excepted."""

from __future__ import annotations

import ast
from collections import defaultdict

from tests.architecture.support import PACKAGE

# Two languages that speak of the same thing, each behind a public door of its own: what a model
# sends (`thinkwell.models`) and what `chat_stream` yields (`thinkwell.turns`).
BOTH = {"ReasoningDelta", "ReasoningEnd"}


def test_no_two_classes_have_the_same_name():
    places: dict[str, list[str]] = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(path.relative_to(PACKAGE).as_posix())
    twice = {name: found for name, found in places.items() if len(found) > 1 and name not in BOTH}
    assert twice == {}
