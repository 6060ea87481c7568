"""Which calls a pattern of arguments covers. In doubt it covers none."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinkwell.core.errors import ApprovalError
from thinkwell.tools.argument_patterns import exactly, fits, matches_glob, read_pattern

ANY = {"any": True}


@pytest.mark.parametrize(
    ("pattern", "arguments", "covered"),
    [
        ({"n": 1}, {"n": 1}, True),
        ({"n": 1}, {"n": 1.0}, False),
        ({"n": 1}, {"n": True}, False),
        ({"n": None}, {"n": None}, True),
        ({"n": None}, {}, False),
        ({"n": {"equals": {"b": 1, "a": [2]}}}, {"n": {"a": [2], "b": 1}}, True),
        ({"p": {"prefix": "tmp/"}}, {"p": "tmp/a/b"}, True),
        ({"p": {"prefix": "tmp/"}}, {"p": "etc"}, False),
        ({"p": {"prefix": "tmp/"}}, {"p": 5}, False),
        ({"p": {"prefix": "tmp/"}}, {"p": ["tmp/"]}, False),
        ({"p": {"prefix": "tmp/"}}, {"p": "tmp/../etc"}, False),
        ({"p": {"prefix": "tmp/"}}, {"p": "tmp/a..b"}, True),
        ({"p": {"prefix": "tmp/"}}, {"p": "tmp/%2e%2e/etc"}, False),
        ({"p": {"prefix": "tmp/"}}, {"p": "tmp/%252e%252e/etc"}, False),
        ({"p": {"prefix": "tmp/"}}, {"p": "tmp/..\\etc"}, False),
        ({"p": {"prefix": "tmp/"}}, {"p": "tmp/" + "a" * 3000}, False),
        ({"p": {"glob": "tmp/*.txt"}}, {"p": "tmp/a.txt"}, True),
        ({"p": {"glob": "tmp/*.txt"}}, {"p": "tmp/b/a.txt"}, False),
        ({"p": {"glob": "tmp/**.txt"}}, {"p": "tmp/b/a.txt"}, True),
        ({"p": {"equals": "tmp/../etc"}}, {"p": "tmp/../etc"}, True),
        ({"p": ANY}, {"p": "x"}, True),
        ({"p": ANY}, {}, True),
        ({"p": ANY}, {"p": "x", "force": True}, False),
        ({"*": ANY}, {"p": "x", "force": True}, True),
        ({"p": "x", "*": ANY}, {"p": "y", "force": True}, False),
        ({"*": {"prefix": "a"}}, {"p": "ab", "q": "ac"}, True),
        ({"*": {"prefix": "a"}}, {"p": "ab", "q": 7}, False),
        ({"*": ANY}, {"*": 1}, False),
        ({"p": {"prefix": "tmp/"}}, {}, False),
    ],
)
def test_what_fits(pattern: Any, arguments: Any, covered: bool):
    assert fits(read_pattern(pattern), arguments) is covered


def test_exactly_fits_only_the_same_call():
    pattern = exactly({"p": "a", "n": [1]})
    assert fits(pattern, {"n": [1], "p": "a"})
    assert not fits(pattern, {"p": "a"})


def test_no_rule_is_made_of_a_call_whose_argument_would_stand_for_all_others():
    """As a rule it would allow every call whose arguments all have that value."""
    with pytest.raises(ApprovalError, match="one by one"):
        exactly({"*": 1})


@pytest.mark.parametrize(
    "given",
    [
        None,
        "*",
        [],
        {},
        {"": 1},
        {5: 1},
        {"p": {}},
        {"p": {"any": False}},
        {"p": {"prefix": ""}},
        {"p": {"prefix": 5}},
        {"p": {"glob": "a" * 300}},
        {"p": {"regexp": "a"}},
        {"p": {"prefix": "a", "glob": "b"}},
        {"p": ["a"]},
        {f"p{n}": 1 for n in range(60)},
    ],
)
def test_what_is_no_pattern_is_refused(given: Any):
    with pytest.raises(ApprovalError):
        read_pattern(given)


@pytest.mark.parametrize(
    ("glob", "text", "matches"),
    [
        ("a*c", "abbc", True),
        ("a*c", "abb", False),
        ("*", "", True),
        ("*", "a/b", False),
        ("**", "a/b", True),
        ("***", "a/b", True),
        ("a", "ab", False),
        ("*a*a*a*a*a*a*a*b", "a" * 2000, False),
        ("[a]", "a", False),
        ("a?", "ab", False),
        ("*.txt", "*.txt", True),
    ],
)
def test_globs(glob: str, text: str, matches: bool):
    assert matches_glob(glob, text) is matches


def test_the_globs_of_a_pattern_have_a_bounded_number_of_stars():
    read_pattern({"a": {"glob": "*a" * 10}, "b": {"glob": "*b" * 10}})
    with pytest.raises(ApprovalError, match="21 stars"):
        read_pattern({"a": {"glob": "*a" * 10}, "b": {"glob": "*b" * 11}})


@given(st.text("a/*", max_size=8), st.text("a/", max_size=8))
def test_a_glob_matches_what_a_regular_expression_would(glob: str, text: str):
    parts = re.split(r"(\*+)", glob)
    stars = {"": "", "*": "[^/]*"}
    wanted = "".join(
        re.escape(part) if number % 2 == 0 else stars.get(part, ".*")
        for number, part in enumerate(parts)
    )
    assert matches_glob(glob, text) is (re.fullmatch(wanted, text) is not None)
