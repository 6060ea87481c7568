"""Shorter tool outputs that keep their shape (spec/03 §11, spec/02 §10.7)."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinkwell.core import json
from thinkwell.messages.shorten import cut_text, truncate_tool_output

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-999, 999) | st.text(max_size=200),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=25,
)


def test_what_fits_comes_back_as_it_is():
    value = {"a": [1, 2]}
    assert truncate_tool_output(value, 11) == (value, False, 11)
    assert truncate_tool_output(value, 11).value is value


def test_a_string_ends_with_its_true_length():
    short, truncated, length = truncate_tool_output("x" * 1000, 100)
    assert (len(short), truncated, length) == (100, True, 1000)
    assert short.endswith("... [truncated 1000 chars]")


def test_a_budget_smaller_than_the_note_holds_its_beginning():
    assert cut_text("x" * 1000, 7) == "... [tr"


def test_a_number_cannot_be_shortened():
    assert truncate_tool_output(1234567, 3) == (1234567, False, 7)


def test_a_list_loses_its_tail_and_says_so():
    short = truncate_tool_output(list(range(1000)), 100).value
    assert short[:3] == [0, 1, 2]
    assert short[-1] == f"... [{1000 - (len(short) - 1)} more items left out]"
    assert len(json.dumps(short)) <= 100


def test_a_list_of_one_huge_item_shortens_the_item():
    [item] = truncate_tool_output(["x" * 1000], 100).value
    assert item.endswith("xxx... [truncated 1000 chars]")


def test_an_object_keeps_its_small_fields():
    """Acceptance case 68."""
    value = {"path": "/a.txt", "content": "x" * 1000, "totalLines": 7}
    short = truncate_tool_output(value, 100).value
    assert (short["path"], short["totalLines"]) == ("/a.txt", 7)
    assert "1000" in short["content"]


def test_an_object_of_many_fields_becomes_a_marker():
    value = {f"key-{n}": n for n in range(500)}
    length = len(json.dumps(value))
    assert truncate_tool_output(value, 100).value == {
        "__truncated": True,
        "__truncatedChars": length,
    }


def test_a_list_of_unshortenable_items_becomes_a_marker():
    short = truncate_tool_output([{f"key-{n}": n for n in range(50)}] * 2, 40).value
    assert list(short[0]) == ["__truncated", "__truncatedChars"]


def test_what_is_nested_too_deep_is_left_out():
    value = "x" * 1000
    for _ in range(10):
        value = {"v": value}
    assert "nested too deep" in json.dumps(truncate_tool_output(value, 200).value)


@pytest.mark.parametrize("limit", [100, 500])
@given(value=json_values)
def test_the_shape_stays_and_the_input_too(limit, value):
    before = copy.deepcopy(value)
    short, truncated, _ = truncate_tool_output(value, limit)
    assert type(short) is type(value)
    assert truncated == (short is not value)
    assert len(short if isinstance(short, str) else json.dumps(short)) <= limit
    assert value == before
