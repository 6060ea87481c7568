"""JSON at the border: plain data, or an error that says where (DESIGN §7)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Any
from uuid import UUID

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinkwell.core import json


class Colour(Enum):
    RED = "red"


class Level(IntEnum):
    LOW = 1


@dataclass
class Point:
    x: int
    label: str = "p"


class Row(msgspec.Struct):
    id: int


class Model(pydantic.BaseModel):
    when: date


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


@given(values)
def test_whatever_json_shaped_data_comes_it_can_be_encoded_afterwards(value: Any):
    plain = json.to_jsonable(value)
    assert json.loads(json.dumps(plain)) == plain


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Point(1), {"x": 1, "label": "p"}),
        (Row(id=1), {"id": 1}),
        (Model(when=date(2026, 1, 2)), {"when": "2026-01-02"}),
        (Colour.RED, "red"),
        (Level.LOW, 1),
        (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00+00:00"),
        (UUID(int=0), "00000000-0000-0000-0000-000000000000"),
        (Decimal("1.50"), "1.50"),
        ((1, (2,)), [1, [2]]),
        (math.nan, None),
        (math.inf, None),
        ("half \ud83d", "half \ufffd"),
        ({"\ud83d": 1}, {"\ufffd": 1}),
        ("🙂", "🙂"),
    ],
)
def test_known_kinds_become_plain_data(value: Any, plain: Any):
    assert json.to_jsonable(value) == plain


@pytest.mark.parametrize(
    ("value", "where"),
    [
        ({1, 2}, "value is a set"),
        ({"a": [b"x"]}, r"value.a\[0\] is a bytes"),
        ({1: 2}, "the key 1"),
        (object(), "object"),
        (Point, "type"),
    ],
)
def test_what_does_not_fit_is_named_with_its_place(value: Any, where: str):
    with pytest.raises(ValueError, match=where):
        json.to_jsonable(value)


def test_a_circle_is_an_error_and_not_an_endless_loop():
    circle: dict[str, Any] = {}
    circle["me"] = circle
    with pytest.raises(ValueError, match="refers to itself"):
        json.to_jsonable(circle)


def test_equal_data_has_one_canonical_text():
    assert json.canonical({"b": 1, "a": 2}) == json.canonical({"a": 2, "b": 1}) == '{"a":2,"b":1}'


def test_the_text_of_an_error_is_never_empty_and_never_raises():
    class SilentError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    texts = [json.error_text(e) for e in (ValueError("a\ud83d"), ValueError(""), SilentError())]
    assert texts == ["a\ufffd", "ValueError", "SilentError"]


def test_loads_refuses_what_is_no_json():
    with pytest.raises(ValueError, match=r"malformed|JSON"):
        json.loads("{not json")
