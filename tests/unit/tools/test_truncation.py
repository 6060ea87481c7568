"""Huge outputs are shortened, their kind stays (spec/02 §9.14, §10.7)."""

import pytest

from thinkwell.core import json
from thinkwell.tools.truncation import limit_output


@pytest.mark.parametrize("value", ["short", {"a": 1}, [1, 2], None, 7, True])
def test_what_fits_comes_back_as_the_same_object(value):
    assert limit_output(value, 100) is value


@pytest.mark.parametrize(
    "value", ["x" * 5000, ["line"] * 2000, {f"k{i}": "v" * 50 for i in range(100)}]
)
def test_what_is_too_long_keeps_its_kind_and_is_not_changed_in_place(value):
    before = json.dumps(value)
    short = limit_output(value, 500)
    assert type(short) is type(value)
    assert len(json.dumps(short)) <= 502  # the quotes of a text are not counted
    assert json.dumps(value) == before
