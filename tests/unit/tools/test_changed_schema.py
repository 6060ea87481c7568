"""Which changes of a schema keep a call from running, and which are nothing to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import pytest

from thinkwell.tools.changed_schema import what_changed
from thinkwell.tools.tool import as_tool


@dataclass
class Place:
    street: str
    number: int = 1


@dataclass
class Longer:
    street: str
    number: int = 1
    floor: int = 0


@dataclass
class Other:
    street: str
    number: str = "1"


def pay(amount: int, note: str = "none") -> None:
    """Pay."""


def described(amount: int, note: str = "none") -> None:
    """Pay somebody.

    Args:
        amount: In cents.
    """


def with_more(amount: int, note: str = "none", urgent: bool = False) -> None:
    """Pay."""


def with_nullable(amount: int | None, note: str | None = "none") -> None:
    """Pay."""


def without_note(amount: int) -> None:
    """Pay."""


def in_text(amount: str, note: str = "none") -> None:
    """Pay."""


def as_float(amount: float, note: str = "none") -> None:
    """Pay."""


def other_default(amount: int, note: str = "urgent") -> None:
    """Pay."""


def renamed(cents: int, note: str = "none") -> None:
    """Pay."""


def needing(amount: int, account: str, note: str = "none") -> None:
    """Pay."""


def send(place: Place, speed: Literal["slow", "fast"] = "slow") -> None:
    """Send."""


def send_longer(place: Longer, speed: Literal["slow", "fast"] = "slow") -> None:
    """Send."""


def send_other(place: Other, speed: Literal["slow", "fast"] = "slow") -> None:
    """Send."""


def send_all(places: list[Place]) -> None:
    """Send."""


def send_all_longer(places: list[Longer]) -> None:
    """Send."""


def send_all_other(places: list[Other]) -> None:
    """Send."""


def send_faster(place: Place, speed: Literal["slow", "fast", "now"] = "slow") -> None:
    """Send."""


def send_slowly(place: Place, speed: Literal["slow"] = "slow") -> None:
    """Send."""


def schema(function: Any) -> dict[str, Any]:
    return dict(as_tool(function).input_schema)


PLACE = {"place": {"street": "Main"}}


@pytest.mark.parametrize(
    ("before", "after", "given"),
    [
        (pay, pay, {"amount": 1}),
        (pay, described, {"amount": 1}),
        (pay, with_more, {"amount": 1, "note": "x"}),
        (pay, with_nullable, {"amount": 1, "note": "x"}),
        (with_nullable, pay, {"amount": 1, "note": "x"}),
        (with_more, pay, {"amount": 1}),
        (pay, without_note, {"amount": 1}),
        (pay, other_default, {"amount": 1, "note": "x"}),
        (send, send_longer, PLACE),
        (send, send_faster, {**PLACE, "speed": "fast"}),
        (send_faster, send, {**PLACE, "speed": "fast"}),
        (send_all, send_all_longer, {"places": [{"street": "a"}, {"street": "b", "number": 2}]}),
        (send_all, send_all_other, {"places": []}),
    ],
)
def test_a_call_that_means_the_same_may_run(before: Any, after: Any, given: dict[str, Any]) -> None:
    assert what_changed(schema(before), schema(after), given) is None


@pytest.mark.parametrize(
    ("before", "after", "given", "says"),
    [
        (pay, in_text, {"amount": 1}, "'amount' is another value now"),
        (pay, as_float, {"amount": 1}, "'amount' is another value now"),
        (pay, renamed, {"amount": 1}, "there is no 'amount' any more"),
        (pay, without_note, {"amount": 1, "note": "x"}, "there is no 'note' any more"),
        (pay, other_default, {"amount": 1}, "'note', which was left out, has another default now"),
        (pay, needing, {"amount": 1}, "'account' is required now"),
        (with_nullable, pay, {"amount": None, "note": "x"}, "'amount' is another value now"),
        (send, send_other, {"place": {"street": "Main", "number": 1}}, "'place' is another value"),
        (send, send_other, PLACE, "'place' is another value"),
        (send_all, send_all_other, {"places": [{"street": "a"}]}, "'places' is another value"),
        (send_faster, send_slowly, {**PLACE, "speed": "fast"}, "must be 'slow'"),
    ],
)
def test_a_call_that_means_something_else_may_not(
    before: Any, after: Any, given: dict[str, Any], says: str
) -> None:
    assert says in str(what_changed(schema(before), schema(after), given))


def test_an_argument_that_was_free_before_and_is_named_now_is_another_one() -> None:
    free = {"type": "object", "properties": {}}
    named = {"type": "object", "properties": {"note": {"type": "string"}}}
    assert what_changed(free, named, {"note": "x"}) == "'note' is another value now"
    assert what_changed(free, {**free, "required": []}, {"note": "x"}) is None


def test_limits_count_only_if_the_value_breaks_them() -> None:
    def up_to(most: int) -> dict[str, Any]:
        return {"type": "object", "properties": {"n": {"type": "integer", "maximum": most}}}

    assert what_changed(up_to(9), up_to(5), {"n": 5}) is None
    assert "5" in str(what_changed(up_to(9), up_to(5), {"n": 6}))


def test_a_schema_that_contains_itself_ends() -> None:
    tree: dict[str, Any] = {
        "type": "object",
        "properties": {"tree": {"$ref": "#/$defs/Tree"}},
        "$defs": {
            "Tree": {
                "type": "object",
                "properties": {
                    "left": {"anyOf": [{"$ref": "#/$defs/Tree"}, {"type": "null"}]},
                    "size": {"type": "integer"},
                },
            }
        },
    }
    other = {**tree, "properties": {**tree["properties"], "more": {"type": "string"}}}
    deep: dict[str, Any] = {"size": 1}
    for _ in range(20):
        deep = {"left": deep, "size": 1}
    assert what_changed(tree, other, {"tree": deep}) is None
    loop = {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}}
    loop["$defs"] = {"A": {"$ref": "#/$defs/A"}}
    assert what_changed(loop, {**loop, "required": ["a"]}, {"a": 1}) is not None
