"""A turn is opened in one place, ended in one place and told in one place (DESIGN §1)."""

from __future__ import annotations

import re

import pytest

from tests.architecture.support import PACKAGE as SOURCE


def places(pattern: str) -> set[str]:
    """The files of the package whose code has this."""
    files = (path for path in SOURCE.rglob("*.py") if "testing" not in path.parts)
    return {str(f.relative_to(SOURCE)) for f in files if re.search(pattern, f.read_text())}


@pytest.mark.parametrize(
    ("what", "pattern", "where"),
    [
        ("a row is opened", r"await insert_turn\(", {"turn/ask/opening.py"}),
        ("a row ends", r"settle_turn\((?!\n    tx)", {"turn/end/end_turn.py"}),
        ("a hook's facts are gathered", r'"abort_signal": ', {"hooks/contexts.py"}),
        ("an end is told", r"\.end\(Ended\(", {"turn/end/end_turn.py"}),
    ],
)
def test_one_place_does_it_whoever_asks(what: str, pattern: str, where: set[str]):
    assert places(pattern) == where, what


def test_no_query_ends_a_turn_beside_the_one():
    text = (SOURCE / "store" / "queries" / "turns.sql").read_text()
    ending = re.findall(r"-- name: (\w+)\n[^;]*UPDATE turns SET[^;]*\bsettled_at = ", text)
    assert ending == ["settle_turn"]
